//! Commands that stand alone: `top`, `system`, `completions`, `man`.

use super::ServerArgs;
use clap::Args as ClapArgs;
use std::path::PathBuf;

#[derive(ClapArgs)]
pub struct TopArgs {
    /// Seconds between two looks
    #[arg(long, default_value_t = 1, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub every: u64,
    /// Look once and print that
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(ClapArgs)]
pub struct SystemArgs {
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(ClapArgs)]
pub struct CompletionsArgs {
    /// bash, zsh, fish, elvish or powershell
    pub shell: clap_complete::Shell,
}

#[derive(ClapArgs)]
pub struct ManArgs {
    /// Where to put one page for each command
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}
