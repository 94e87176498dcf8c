//! The packages that a build is made of, as cargo tells it.
//!
//! Three sources, since none knows everything: `cargo tree` knows what is really compiled, with which features;
//! `cargo metadata` knows licences and where a package comes from, but also lists what no feature asks for; the lock
//! file knows the checksums.

use crate::process::{cargo, output};
use anyhow::{Context, bail};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

/// What one version of one crate is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct PackageKey {
    pub name: String,
    pub version: String,
}

impl fmt::Display for PackageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// What its author says of it.
#[derive(Debug, Clone, Deserialize)]
pub struct Package {
    #[serde(flatten)]
    pub key: PackageKey,
    pub license: Option<String>,
    pub description: Option<String>,
    pub repository: Option<String>,
    /// Nothing for a package of this workspace.
    pub source: Option<String>,
    pub manifest_path: String,
    pub dependencies: Vec<Requirement>,
}

/// What a package asks for.
#[derive(Debug, Clone, Deserialize)]
pub struct Requirement {
    pub name: String,
    pub req: String,
    pub path: Option<String>,
}

/// One line of `cargo tree`: how far below the root, which package, with which features.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeLine {
    pub depth: usize,
    pub key: PackageKey,
    pub features: BTreeSet<String>,
}

/// What there is to say of every package that might be built for these targets.
pub fn described(targets: &[String]) -> anyhow::Result<BTreeMap<PackageKey, Package>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--locked"]);
    for target in targets {
        command.args(["--filter-platform", target]);
    }
    let metadata: Metadata = serde_json::from_str(&output(&mut command)?).context("cargo metadata")?;
    Ok(metadata.packages.into_iter().map(|package| (package.key.clone(), package)).collect())
}

/// The tree of what is built. `of` says of which packages, for which target and along which edges.
pub fn tree(of: &[&str]) -> anyhow::Result<Vec<TreeLine>> {
    let text =
        output(cargo().args(["tree", "--locked", "--prefix", "depth", "--format", " {p}|{f}"]).args(of))?;
    let lines = text.lines().filter(|line| !line.is_empty()).map(tree_line).collect::<Result<Vec<_>, _>>()?;
    if lines.is_empty() {
        bail!("cargo tree {} printed nothing", of.join(" "));
    }
    Ok(lines)
}

/// SHA-256 of each archive, as the registry gave it out.
pub fn checksums() -> anyhow::Result<BTreeMap<PackageKey, String>> {
    #[derive(Deserialize)]
    struct Lock {
        package: Vec<Locked>,
    }
    #[derive(Deserialize)]
    struct Locked {
        #[serde(flatten)]
        key: PackageKey,
        checksum: Option<String>,
    }
    let lock: Lock = toml::from_str(&fs::read_to_string("Cargo.lock")?).context("Cargo.lock")?;
    Ok(lock.package.into_iter().filter_map(|locked| Some((locked.key, locked.checksum?))).collect())
}

/// `2 name v1.2.3 (proc-macro)|feature,feature (*)`, where the star says that what is below stood further up.
fn tree_line(line: &str) -> anyhow::Result<TreeLine> {
    let parse = || {
        let (depth, rest) = line.split_once(' ')?;
        let (package, features) = rest.split_once('|')?;
        let mut words = package.split_whitespace();
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        let features = features.trim_end_matches("(*)").trim();
        Some(TreeLine {
            depth: depth.parse().ok()?,
            key: PackageKey { name: name.to_owned(), version: version.to_owned() },
            features: features.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        })
    };
    parse().with_context(|| format!("no line of `cargo tree`: {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_tree_is_a_package_and_its_features() {
        let check = |line: &str, depth, name: &str, version: &str, features: &[&str]| {
            let key = PackageKey { name: name.to_owned(), version: version.to_owned() };
            let features = features.iter().map(ToString::to_string).collect();
            assert_eq!(tree_line(line).unwrap(), TreeLine { depth, key, features });
        };
        check("0 reveille v0.1.0 (/src/crates/reveille)|", 0, "reveille", "0.1.0", &[]);
        check("12 serde_derive v1.0.1 (proc-macro)|default (*)", 12, "serde_derive", "1.0.1", &["default"]);
        check("1 toml v1.1.8+spec-1.1.0|parse,std", 1, "toml", "1.1.8+spec-1.1.0", &["parse", "std"]);
        assert!(tree_line("[dev-dependencies]").is_err());
    }
}
