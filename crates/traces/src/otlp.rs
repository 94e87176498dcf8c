//! Spans to a collector, as OTLP over HTTP in its JSON form.
//!
//! One task owns what waits. It gathers for a moment, sends, and tries again when the collector says so or
//! is not there. Meanwhile the queue fills; beyond [`QUEUE_MAX`] jobs are dropped and counted.

mod document;

use crate::{TraceCounts, Traces};
use bytes::Bytes;
use document::OtlpBody;
use reveille_a2a::{A2aClient, A2aError, A2aReply, A2aRequest, REQUEST_BYTES_MAX};
use reveille_core::job::Job;
use reveille_core::trace::{JobTrace, Ratio, spans};
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

/// Jobs that wait to be sent.
pub const QUEUE_MAX: usize = 4_096;
/// A request is sent when it has grown to this, or when its first job has waited for `GATHER`.
const BATCH_BYTES: usize = 256 * 1024;
const GATHER: Duration = Duration::from_secs(1);
/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(10);
const TRIES_MAX: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);
/// Longer than this no collector is waited for, whatever it asks.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// Where the collector is, and who we are to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Collector {
    /// With the path, such as `http://127.0.0.1:4318/v1/traces`.
    pub url: String,
    /// Beside those that HTTP needs; credentials, mostly.
    pub headers: Vec<(String, String)>,
    pub service_name: String,
}

/// Header values stay out of logs.
impl fmt::Debug for Collector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("Collector")
            .field("url", &self.url)
            .field("headers", &names)
            .field("service_name", &self.service_name)
            .finish()
    }
}

/// A list of headers that cannot be read. It does not repeat them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadHeaders;

impl fmt::Display for BadHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("is not a list such as name=value,other=value; values may be percent-encoded")
    }
}

impl std::error::Error for BadHeaders {}

/// Reads `name=value,name=value` as `OTEL_EXPORTER_OTLP_HEADERS` has it.
pub fn headers(list: &str) -> Result<Vec<(String, String)>, BadHeaders> {
    let pairs = list.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').ok_or(BadHeaders)?;
            let name = name.trim();
            let is_token = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
            let value = decoded(value.trim()).filter(|_| is_token).ok_or(BadHeaders)?;
            Ok((name.to_ascii_lowercase(), value))
        })
        .collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        bytes.push(u8::from_str_radix(piece.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    let value = String::from_utf8(bytes).ok()?;
    (!value.chars().any(char::is_control)).then_some(value)
}

/// A handle to the task that sends.
pub struct Otlp {
    queue: Mutex<Option<mpsc::Sender<Arc<Job>>>>,
    task: Mutex<Option<JoinHandle<()>>>,
    tally: Arc<ExportTally>,
    stopping: watch::Sender<bool>,
}

#[derive(Default)]
struct ExportTally {
    exported: AtomicU64,
    dropped: AtomicU64,
    failures: AtomicU64,
}

impl Otlp {
    /// Starts to send. Must be called on a runtime.
    pub fn start(collector: Collector, client: Arc<dyn A2aClient>) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let (stopping, stopped) = watch::channel(false);
        let tally = Arc::new(ExportTally::default());
        let sender = ExportTask { collector, client, waiting, stopped, tally: tally.clone(), works: true };
        let task = Mutex::new(Some(tokio::spawn(sender.run())));
        Self { queue: Mutex::new(Some(queue)), task, tally, stopping }
    }
}

#[async_trait::async_trait]
impl Traces for Otlp {
    fn export(&self, job: &Arc<Job>) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = queue.as_ref().is_some_and(|queue| queue.try_send(job.clone()).is_ok());
        drop(queue);
        if !taken {
            self.tally.dropped.fetch_add(1, Relaxed);
        }
    }

    fn counts(&self) -> TraceCounts {
        let ExportTally { exported, dropped, failures } = &*self.tally;
        TraceCounts {
            exported: exported.load(Relaxed),
            dropped: dropped.load(Relaxed),
            failures: failures.load(Relaxed),
        }
    }

    async fn finish(&self, patience: Duration) {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.stopping.send(true);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut task) = task
            && timeout(patience, &mut task).await.is_err()
        {
            task.abort();
        }
    }
}

