//! `reveille demo`.

use clap::Args as ClapArgs;

#[derive(ClapArgs)]
pub struct DemoArgs {
    /// Do not wait between the scenes, and end with the last
    #[arg(long)]
    pub fast: bool,
}
