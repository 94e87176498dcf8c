//! What may be in the dependency graph: licences, sources, banned crates, second versions.
//!
//! The rules are in `deny.toml`, the file of cargo-deny. The parts of it that need nothing but the graph are checked here,
//! by the same words, since building cargo-deny takes longer than all of these checks. Advisories are cargo-deny's:
//! they need it and its database, and where either cannot be had the step says that nobody looked.

use crate::packages::{self, Package, PackageKey};
use crate::process::{cargo, check, succeeds};
use crate::test::NotRun;
use anyhow::{Context, bail};
use serde::Deserialize;
use spdx::{Expression, ParseMode};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const RULES: &str = "deny.toml";

/// The part of the file that is honoured here.
#[derive(Debug, Deserialize)]
struct Rules {
    graph: Graph,
    licenses: Licences,
    sources: Sources,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Licences {
    allow: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Named>,
    skip: Vec<Named>,
}

/// A crate, `name` or `name@version`, where the version may be its beginning: `rand@0.8`.
#[derive(Debug, Deserialize)]
struct Named {
    #[serde(rename = "crate")]
    spec: String,
    #[serde(default)]
    reason: String,
}

impl Named {
    fn is(&self, key: &PackageKey) -> bool {
        match self.spec.split_once('@') {
            None => self.spec == key.name,
            Some((name, version)) => {
                let rest = key.version.strip_prefix(version);
                name == key.name && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
        }
    }
}

pub fn run() -> anyhow::Result<()> {
    let text = fs::read_to_string(RULES).with_context(|| format!("cannot read {RULES}"))?;
    let rules: Rules = toml::from_str(&text).with_context(|| RULES.to_owned())?;
    let packages = built_packages(&rules.graph.targets)?;
    let complaints = complaints(&rules, &packages);
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    if !complaints.is_empty() {
        bail!("{} breaches of {RULES}", complaints.len());
    }
    eprintln!("{} packages are as {RULES} says", packages.len());
    Ok(())
}

/// What is known to be wrong with a dependency, where cargo-deny and the database of advisories can be had.
pub fn advisories() -> anyhow::Result<()> {
    if !succeeds(cargo().args(["deny", "--version"])) {
        return Err(NotRun("cargo-deny is not installed (`cargo install --locked cargo-deny`)").into());
    }
    if !succeeds(cargo().args(["deny", "fetch", "db"])) {
        return Err(NotRun("the database of advisories cannot be fetched from here").into());
    }
    check(cargo().args(["deny", "--locked", "--offline", "check", "advisories"]))
}

/// Everything in the workspace that is compiled for one of the targets, tests included.
fn built_packages(targets: &[String]) -> anyhow::Result<Vec<Package>> {
    let mut described = packages::described(targets)?;
    let mut built = BTreeMap::new();
    for target in targets {
        for line in packages::tree(&["--workspace", "--edges", "normal,build,dev", "--target", target])? {
            if let Some(package) = described.remove(&line.key) {
                built.insert(line.key, package);
            } else if !built.contains_key(&line.key) {
                bail!("cargo metadata does not know {}", line.key);
            }
        }
    }
    Ok(built.into_values().collect())
}

fn complaints(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let mut complaints = licence_complaints(&rules.licenses, packages);
    complaints.extend(packages.iter().filter_map(|package| source_complaint(&rules.sources, package)));
    complaints.extend(ban_complaints(&rules.bans, packages));
    complaints.extend(version_complaints(&rules.bans.skip, packages));
    complaints
}

fn licence_complaints(rules: &Licences, packages: &[Package]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut asked = BTreeSet::new();
    for package in packages {
        let key = &package.key;
        let Some(written) = &package.license else {
            complaints.push(format!("{key}: has no licence"));
            continue;
        };
        let Ok(expression) = Expression::parse_mode(written, ParseMode::LAX) else {
            complaints.push(format!("{key}: {written:?} is no licence expression"));
            continue;
        };
        asked.extend(expression.requirements().map(|wanted| wanted.req.to_string()));
        if !expression.evaluate(|wanted| rules.allow.contains(&wanted.to_string())) {
            complaints.push(format!("{key}: its licence {written:?} is not allowed"));
        }
    }
    for unused in rules.allow.difference(&asked) {
        complaints.push(format!("{RULES}: licenses.allow: nothing has the licence {unused:?}"));
    }
    complaints
}

fn source_complaint(rules: &Sources, package: &Package) -> Option<String> {
    let source = package.source.as_deref()?;
    let registry = source.strip_prefix("registry+");
    let is_known =
        registry.is_some_and(|registry| rules.allow_registry.iter().any(|known| known == registry));
    (!is_known).then(|| format!("{}: comes from {source}, which is not allowed", package.key))
}

fn ban_complaints(rules: &Bans, packages: &[Package]) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in packages {
        for banned in rules.deny.iter().filter(|banned| banned.is(&package.key)) {
            complaints.push(format!("{}: banned: {}", package.key, banned.reason));
        }
        // A path is a package of this workspace; anything else has to say which versions it works with.
        for any in package.dependencies.iter().filter(|asked| asked.req == "*" && asked.path.is_none()) {
            complaints.push(format!("{}: asks for any version of {}", package.key, any.name));
        }
    }
    complaints
}

/// A second version is one that is not listed; a line of the list that no second version needs goes.
fn version_complaints(skip: &[Named], packages: &[Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&PackageKey>> = BTreeMap::new();
    for Package { key, .. } in packages {
        versions.entry(&key.name).or_default().push(key);
    }
    let mut complaints = Vec::new();
    for keys in versions.values() {
        let unlisted: Vec<&&PackageKey> =
            keys.iter().filter(|key| !skip.iter().any(|listed| listed.is(key))).collect();
        if let [_, _, ..] = unlisted.as_slice() {
            let versions: Vec<&str> = unlisted.iter().map(|key| key.version.as_str()).collect();
            let name = &keys[0].name;
            complaints.push(format!(
                "{name}: in versions {}; `cargo tree --invert {name}@…` says whose; one can go, or a line of bans.skip is needed",
                versions.join(" and ")
            ));
        }
    }
    for listed in skip {
        let is_second = |keys: &Vec<&PackageKey>| keys.len() > 1 && keys.iter().any(|key| listed.is(key));
        if !versions.values().any(is_second) {
            complaints.push(format!("{RULES}: bans.skip: {} is no second version any more", listed.spec));
        }
    }
    complaints
}

#[cfg(test)]
mod tests;
