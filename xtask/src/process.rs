//! Running other programs, visibly: each command line is shown before its output, so that it can be repeated by hand.

use anyhow::{Context, bail};
use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Where Debian keeps servers; an ordinary user's `PATH` leaves these out.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/usr/local/sbin", "/usr/sbin"];

/// The profile of everything that is tested.
const PROFILE: &str = "ci";

/// The cargo that runs this very task.
pub fn cargo() -> Command {
    command(&env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
}

/// The same for the whole workspace in the tests' profile. All steps ask for just this, so nothing is built twice.
pub fn cargo_for_all(task: &str) -> Command {
    let mut cargo = cargo();
    cargo.args([task, "--workspace", "--profile", PROFILE]);
    cargo
}

/// A command that finds what [`find`] finds, and so do the programs it starts.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    if let Ok(path) = env::join_paths(search_path()) {
        command.env("PATH", path);
    }
    command
}

/// Runs the command to its end; anything but success is an error that says which.
pub fn check(command: &mut Command) -> anyhow::Result<()> {
    let line = command_line(command);
    eprintln!("$ {line}");
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// What the command prints, if it succeeds.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let line = command_line(command);
    let output = command.output().with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed no text"))
}

/// Whether the command succeeds, its output unseen.
pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Where a program is, if it is installed.
pub fn find(program: &str) -> Option<PathBuf> {
    search_path().into_iter().map(|directory| directory.join(program)).find(|path| path.is_file())
}

/// Where cargo puts what it builds.
pub fn target_directory() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

/// Where [`cargo_for_all`] puts it.
pub fn built(name: &str) -> PathBuf {
    target_directory().join(PROFILE).join(name)
}

fn search_path() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> =
        env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    directories.extend(SYSTEM_DIRECTORIES.map(PathBuf::from));
    directories
}

fn command_line(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    // The cargo and python of this machine are found by long paths that say nothing.
    let program = if program.is_absolute() {
        program.file_name().unwrap_or(command.get_program())
    } else {
        command.get_program()
    };
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
