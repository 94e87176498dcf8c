//! Writes the descriptor set to a file, for `tests/compare_descriptors.py`.

use std::process::ExitCode;
use std::{env, fs};

fn main() -> ExitCode {
    let Some(path) = env::args_os().nth(1) else {
        eprintln!("usage: descriptors OUTFILE");
        return ExitCode::FAILURE;
    };
    match fs::write(&path, reveille_wire::DESCRIPTORS) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write {}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}
