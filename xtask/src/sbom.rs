//! The bill of materials of the server, in `CycloneDX`: what a scanner needs to say whether a finding concerns this build.
//!
//! It lists what `cargo build --package reveille` compiles for a target, each with its checksum and licence: `required`
//! is in the binary, `excluded` ran when it was built and is not. The same commit gives the same bytes: no random serial
//! number, and the time is that of the commit, or `SOURCE_DATE_EPOCH`.

use crate::packages::{self, Package, PackageKey, TreeLine};
use crate::process::{command, output, target_directory};
use anyhow::{Context, bail};
use serde_json::{Value as Json, json};
use spdx::{Expression, ParseMode};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const SPEC_VERSION: &str = "1.6";
/// The package whose binary is described.
const SUBJECT: &str = "reveille";
/// SQLite's C code comes inside this crate, and has advisories of its own.
const SQLITE_CRATE: &str = "libsqlite3-sys";
const SQLITE_HEADER: &str = "sqlite3/sqlite3.h";
const SQLITE_LICENCE: &str = "blessing";

pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (mut target, mut path) = (None, None);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} wants a value"))?;
        match word.as_str() {
            "--target" => target = Some(value.clone()),
            "--output" => path = Some(PathBuf::from(value)),
            _ => bail!("expected `[--target TRIPLE] [--output FILE]`, not {word}"),
        }
    }
    let target = target.map_or_else(host, Ok)?;
    let bill = Build::read(&target)?.bill(moment()?.as_deref());
    let path =
        path.unwrap_or_else(|| target_directory().join("sbom").join(format!("{SUBJECT}-{target}.cdx.json")));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let text = format!("{}\n", serde_json::to_string_pretty(&bill)?);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

/// Everything that the document is made of.
struct Build {
    target: String,
    subject: PackageKey,
    packages: BTreeMap<PackageKey, Package>,
    features: BTreeMap<PackageKey, BTreeSet<String>>,
    needs: BTreeMap<PackageKey, BTreeSet<PackageKey>>,
    /// What ends up in the binary.
    shipped: BTreeSet<PackageKey>,
    checksums: BTreeMap<PackageKey, String>,
    sqlite_version: Option<String>,
}

impl Build {
    fn read(target: &str) -> anyhow::Result<Self> {
        let of = |edges| packages::tree(&["--package", SUBJECT, "--target", target, "--edges", edges]);
        let all = of("normal,build")?;
        let shipped = of("normal,no-proc-macro")?.into_iter().map(|line| line.key).collect();
        let packages = packages::described(&[target.to_owned()])?;
        let mut features: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for line in &all {
            if !packages.contains_key(&line.key) {
                bail!("cargo metadata does not know {}", line.key);
            }
            features.entry(line.key.clone()).or_default().extend(line.features.iter().cloned());
        }
        let sqlite = packages.values().find(|package| package.key.name == SQLITE_CRATE);
        Ok(Self {
            target: target.to_owned(),
            subject: all[0].key.clone(),
            sqlite_version: sqlite.map(sqlite_version).transpose()?,
            needs: needs(&all),
            checksums: packages::checksums()?,
            packages,
            features,
            shipped,
        })
    }

    fn bill(&self, moment: Option<&str>) -> Json {
        let subject = self.component(&self.subject);
        let mut components: Vec<Json> =
            self.features.keys().filter(|key| **key != self.subject).map(|key| self.component(key)).collect();
        let mut dependencies: Vec<Json> = self.features.keys().map(|key| self.dependency(key)).collect();
        if let Some(version) = &self.sqlite_version {
            components.push(sqlite(version));
            dependencies.push(json!({"ref": sqlite_reference(version), "dependsOn": []}));
        }
        let mut metadata = json!({
            "lifecycles": [{"phase": "build"}],
            "tools": {"components": [{"type": "application", "name": "cargo xtask sbom", "version": env!("CARGO_PKG_VERSION")}]},
            "component": subject,
            "properties": [{"name": "cdx:rustc:sbom:target:triple", "value": self.target}],
        });
        if let Some(moment) = moment {
            metadata["timestamp"] = json!(moment);
        }
        json!({
            "$schema": format!("http://cyclonedx.org/schema/bom-{SPEC_VERSION}.schema.json"),
            "bomFormat": "CycloneDX",
            "specVersion": SPEC_VERSION,
            "version": 1,
            "metadata": metadata,
            "components": components,
            "dependencies": dependencies,
        })
    }

    fn component(&self, key: &PackageKey) -> Json {
        let package = &self.packages[key];
        let features: Vec<&str> = self.features[key].iter().map(String::as_str).collect();
        let mut component = json!({
            "type": if *key == self.subject { "application" } else { "library" },
            "bom-ref": self.reference(key),
            "name": key.name,
            "version": key.version,
            "scope": if self.shipped.contains(key) { "required" } else { "excluded" },
            "licenses": package.license.as_deref().map(licences).unwrap_or_default(),
        });
        if !features.is_empty() {
            component["properties"] = json!([{"name": "cargo:features", "value": features.join(",")}]);
        }
        if let Some(description) = &package.description {
            component["description"] = json!(description.trim());
        }
        if let Some(repository) = &package.repository {
            component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
        }
        // Only what crates.io gave out can be looked up there.
        if package.source.is_some() {
            component["purl"] = json!(purl(key));
        }
        if let Some(checksum) = self.checksums.get(key) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    }

