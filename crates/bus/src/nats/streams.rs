//! The streams: what the server keeps for us, and what it must never keep.
//!
//! Their subjects are listed explicitly. A stream over `sys.>` would also store every heartbeat, and one over the
//! workers' subjects would accept a job for a worker that is not connected: the server would confirm it.

use super::errors::{NatsOpenError, words};
use super::link::NatsLink;
use super::options::NatsOptions;
use crate::subject;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy};
use async_nats::jetstream::{Context, ErrorCode};
use futures_util::TryStreamExt;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::watch;

const KEPT_MAX: Duration = Duration::from_hours(7 * 24);
const DUPLICATES_WITHIN: Duration = Duration::from_mins(2);
const DEAD_LETTERS_MAX: i64 = 100_000;
const PAUSE: Duration = Duration::from_secs(1);

/// The subjects of workers. No stream may cover them.
const NEVER_KEPT: [&str; 2] = ["worker.>", "job.>"];

/// Our streams, as they should be.
#[derive(Clone)]
pub(super) struct Streams {
    configs: Vec<Config>,
}

impl Streams {
    pub fn new(options: &NatsOptions) -> Self {
        let stream = |name: &str, subjects: &[&str]| Config {
            name: format!("{}{name}", options.stream_prefix),
            subjects: subjects.iter().map(ToString::to_string).collect(),
            max_age: KEPT_MAX,
            duplicate_window: DUPLICATES_WITHIN,
            num_replicas: options.stream_replicas,
            // What the server reports for a stream without these limits; compared with the existing stream.
            max_messages: -1,
            max_bytes: -1,
            ..Config::default()
        };
        // An acknowledged job is never evicted by a later one: the later one is refused.
        let jobs = Config {
            retention: RetentionPolicy::WorkQueue,
            max_bytes: options.stream_bytes_max,
            discard: DiscardPolicy::New,
            ..stream("CORDUM_SYS", &["sys.job.submit", "sys.job.result"])
        };
        let dead_letters =
            Config { max_messages: DEAD_LETTERS_MAX, ..stream("CORDUM_DLQ", &["sys.job.dlq"]) };
        Self { configs: vec![jobs, dead_letters] }
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.configs.iter().map(|config| config.name.as_str())
    }

    /// The stream that keeps everything on a subject or pattern, if one does.
    pub fn keeping(&self, pattern: &str) -> Option<&str> {
        let keeps = |config: &&Config| config.subjects.iter().any(|wide| subject::covers(wide, pattern));
        self.configs.iter().find(keeps).map(|config| config.name.as_str())
    }

    /// Creates those that are missing. Refuses to continue if other streams conflict with them.
    pub async fn set_up(&self, context: &Context) -> Result<(), NatsOpenError> {
        self.look_around(context).await?;
        for config in &self.configs {
            set_up_one(context, config).await?;
        }
        Ok(())
    }

    async fn look_around(&self, context: &Context) -> Result<(), NatsOpenError> {
        let failed = |error| NatsOpenError::Streams { why: words(&error) };
        let mut streams = context.streams();
        while let Some(theirs) = streams.try_next().await.map_err(failed)? {
            let is_ours = self.configs.iter().any(|config| config.name == theirs.config.name);
            if !is_ours && let Some((theirs_subject, ours)) = self.conflict(&theirs.config.subjects) {
                return Err(NatsOpenError::Overlap {
                    name: theirs.config.name,
                    theirs: theirs_subject,
                    ours,
                });
            }
        }
        Ok(())
    }

    fn conflict(&self, theirs: &[String]) -> Option<(String, String)> {
        let ours = self.configs.iter().flat_map(|config| &config.subjects).map(String::as_str);
        let ours: Vec<_> = ours.chain(NEVER_KEPT).collect();
        theirs.iter().find_map(|theirs| {
            let ours = ours.iter().find(|ours| subject::overlap(theirs, ours))?;
            Some((theirs.clone(), (*ours).to_owned()))
        })
    }

