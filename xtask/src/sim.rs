//! The simulation, in release: a thousand seeds at opt-level 0 would take hours.

use crate::process::{cargo, check};

pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    check(cargo().args(["run", "--quiet", "--release", "-p", "reveille-sim", "--"]).args(arguments))
}
