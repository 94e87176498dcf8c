//! `reveille completions` and `reveille man`: both are made from the command line itself.

use crate::args::{CompletionsArgs, ManArgs, command_line};
use anyhow::{Context, Result};
use std::process::ExitCode;

pub fn completions(command: &CompletionsArgs) -> ExitCode {
    clap_complete::generate(command.shell, &mut command_line(), "reveille", &mut std::io::stdout());
    ExitCode::SUCCESS
}

/// `reveille.1`, `reveille-job.1`, `reveille-job-submit.1` and so on.
pub fn man(command: &ManArgs) -> Result<ExitCode> {
    let folder = &command.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    clap_mangen::generate_to(command_line(), folder)
        .with_context(|| format!("writing to {}", folder.display()))?;
    eprintln!("the pages are in {}; read one with `man {}/reveille.1`", folder.display(), folder.display());
    Ok(ExitCode::SUCCESS)
}