    /// A server that comes back may have lost its disk.
    pub async fn keep_up(self, context: Context, mut link: watch::Receiver<NatsLink>) {
        while link.changed().await.is_ok() {
            while *link.borrow_and_update() == NatsLink::Connected {
                match self.set_up(&context).await {
                    Ok(()) => break,
                    Err(error) => {
                        tracing::warn!(%error, "the streams could not be checked; retrying");
                    }
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// An operator may have changed the limits of an existing stream; they stay. The settings that our guarantees depend
/// on must match.
async fn set_up_one(context: &Context, wanted: &Config) -> Result<(), NatsOpenError> {
    let failed = |why| NatsOpenError::Stream { name: wanted.name.clone(), why, bytes: wanted.max_bytes };
    let is = match find(context, wanted).await? {
        Some(is) => is,
        None => match context.create_stream(wanted.clone()).await {
            Ok(_) => return Ok(()),
            // Another replica may have been faster; the server has more than one error for that.
            Err(error) => find(context, wanted).await?.ok_or_else(|| failed(words(&error)))?,
        },
    };
    if let Some(what) = difference(&is, wanted) {
        return Err(NatsOpenError::Unlike { name: wanted.name.clone(), what });
    }
    if is.num_replicas != wanted.num_replicas {
        let changed = Config { num_replicas: wanted.num_replicas, ..is };
        context.update_stream(changed).await.map_err(|error| failed(words(&error)))?;
    }
    Ok(())
}

async fn find(context: &Context, wanted: &Config) -> Result<Option<Config>, NatsOpenError> {
    match context.get_stream(&wanted.name).await {
        Ok(stream) => Ok(Some(stream.cached_info().config.clone())),
        Err(error) if is_missing(&error.kind()) => Ok(None),
        Err(error) => Err(NatsOpenError::Stream {
            name: wanted.name.clone(),
            why: words(&error),
            bytes: wanted.max_bytes,
        }),
    }
}

/// Settings of a stream that are not as they must be.
fn difference(is: &Config, wanted: &Config) -> Option<String> {
    let subjects = |config: &Config| config.subjects.iter().cloned().collect::<BTreeSet<_>>();
    if subjects(is) != subjects(wanted) {
        return Some(format!(
            "the subjects {} instead of {}",
            is.subjects.join(", "),
            wanted.subjects.join(", ")
        ));
    }
    if is.retention != wanted.retention {
        return Some(format!("retention {:?} instead of {:?}", is.retention, wanted.retention));
    }
    if is.discard != wanted.discard {
        return Some(format!("discard {:?} instead of {:?}", is.discard, wanted.discard));
    }
    (is.storage != wanted.storage)
        .then(|| format!("storage {:?} instead of {:?}", is.storage, wanted.storage))
}

fn is_missing(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams() -> Streams {
        Streams::new(&NatsOptions::new(["nats://host"]))
    }

    #[test]
    fn only_what_must_survive_is_kept() {
        let streams = streams();
        for (pattern, stream) in [
            ("sys.job.submit", Some("CORDUM_SYS")),
            ("sys.job.result", Some("CORDUM_SYS")),
            ("sys.job.dlq", Some("CORDUM_DLQ")),
            ("reveille.word", None),
            ("sys.job.>", None),
            ("sys.job.cancel", None),
            ("sys.heartbeat", None),
            ("worker.w.jobs", None),
            ("job.echo", None),
        ] {
            assert_eq!(streams.keeping(pattern), stream, "{pattern}");
        }
    }

    #[test]
    fn streams_of_others_must_keep_away_from_jobs_and_workers() {
        let streams = streams();
        for theirs in ["sys.>", "sys.job.result", "*.job.*", ">", "job.>", "worker.*.jobs"] {
            assert!(streams.conflict(&["orders".to_owned(), theirs.to_owned()]).is_some(), "{theirs}");
        }
        let harmless = ["orders.>", "sys.audit.export", "sys.heartbeat", "reveille.>"];
        assert_eq!(streams.conflict(&harmless.map(str::to_owned)), None);
    }
}
