//! Commands that stand alone: `top`, `system`, `completions`, `man`.

use super::Server;
use clap::Args as ClapArgs;
use std::path::PathBuf;

#[derive(ClapArgs)]
pub struct Top {
    /// Seconds between two looks
    #[arg(long, default_value_t = 1, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub every: u64,
    /// Look once and print that
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub server: Server,
}

#[derive(ClapArgs)]
pub struct System {
    #[command(flatten)]
    pub server: Server,
}

#[derive(ClapArgs)]
pub struct Completions {
    /// bash, zsh, fish, elvish or powershell
    pub shell: clap_complete::Shell,
}

#[derive(ClapArgs)]
pub struct Man {
    /// Where to put one page for each command
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}
