//! Stories that are told on the simulated cluster and on the real one.

use cairn_tests::place::Place;
use cairn_tests::world::{Ground, Kind, World};

/// A Cairn on SQLite beside the real cluster; `None` only where that is left out on purpose.
pub async fn real() -> Option<World> {
    let ground = Ground::new(Kind::Sqlite, Place::real().await?).await;
    Some(World::on(ground.expect("SQLite is always there")).await)
}

/// Makes of each story two tests.
macro_rules! on_both_clusters {
    ($($story:ident: $simulated:ident, $real:ident;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $simulated() {
                $story(cairn_tests::world::World::simple().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $real() {
                let Some(world) = crate::clusters::real().await else {
                    return;
                };
                $story(world).await;
            }
        )+
    };
}

pub(crate) use on_both_clusters;
