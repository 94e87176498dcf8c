//! Tracing: which story a job is part of, and the parts of the story that are the job's own.
//!
//! A caller may say where it stands (`traceparent`, `tracestate`), and the request remembers that. Everything
//! else follows from the job: ids of traces that begin here, ids of spans, and the spans themselves. So the
//! same packet sent twice says the same, nothing is kept beside the job, and a restart loses nothing.
//!
//! Not here: sending spans anywhere (`reveille-traces`).

mod parent;
mod spans;
mod state;

pub use parent::{SpanId, TraceId, TraceParent};
pub use spans::{
    ATTRIBUTE_LEN_MAX, AttributeValue, SpanKind, SpanMoment, SpanOutcome, SpanRecord, is_told, spans,
};
pub use state::{TRACESTATE_LEN_MAX, TraceState};

use crate::digest::sha256;
use crate::request::Request;
use serde::{Deserialize, Serialize};

/// The names of the two headers, in HTTP and NATS alike.
pub const TRACEPARENT: &str = "traceparent";
pub const TRACESTATE: &str = "tracestate";

/// Where somebody stands, with what others want to hear again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    pub parent: TraceParent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TraceState>,
}

impl TraceContext {
    /// Reads what came with a message. A bad `traceparent`, or more than one, counts as none; then
    /// `tracestate` means nothing. A bad `tracestate` is left out. Several are one list.
    pub fn read<'a>(
        parents: impl IntoIterator<Item = &'a [u8]>,
        states: impl IntoIterator<Item = &'a [u8]>,
    ) -> Option<Self> {
        let mut parents = parents.into_iter();
        let only = parents.next().filter(|_| parents.next().is_none())?;
        let parent = TraceParent::parse(std::str::from_utf8(only).ok()?)?;
        Some(Self { parent, state: joined(states) })
    }

    /// The headers that say it.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let state = self.state.iter().map(|state| (TRACESTATE, state.as_str().to_owned()));
        [(TRACEPARENT, self.parent.to_string())].into_iter().chain(state).collect()
    }
}

fn joined<'a>(states: impl IntoIterator<Item = &'a [u8]>) -> Option<TraceState> {
    let mut list = String::new();
    for (number, piece) in states.into_iter().enumerate() {
        if number > 0 {
            list.push(',');
        }
        list.push_str(std::str::from_utf8(piece).ok()?);
        if list.len() > TRACESTATE_LEN_MAX {
            return None;
        }
    }
    TraceState::parse(&list)
}

/// Which part of the traces that begin here is recorded. What a caller began, the caller decides about.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Ratio(f64);

impl Ratio {
    pub const ALL: Self = Self(1.0);

    /// From none (0) to all (1).
    pub fn new(part: f64) -> Option<Self> {
        (0.0..=1.0).contains(&part).then_some(Self(part))
    }

    /// Follows from the id alone, so that it is the same answer every time. The id is hashed: one that was
    /// made of a UUID is not random in every bit.
    fn takes(self, trace: TraceId) -> bool {
        let [a, b, c, d, ..] = sha256(trace.as_bytes());
        f64::from(u32::from_be_bytes([a, b, c, d])) < self.0 * (f64::from(u32::MAX) + 1.0)
    }
}

/// A job's place in its story.
#[derive(Debug, Clone)]
pub struct JobTrace<'a> {
    request: &'a Request,
    pub id: TraceId,
    /// The caller's span, if the caller named one.
    pub caller: Option<SpanId>,
    pub sampled: bool,
}

impl<'a> JobTrace<'a> {
    pub fn of(request: &'a Request, ratio: Ratio) -> Self {
        if let Some(TraceContext { parent, .. }) = request.trace.as_deref() {
            return Self { request, id: parent.trace, caller: Some(parent.span), sampled: parent.sampled };
        }
        let id = begun(request);
        Self { request, id, caller: None, sampled: ratio.takes(id) }
    }

    /// Where the job itself stands.
    pub fn job(&self) -> TraceContext {
        self.context(self.span("job", 0))
    }

    /// Where one attempt stands: what its worker is told.
    pub fn attempt(&self, number: u32) -> TraceContext {
        self.context(self.span("attempt", number as usize))
    }

    fn context(&self, span: SpanId) -> TraceContext {
        let parent = TraceParent { trace: self.id, span, sampled: self.sampled };
        TraceContext { parent, state: self.request.trace.as_ref().and_then(|trace| trace.state.clone()) }
    }

    /// The same name for the same part, whoever asks and whenever.
    fn span(&self, part: &str, number: usize) -> SpanId {
        let Request { tenant, id, .. } = self.request;
        let digest = sha256(format!("{}\n{tenant}\n{id}\n{part}\n{number}", self.id).as_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&digest[..8]);
        SpanId::new(bytes).unwrap_or(SpanId::LAST)
    }
}

