//! The rules of CONTRIBUTING.md that no compiler checks.
//!
//! A rule is here if a machine can tell and a reader would be tripped by the breach; matters of taste are not.

mod glossary;
mod rooms;
mod routes;
mod shown;
mod source;

use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const SOURCE_DIRECTORIES: [&str; 5] = ["crates", "fuzz", "sim", "xtask", "tests"];
const SOURCE_EXTENSIONS: [&str; 4] = ["rs", "py", "proto", "toml"];
const LINES_MAX: usize = 500;
/// Spelled in halves, or this file would break its own rule.
const PUT_OFF: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

pub fn run() -> anyhow::Result<()> {
    let mut complaints = Vec::new();
    let mut functions = BTreeSet::new();
    for directory in SOURCE_DIRECTORIES {
        for path in sources_under(Path::new(directory))? {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            complaints.extend(source_complaints(&path, &text));
            functions.extend(shown::functions_in(&text).map(str::to_owned));
        }
    }
    complaints.extend(shown::complaints(&functions)?);
    complaints.extend(glossary::complaints()?);
    complaints.extend(rooms::complaints()?);
    complaints.extend(routes::complaints()?);
    complaints.extend(dependency_complaints(&fs::read_to_string("Cargo.toml")?));
    complaints.extend(changelog_complaints(&fs::read_to_string("CHANGELOG.md").unwrap_or_default()));
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    match complaints.len() {
        0 => Ok(()),
        count => bail!("{count} breaches of the rules in CONTRIBUTING.md"),
    }
}

/// All source files below, in a stable order.
fn sources_under(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    let mut sources = Vec::new();
    for path in paths {
        if path.is_dir() {
            sources.extend(sources_under(&path)?);
        } else if path.extension().is_some_and(|end| SOURCE_EXTENSIONS.iter().any(|known| end == *known)) {
            sources.push(path);
        }
    }
    Ok(sources)
}

fn source_complaints(path: &Path, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut complain =
        |line: usize, what: &str| complaints.push(format!("{}:{line}: {what}", path.display()));
    if path.extension().is_some_and(|end| end == "rs") {
        if path.ends_with("mod.rs") {
            complain(1, "a module is `name.rs` beside `name/`, never `mod.rs`");
        }
        if says_what_it_is(path) && !text.starts_with("//!") {
            complain(1, "open with `//!`: what this is, why so, what is deliberately not here");
        }
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        complain(lines, &format!("{lines} lines; a file is one idea, in at most {LINES_MAX}"));
    }
    for (index, line) in text.lines().enumerate() {
        if line.split(|letter: char| !letter.is_alphanumeric()).any(|word| PUT_OFF.contains(&word)) {
            complain(index + 1, "do it, drop it, or write it down where plans are kept");
        }
    }
    complaints
}

/// Tests and build scripts are known by where they are; all others introduce themselves.
fn says_what_it_is(path: &Path) -> bool {
    !path.ends_with("build.rs") && !path.iter().any(|part| part == "tests" || part == "tests.rs")
}

/// A dependency stands under a comment with its reason; a blank line ends what the comment speaks for. Our own
/// crates need no reason.
fn dependency_complaints(manifest: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut in_dependencies = false;
    let mut has_reason = false;
    for (index, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            in_dependencies = line == "[workspace.dependencies]";
            has_reason = false;
        } else if line.trim().is_empty() {
            has_reason = false;
        } else if line.starts_with('#') {
            has_reason = true;
        } else if in_dependencies && !has_reason && !line.contains("path = ") {
            complaints.push(format!("Cargo.toml:{}: a dependency without a reason above it", index + 1));
        }
    }
    complaints
}

fn changelog_complaints(changelog: &str) -> Option<String> {
    let has_unreleased = changelog.lines().any(|line| line.starts_with("## ") && line.contains("Unreleased"));
    (!has_unreleased).then(|| "CHANGELOG.md:1: no `## Unreleased` section".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_source(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(source_complaints(Path::new(path), text), expected);
    }

    #[test]
    fn a_source_file_says_what_it_is() {
        const OPEN: &str = "open with `//!`: what this is, why so, what is deliberately not here";
        check_source("crates/core/src/id.rs", "//! Ids.\n", &[]);
        check_source(
            "crates/core/src/id.rs",
            "use std::fmt;\n",
            &[&format!("crates/core/src/id.rs:1: {OPEN}")],
        );
        check_source("crates/wire/build.rs", "fn main() {}\n", &[]);
        check_source("crates/core/tests/life.rs", "#[test]\nfn t() {}\n", &[]);
        check_source("crates/core/src/life/tests.rs", "use super::*;\n", &[]);
    }

    #[test]
    fn nothing_is_put_off() {
        let put_off = format!("//! A.\n// {}: later\n", PUT_OFF[0]);
        check_source(
            "sim/src/a.rs",
            &put_off,
            &["sim/src/a.rs:2: do it, drop it, or write it down where plans are kept"],
        );
        check_source("sim/src/a.rs", &format!("//! {}S are words.\n", PUT_OFF[0]), &[]);
    }

    #[test]
    fn a_file_is_not_too_long() {
        check_source("sim/src/a.rs", &"//! A.\n".repeat(LINES_MAX), &[]);
        let over = "//! A.\n".repeat(LINES_MAX + 1);
        check_source(
            "sim/src/a.rs",
            &over,
            &["sim/src/a.rs:501: 501 lines; a file is one idea, in at most 500"],
        );
    }

    #[test]
    fn a_module_is_not_called_mod() {
        let complaint = "sim/src/a/mod.rs:1: a module is `name.rs` beside `name/`, never `mod.rs`";
        check_source("sim/src/a/mod.rs", "//! A.\n", &[complaint]);
    }

    #[test]
    fn a_dependency_has_a_reason() {
        let manifest = "[workspace.dependencies]\nours = { path = \"crates/ours\" }\n\n# Why.\na = \"1\"\nb = \"1\"\n\nc = \"1\"\n";
        assert_eq!(dependency_complaints(manifest), ["Cargo.toml:8: a dependency without a reason above it"]);
    }

    #[test]
    fn the_changelog_has_a_place_for_the_next_release() {
        assert_eq!(changelog_complaints("# Changelog\n\n## Unreleased\n"), None);
        assert_eq!(changelog_complaints("# Changelog\n\n## [Unreleased]\n"), None);
        assert!(changelog_complaints("# Changelog\n").is_some());
    }
}
