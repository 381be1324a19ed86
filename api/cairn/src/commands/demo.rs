//! `cairn demo`: a story told on SQLite in a temporary folder and a simulated cluster.
//!
//! This process holds the cluster and receives the notifications; the server is a child process, so that it can
//! really be killed while the cluster lives on. Each line that is printed comes from an answer, an event or the
//! cluster, read just before; what comes out otherwise than expected ends the story with exit code 1.

mod inbox;
mod narrator;
mod packages;
mod server;
mod story;
mod world;

use super::{asked_to_end, log_to_stderr};
use crate::cli::DemoFlags;
use narrator::Narrator;
use std::process::ExitCode;
use world::World;

/// Tells the story.
///
/// # Errors
///
/// What the demo itself lacks, such as a free port or a temporary folder.
pub async fn run(flags: DemoFlags) -> anyhow::Result<ExitCode> {
    log_to_stderr("warn");
    let narrator = Narrator::default();
    let mut world = World::start(flags.listen, narrator.clone()).await?;
    let code = tokio::select! {
        told = story::tell(&mut world) => match told {
            Ok(()) => conclude(&flags, &world).await?,
            Err(differs) => {
                narrator.section("It came out otherwise than told");
                narrator.fact(&format!("{differs:#}"));
                narrator.block(&world.server.last_words());
                ExitCode::FAILURE
            }
        },
        asked = asked_to_end() => {
            asked?;
            narrator.fact("asked to end before the story was over");
            ExitCode::FAILURE
        }
    };
    world.end().await?;
    Ok(code)
}

async fn conclude(flags: &DemoFlags, world: &World) -> anyhow::Result<ExitCode> {
    if flags.once {
        world.narrator.fact("each step came out as told");
        return Ok(ExitCode::SUCCESS);
    }
    story::invite(world);
    asked_to_end().await?;
    Ok(ExitCode::SUCCESS)
}
