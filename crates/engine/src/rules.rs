//! The files that operators write: `pools.yaml`, `safety.yaml`, `timeouts.yaml`, `output_scanners.yaml`.
//!
//! They are read at the start and again when they change. A file that cannot be used stops a start;
//! later it is reported and the last good one stays in force.

use reveille_core::digest::sha256_hex;
use reveille_core::id::Topic;
use reveille_core::job::Job;
use reveille_core::life::Limits;
use reveille_core::placement::routing::{Pools, Routing};
use reveille_core::policy::{Document, Policy};
use reveille_core::scan::{self, Library};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest file that is read.
const FILE_LEN_MAX: u64 = 2 * 1024 * 1024;

/// What is in force.
#[derive(Debug, Clone)]
pub struct Rules {
    pub policy: Policy,
    pub routing: Arc<Routing>,
    pub timeouts: Timeouts,
}

impl Default for Rules {
    fn default() -> Self {
        Self { policy: Policy::builtin(), routing: Arc::default(), timeouts: Timeouts::default() }
    }
}

/// Where they are read from; without a file the built-in behaviour holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleFiles {
    pub pools: Option<PathBuf>,
    pub policy: Option<PathBuf>,
    pub timeouts: Option<PathBuf>,
    /// More scanners for the rules of the policy.
    pub scanners: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct BadFile {
    pub file: String,
    pub problem: String,
    /// Of its text, if that could be read.
    pub sha256: Option<String>,
}