/// The id of a trace that begins with this job. A `trace_id` of the older kind is kept where it can be: 32
/// hexadecimal digits, or a UUID. Jobs that share another word share a trace.
fn begun(request: &Request) -> TraceId {
    let text = &request.trace_id;
    let undashed = || {
        let dashes = text.match_indices('-').map(|(at, _)| at);
        dashes.eq([8, 13, 18, 23]).then(|| text.replace('-', ""))
    };
    let kept = parent::loose_trace_id(text).or_else(|| parent::loose_trace_id(&undashed()?));
    kept.unwrap_or_else(|| {
        let digest = sha256(format!("{}\n{text}", request.tenant).as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        TraceId::new(bytes).unwrap_or(TraceId::LAST)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{JobId, TenantId};

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(parents: &[&str], states: &[&str]) -> Option<(String, Option<String>)> {
        let context = TraceContext::read(
            parents.iter().map(|text| text.as_bytes()),
            states.iter().map(|text| text.as_bytes()),
        )?;
        Some((context.parent.to_string(), context.state.map(|state| state.as_str().to_owned())))
    }

    #[test]
    fn one_good_traceparent_is_read_and_tracestate_only_with_it() {
        let parent = || PARENT.to_owned();
        assert_eq!(read(&[PARENT], &[]), Some((parent(), None)));
        assert_eq!(read(&[PARENT], &["a=1", "b=2"]), Some((parent(), Some("a=1,b=2".into()))));
        assert_eq!(read(&[PARENT], &["a=1", "A=2"]), Some((parent(), None)), "half a list helps nobody");
        assert_eq!(read(&[PARENT], &[&"a=1,".repeat(1_000)]), Some((parent(), None)));
        assert_eq!(read(&[PARENT, PARENT], &[]), None);
        assert_eq!(read(&[], &["a=1"]), None);
        assert_eq!(read(&["00-bad"], &["a=1"]), None);
        assert_eq!(TraceContext::read([&b"\xff\xfe"[..]], []), None);
        assert_eq!(TraceContext::read([&[b'0'; 10 * 1024][..]], []), None);
        let context = TraceContext::read([PARENT.as_bytes()], [&b"a=\xff"[..]]).unwrap();
        assert_eq!(context.headers(), [(TRACEPARENT, parent())]);
    }

    #[test]
    fn a_job_without_a_caller_begins_a_trace_of_its_own() {
        let check = |trace_id: &str, id: &str| {
            let mut request = Request::plain("j", "job.echo");
            trace_id.clone_into(&mut request.trace_id);
            assert_eq!(JobTrace::of(&request, Ratio::ALL).id.to_string(), id, "{trace_id}");
        };
        check("4bf92f3577b34da6a3ce929d0e0e4736", "4bf92f3577b34da6a3ce929d0e0e4736");
        check("4BF92F3577B34DA6A3CE929D0E0E4736", "4bf92f3577b34da6a3ce929d0e0e4736");
        check("0192f3a5-77b3-7da6-a3ce-929d0e0e4736", "0192f3a577b37da6a3ce929d0e0e4736");
        let other = Request { trace_id: "run-7".into(), ..Request::plain("j", "job.echo") };
        let trace = JobTrace::of(&other, Ratio::ALL);
        assert_eq!((trace.caller, trace.sampled), (None, true));
        for same in ["00000000000000000000000000000000", "4bf92f35-77b34da6-a3ce-929d0e0e4736-", "é"] {
            assert_ne!(begun(&Request { trace_id: same.into(), ..other.clone() }), trace.id);
        }
        assert_eq!(begun(&Request { id: JobId::known("k"), ..other.clone() }), trace.id);
        assert_ne!(begun(&Request { tenant: TenantId::known("zeta"), ..other.clone() }), trace.id);
    }

    #[test]
    fn the_callers_trace_is_kept_and_every_part_has_a_name_of_its_own() {
        let mut request = Request::plain("j", "job.echo");
        request.follow(TraceContext::read([PARENT.as_bytes()], [&b"a=1"[..]]));
        assert_eq!(request.trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
        let trace = JobTrace::of(&request, Ratio::new(0.0).unwrap());
        assert!(trace.sampled, "the caller decided");
        assert_eq!(trace.caller.unwrap().to_string(), "00f067aa0ba902b7");
        let (job, first, second) = (trace.job(), trace.attempt(1), trace.attempt(2));
        assert!(job.parent.span != first.parent.span && first.parent.span != second.parent.span);
        assert_eq!(first, JobTrace::of(&request, Ratio::ALL).attempt(1), "the same packet says the same");
        assert!(first.headers()[0].1.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"));
        assert_eq!(first.headers()[1], (TRACESTATE, "a=1".to_owned()));
        let other = Request { id: JobId::known("k"), ..request.clone() };
        assert_ne!(JobTrace::of(&other, Ratio::ALL).job(), job);
    }

    #[test]
    fn a_ratio_takes_its_part() {
        let taken = |part: f64| {
            let ratio = Ratio::new(part).unwrap();
            // As ids of jobs are: a moment, and then chance.
            let ids = (0..10_000u32).map(|n| format!("0192f3a5-77b3-7da6-a3ce-9290{n:08x}"));
            let mut requests = ids.map(|id| Request::plain(&id, "job.echo"));
            requests.by_ref().filter(|request| JobTrace::of(request, ratio).sampled).count()
        };
        assert_eq!((taken(0.0), taken(1.0)), (0, 10_000));
        assert!((900..1_100).contains(&taken(0.1)), "{}", taken(0.1));
        for bad in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Ratio::new(bad), None);
        }
    }
}
