//! The story, act by act. An act returns an error when anything came out otherwise than told.

mod acts;
mod ending;
mod failures;

pub use ending::invite;

use super::world::World;

/// What the acts hand on.
#[derive(Default)]
struct Plot {
    /// vnfdId of the package that runs.
    signalling: String,
    /// vnfdId of the package whose image cannot be pulled.
    media: String,
    /// The instance of the first.
    instance: String,
    /// Operations with the states that the notifications must tell, in order.
    told: Vec<(String, Vec<&'static str>)>,
}

/// Plays all acts.
///
/// # Errors
///
/// What came out otherwise than told.
pub async fn tell(world: &mut World) -> anyhow::Result<()> {
    let mut plot = Plot::default();
    acts::scene(world)?;
    acts::onboarding(world, &mut plot).await?;
    acts::wrong_token(world, &mut plot).await?;
    failures::quota(world, &mut plot).await?;
    failures::image(world, &mut plot).await?;
    failures::kill(world, &mut plot).await?;
    ending::notifications(world, &plot).await?;
    ending::history(world, &plot).await
}

/// The first characters of an id, as the history names operations.
fn short(id: &str) -> &str {
    id.get(..4).unwrap_or(id)
}