/// `timeouts.yaml` as it is written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    reconciler: Reconciler,
    topics: BTreeMap<Topic, TopicTimeouts>,
    /// Kept for the workflow engine; nothing reads them yet.
    workflows: BTreeMap<String, WorkflowTimeouts>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Reconciler {
    dispatch_timeout_seconds: Option<u32>,
    running_timeout_seconds: Option<u32>,
    /// Timers need no scan; the key is accepted because existing files have it.
    #[serde(rename = "scan_interval_seconds")]
    _scan_interval_seconds: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TopicTimeouts {
    timeout_seconds: Option<u32>,
    max_retries: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WorkflowTimeouts {
    #[serde(rename = "child_timeout_seconds")]
    _child_timeout_seconds: Option<u32>,
    #[serde(rename = "total_timeout_seconds")]
    _total_timeout_seconds: Option<u32>,
    #[serde(rename = "max_retries")]
    _max_retries: Option<u32>,
}

impl Rules {
    /// How long this job may stay where it is, and how often it may be tried.
    pub fn limits(&self, job: &Job) -> Limits {
        let defaults = Limits::default();
        let (general, topic) = (&self.timeouts.reconciler, self.timeouts.topics.get(&job.request.topic));
        let ms = |seconds: u32| i64::from(seconds) * 1000;
        let running = topic.and_then(|topic| topic.timeout_seconds).or(general.running_timeout_seconds);
        Limits {
            dispatched_ms: general
                .dispatch_timeout_seconds
                .filter(|s| *s > 0)
                .map_or(defaults.dispatched_ms, ms),
            running_ms: running.filter(|s| *s > 0).map_or(defaults.running_ms, ms),
            retries_max: topic
                .and_then(|topic| topic.max_retries)
                .map_or(defaults.retries_max, |retries| retries.saturating_add(1)),
            ..defaults
        }
    }
}

impl RuleFiles {
    pub fn load(&self) -> Result<Rules, BadFile> {
        let mut rules = Rules::default();
        let (mut library, mut scanners) = (Library::default(), String::new());
        if let Some(path) = &self.scanners {
            scanners = read(path)?;
            let document: scan::Document = parse(path, &scanners)?;
            library = Library::new(&document).map_err(|problem| bad(path, &problem).with(&scanners))?;
        }
        if let Some(path) = &self.policy {
            let text = read(path)?;
            let policy = policy_from(&text, &scanners, &library);
            rules.policy = policy.map_err(|problem| bad(path, &problem).with(&text))?;
        }
        if let Some(path) = &self.pools {
            let text = read(path)?;
            let pools: Pools = parse(path, &text)?;
            pools.check().map_err(|problem| bad(path, &problem).with(&text))?;
            rules.routing = Arc::new(Routing::Mapped(pools));
        }
        if let Some(path) = &self.timeouts {
            rules.timeouts = parse(path, &read(path)?)?;
        }
        Ok(rules)
    }

    /// The texts as they are now, or why they cannot be read, to see whether anything changed.
    pub fn fingerprint(&self) -> Vec<Option<String>> {
        [&self.pools, &self.policy, &self.timeouts, &self.scanners]
            .into_iter()
            .map(|path| path.as_ref().map(|path| read(path).unwrap_or_else(|bad| bad.problem)))
            .collect()
    }
}

/// A policy from the text of a `safety.yaml`, or what is wrong with it.
pub fn read_policy(text: &str) -> Result<Policy, String> {
    policy_from(text, "", &Library::default())
}

fn policy_from(text: &str, scanners: &str, library: &Library) -> Result<Policy, String> {
    if text.len() as u64 > FILE_LEN_MAX {
        return Err(format!("has {} bytes; at most {FILE_LEN_MAX} are read", text.len()));
    }
    let document: Document = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let source = [text.as_bytes(), scanners.as_bytes()].concat();
    Policy::with_scanners(document, &source, library).map_err(|error| error.to_string())
}

fn read(path: &Path) -> Result<String, BadFile> {
    let len = std::fs::metadata(path).map_err(|error| bad(path, &error))?.len();
    if len > FILE_LEN_MAX {
        return Err(bad(path, &format!("has {len} bytes; at most {FILE_LEN_MAX} are read")));
    }
    std::fs::read_to_string(path).map_err(|error| bad(path, &error))
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, BadFile> {
    serde_saphyr::from_str(text).map_err(|error| bad(path, &error).with(text))
}

fn bad(path: &Path, problem: &impl ToString) -> BadFile {
    BadFile { file: path.display().to_string(), problem: problem.to_string(), sha256: None }
}

impl BadFile {
    fn with(self, text: &str) -> Self {
        Self { sha256: Some(sha256_hex(text.as_bytes())), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_core::life;
    use reveille_core::request::Request;
    use reveille_core::time::Millis;

    fn load(name: &str, text: &str) -> Result<Rules, String> {
        let own = format!("reveille-rules-{}-{:?}-{name}", std::process::id(), std::thread::current().id());
        let dir = std::env::temp_dir().join(own);
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("file.yaml");
        std::fs::write(&path, text).unwrap();
        let files = match name {
            "pools" => RuleFiles { pools: Some(path), ..RuleFiles::default() },
            "policy" => RuleFiles { policy: Some(path), ..RuleFiles::default() },
            _ => RuleFiles { timeouts: Some(path), ..RuleFiles::default() },
        };
        let rules = files.load().map_err(|error| error.to_string());
        std::fs::remove_dir_all(dir).unwrap();
        rules
    }

    #[test]
    fn the_references_files_are_read() {
        let rules = load(
            "pools",
            "topics:\n  job.echo: echo\n  job.gpu: [big, small]\npools:\n  echo: {}\n  big:\n    requires: [gpu]\n    status: draining\n    on_worker_lost: fail\n",
        )
        .unwrap();
        assert!(rules.routing.has_topic(&Topic::known("job.gpu")));
        let rules = load(
            "policy",
            "version: v1\nrules:\n  - id: ok\n    match:\n      topics: [\"job.*\"]\n    decision: allow\n",
        )
        .unwrap();
        assert!(rules.policy.snapshot().starts_with("v1:"));
        let rules = load(
            "timeouts",
            "reconciler:\n  dispatch_timeout_seconds: 5\n  running_timeout_seconds: 900\n  scan_interval_seconds: 30\ntopics:\n  job.echo:\n    timeout_seconds: 7\n    max_retries: 2\n",
        )
        .unwrap();
        let limits = |topic: &str| rules.limits(&life::submit(Request::plain("j", topic), Millis(0)));
        assert_eq!((limits("job.echo").running_ms, limits("job.echo").retries_max), (7_000, 3));
        assert_eq!((limits("job.x").running_ms, limits("job.x").dispatched_ms), (900_000, 5_000));
    }

    #[test]
    fn scanners_of_a_file_are_there_for_the_rules_and_part_of_the_policy() {
        let dir = std::env::temp_dir().join(format!("reveille-scanners-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (policy, scanners) = (dir.join("safety.yaml"), dir.join("output_scanners.yaml"));
        let files = RuleFiles {
            policy: Some(policy.clone()),
            scanners: Some(scanners.clone()),
            ..RuleFiles::default()
        };
        std::fs::write(&policy, "output_rules: [{id: b, match: {scanners: [badge]}, decision: deny}]")
            .unwrap();
        let load = |text: &str| {
            std::fs::write(&scanners, text).unwrap();
            (files.load().map_err(|error| error.to_string()), files.fingerprint())
        };
        let (first, seen) =
            load("scanners: {badge: {finding_type: staff, patterns: [{name: number, regex: 'B-[0-9]{6}'}]}}");
        let first = first.unwrap().policy;
        let looked = |content: &[u8]| {
            let metadata =
                reveille_core::policy::ContentMetadata { len: content.len() as u64, has_error: false };
            let mode = reveille_core::policy::FailMode::Open;
            let request = Request::plain("j", "job.a");
            first.output().check_content(&request, metadata, content, mode).verdict.rule_id
        };
        assert_eq!((looked(b"B-123456").as_str(), looked(b"B-12").as_str()), ("b", "default"));
        let (second, seen_after) =
            load("scanners: {badge: {finding_type: staff, patterns: [{name: number, regex: 'C-[0-9]{6}'}]}}");
        assert_ne!(second.unwrap().policy.snapshot(), first.snapshot(), "another policy");
        assert_ne!(seen, seen_after, "and noticed while the server runs");
        for (text, part) in [
            ("scanners: {other: {patterns: [{name: n, regex: 'x'}]}}", "badge"),
            ("scanners: {badge: {patterns: [{name: n, regex: '('}]}}", "badge"),
            ("scaners: {}", "scaners"),
        ] {
            let error = load(text).0.err().unwrap_or_default();
            assert!(error.contains(part), "{text}: {error}");
        }
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_bad_file_says_what_is_wrong_and_where() {
        for (name, text, part) in [
            ("pools", "topics: {}", "at least one topic"),
            ("pools", "topcs: {}", "topcs"),
            ("policy", "rules: [{id: a, decision: maybe}]", "maybe"),
            ("policy", "rules: [", "file.yaml"),
            ("timeouts", "reconciler: {dispatch_timeout_seconds: soon}", "file.yaml"),
        ] {
            let error = load(name, text).err().unwrap_or_default();
            assert!(error.contains(part), "{name}: {error}");
        }
    }
}
