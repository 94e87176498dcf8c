//! `reveille demo`: two minutes with a fleet, a killed worker, a denied job, an approval and a rollback.
//!
//! A throw-away server and real workers on this machine, to be watched in the console, where nobody has to sign in for
//! it. Everything that is told happens: each scene waits for what it says, and fails if that does not come.

mod crew;
mod house;
mod scenes;

use crate::args::DemoArgs;
use crate::serve::told_to_stop;
use anyhow::Result;
use house::House;
use std::process::ExitCode;
use std::time::Duration;

pub fn run(command: &DemoArgs) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            told = tell(command) => told.map(|()| ExitCode::SUCCESS),
            told = told_to_stop() => {
                told?;
                say("Ended. Nothing is left behind.");
                Ok(ExitCode::SUCCESS)
            }
        }
    })
}

async fn tell(command: &DemoArgs) -> Result<()> {
    let house = House::open().await?;
    say(&format!("Open http://{}/ui/fleet in a browser and watch. Ctrl-C ends it all.", house.http));
    let pace = if command.fast { Duration::ZERO } else { Duration::from_secs(8) };
    let story = scenes::Story { house: &house, pace };
    story.tell().await?;
    if !command.fast {
        say("That was it. The server stays until you press Ctrl-C; look around.");
        std::future::pending::<()>().await;
    }
    Ok(())
}

/// What is told goes to standard output, a line at a time.
fn say(words: &str) {
    crate::output::line(words);
}
