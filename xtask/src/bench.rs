//! The benchmark: the release server against the load generator, figures in `bench-out/`.

use crate::process::{cargo, check};

pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    check(cargo().args(["build", "--release", "-p", "reveille", "-p", "reveille-bench"]))?;
    check(cargo().args(["run", "--quiet", "--release", "-p", "reveille-bench", "--"]).args(arguments))
}
