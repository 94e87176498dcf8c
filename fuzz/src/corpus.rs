//! The inputs that a target begins with, and where a failing one is written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What is checked in for a target, in a stable order.
pub fn read(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(here().join("corpus").join(target))?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    paths.sort();
    paths.into_iter().map(|path| input(&path)).collect()
}

/// An input from a file. Bytes that are no text are checked in as hex digits, so that a diff shows them.
pub fn input(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = fs::read(path)?;
    if path.extension().is_none_or(|end| end != "hex") {
        return Ok(bytes);
    }
    let digits: Vec<u8> = bytes.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok().filter(|_| text.len() == 2)
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(pair).collect();
    bytes.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{} is not hex", path.display())))
}

/// Where inputs go that are to be looked at; not checked in.
pub fn found() -> io::Result<PathBuf> {
    let folder = here().join("found");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