struct ExportTask {
    collector: Collector,
    client: Arc<dyn A2aClient>,
    waiting: mpsc::Receiver<Arc<Job>>,
    stopped: watch::Receiver<bool>,
    tally: Arc<ExportTally>,
    /// Whether the last request was answered well; trouble is told when it begins and when it ends.
    works: bool,
}

/// Whether it may help to ask again, and when.
enum ExportFailure {
    ForNow(Option<Duration>, String),
    ForGood(String),
}

impl ExportTask {
    async fn run(mut self) {
        while let Some(first) = self.waiting.recv().await {
            let batch = self.gather(first).await;
            let jobs = batch.jobs;
            let sent = self.send(batch.finish()).await;
            let tally = if sent { &self.tally.exported } else { &self.tally.dropped };
            tally.fetch_add(jobs, Relaxed);
        }
    }

    async fn gather(&mut self, first: Arc<Job>) -> OtlpBody {
        let mut batch = OtlpBody::new(&self.collector.service_name);
        add(&mut batch, &first);
        let until = Instant::now() + GATHER;
        while batch.len() < BATCH_BYTES {
            match timeout_at(until, self.waiting.recv()).await {
                Ok(Some(job)) => add(&mut batch, &job),
                Ok(None) | Err(_) => break,
            }
        }
        batch
    }

    /// Whether it arrived.
    async fn send(&mut self, body: Bytes) -> bool {
        if body.len() > REQUEST_BYTES_MAX {
            return false;
        }
        let mut pause = PAUSE;
        for number in 1..=TRIES_MAX {
            let problem = match self.try_once(body.clone()).await {
                Ok(()) => {
                    self.say_that_it_works();
                    return true;
                }
                Err(problem) => problem,
            };
            self.tally.failures.fetch_add(1, Relaxed);
            match problem {
                ExportFailure::ForNow(asked, words) => {
                    self.say_that_it_fails(&words);
                    // Whoever stops does not wait; this was the last try.
                    if number == TRIES_MAX || *self.stopped.borrow() {
                        return false;
                    }
                    let pause_now = asked.unwrap_or(pause).min(PAUSE_MAX);
                    let _ = timeout(pause_now, self.stopped.wait_for(|stopped| *stopped)).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                ExportFailure::ForGood(words) => {
                    self.say_that_it_fails(&words);
                    return false;
                }
            }
        }
        false
    }

    async fn try_once(&self, body: Bytes) -> Result<(), ExportFailure> {
        let headers = self.collector.headers.iter();
        let request = A2aRequest {
            url: self.collector.url.clone(),
            body,
            headers: headers.map(|(name, value)| (Cow::Owned(name.clone()), value.clone())).collect(),
            patience: PATIENCE,
        };
        match self.client.post(request, Box::new(|| {})).await {
            Ok(A2aReply { status: 200..=299, .. }) => Ok(()),
            Ok(A2aReply { status: status @ (429 | 502 | 503 | 504), retry_after, .. }) => {
                Err(ExportFailure::ForNow(retry_after, format!("it answered {status}")))
            }
            Ok(A2aReply { status, .. }) => Err(ExportFailure::ForGood(format!("it answered {status}"))),
            Err(error @ (A2aError::Refused(_) | A2aError::TooLarge)) => {
                Err(ExportFailure::ForGood(error.to_string()))
            }
            Err(error) => Err(ExportFailure::ForNow(None, error.to_string())),
        }
    }

    fn say_that_it_fails(&mut self, problem: &str) {
        if std::mem::replace(&mut self.works, false) {
            tracing::warn!(url = self.collector.url, problem, "the trace collector does not take spans");
        }
    }

    fn say_that_it_works(&mut self) {
        if !std::mem::replace(&mut self.works, true) {
            tracing::info!(url = self.collector.url, "the trace collector takes spans again");
        }
    }
}

fn add(batch: &mut OtlpBody, job: &Job) {
    batch.add(&spans(job, &JobTrace::of(&job.request, Ratio::ALL)));
}