    fn dependency(&self, key: &PackageKey) -> Json {
        let mut needs: Vec<String> =
            self.needs.get(key).into_iter().flatten().map(|key| self.reference(key)).collect();
        let sqlite = self.sqlite_version.as_ref().filter(|_| key.name == SQLITE_CRATE);
        needs.extend(sqlite.map(|version| sqlite_reference(version)));
        json!({"ref": self.reference(key), "dependsOn": needs})
    }

    fn reference(&self, key: &PackageKey) -> String {
        let is_ours = self.packages[key].source.is_none();
        if is_ours { format!("{}@{}", key.name, key.version) } else { purl(key) }
    }
}

/// Who needs whom: a line belongs to the nearest line above that is one less deep.
fn needs(lines: &[TreeLine]) -> BTreeMap<PackageKey, BTreeSet<PackageKey>> {
    let mut needs: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let mut above: Vec<&PackageKey> = Vec::new();
    for line in lines {
        above.truncate(line.depth);
        if let Some(parent) = above.last() {
            needs.entry((*parent).clone()).or_default().insert(line.key.clone());
        }
        above.push(&line.key);
    }
    needs
}

/// The plus sign before build metadata would be read as a space.
fn purl(key: &PackageKey) -> String {
    format!("pkg:cargo/{}@{}", key.name, key.version.replace('+', "%2B"))
}

/// An id where it is one licence, an expression where it is several, a name where it is neither.
fn licences(written: &str) -> Json {
    let Ok(expression) = Expression::parse_mode(written, ParseMode::LAX) else {
        return json!([{"license": {"name": written}}]);
    };
    let asked: Vec<_> = expression.requirements().collect();
    match asked.as_slice() {
        [one] if one.req.addition.is_none() => json!([{"license": {"id": one.req.to_string()}}]),
        // The slash is an older way to write OR.
        _ => json!([{"expression": written.replace(" / ", "/").replace('/', " OR ")}]),
    }
}

fn sqlite(version: &str) -> Json {
    json!({
        "type": "library",
        "bom-ref": sqlite_reference(version),
        "name": "sqlite",
        "version": version,
        "scope": "required",
        "description": format!("The C code that {SQLITE_CRATE} compiles in."),
        "licenses": [{"license": {"id": SQLITE_LICENCE}}],
        "purl": sqlite_reference(version),
        "cpe": format!("cpe:2.3:a:sqlite:sqlite:{version}:*:*:*:*:*:*:*"),
    })
}

fn sqlite_reference(version: &str) -> String {
    format!("pkg:generic/sqlite@{version}")
}

/// The crate's own version says nothing of the SQLite in it; its header does.
fn sqlite_version(package: &Package) -> anyhow::Result<String> {
    let folder = Path::new(&package.manifest_path).parent().unwrap_or(Path::new(""));
    let header = folder.join(SQLITE_HEADER);
    let text = fs::read_to_string(&header).with_context(|| format!("cannot read {}", header.display()))?;
    let version = text.lines().find_map(|line| line.strip_prefix("#define SQLITE_VERSION "));
    let version = version.with_context(|| format!("{} names no version", header.display()))?;
    Ok(version.trim().trim_matches('"').to_owned())
}

fn host() -> anyhow::Result<String> {
    let text = output(command("rustc").arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say what it runs on")
}

/// When this was made, as far as the source can tell; nothing outside a repository.
fn moment() -> anyhow::Result<Option<String>> {
    let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => Some(seconds),
        Err(_) => output(command("git").args(["log", "-1", "--format=%ct"])).ok(),
    };
    let parse =
        |text: String| text.trim().parse().with_context(|| format!("{text:?} is no number of seconds"));
    Ok(seconds.map(parse).transpose()?.map(rfc3339))
}

/// The moment so many seconds after 1970 began, after Howard Hinnant's `civil_from_days`.
fn rfc3339(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_the_calendar_has_it() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_735_689_599), "2024-12-31T23:59:59Z");
    }

    #[test]
    fn a_licence_is_an_id_or_an_expression() {
        assert_eq!(licences("MIT"), json!([{"license": {"id": "MIT"}}]));
        assert_eq!(licences("MIT/Apache-2.0"), json!([{"expression": "MIT OR Apache-2.0"}]));
        assert_eq!(licences("Apache-2.0 / MIT"), json!([{"expression": "Apache-2.0 OR MIT"}]));
        assert_eq!(licences("MIT AND ISC"), json!([{"expression": "MIT AND ISC"}]));
        assert_eq!(licences("as you like"), json!([{"license": {"name": "as you like"}}]));
    }

    #[test]
    fn who_needs_whom_follows_from_the_depths() {
        let key = |name: &str| PackageKey { name: name.to_owned(), version: "1.0.0".to_owned() };
        let line = |depth, name| TreeLine { depth, key: key(name), features: BTreeSet::new() };
        let found = needs(&[line(0, "a"), line(1, "b"), line(2, "c"), line(1, "d"), line(2, "c")]);
        let of = |name: &str| found[&key(name)].iter().map(|key| key.name.as_str()).collect::<Vec<_>>();
        assert_eq!((of("a"), of("b"), of("d")), (vec!["b", "d"], vec!["c"], vec!["c"]));
    }
}
