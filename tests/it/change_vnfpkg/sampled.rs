//! The number of replicas, looked at all the time.

use cairn_tests::place::background;
use cairn_tests::world::World;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How often.
const EACH: Duration = Duration::from_millis(100);

/// Looks at `spec.replicas` of a workload every 100 ms until it is ended.
pub struct Sampler {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Vec<u64>>,
}

impl Sampler {
    /// Begins to look.
    pub fn of(world: &World, plural: &str, name: &str) -> Self {
        let (kube, path) = (
            world.place().kube.clone(),
            world.place().path("apps/v1", plural, name),
        );
        let (stop, mut stopped) = oneshot::channel();
        let task = background(async move {
            let mut seen = Vec::new();
            let mut ticks = tokio::time::interval(EACH);
            loop {
                tokio::select! {
                    _ = &mut stopped => return seen,
                    _ = ticks.tick() => {}
                }
                let answer = kube.get(&path).await;
                if let Some(number) = answer.body["spec"]["replicas"].as_u64() {
                    seen.push(number);
                }
            }
        });
        Self { stop, task }
    }

    /// The numbers that were seen, each named once for as long as it stood.
    ///
    /// # Panics
    /// When it never saw one.
    pub async fn end(self) -> Vec<u64> {
        self.stop.send(()).expect("it still looks");
        let mut seen = self.task.await.expect("it does not panic");
        assert!(!seen.is_empty(), "it has looked");
        seen.dedup();
        seen
    }
}
