//! A job's past as spans: the job, and in it what was judged, waited for, tried and looked at.
//!
//! They are read off the marks that the job keeps anyway. A job with more past than is kept tells what is
//! left of it; attempts are counted from the last one back, so their names stay right.

use super::{JobTrace, SpanId, TraceId, TraceParent, TraceState};
use crate::job::{Event, Job, Mark, State};
use crate::time::Millis;

/// Longer texts are cut: what a worker says of its failure can be long.
pub const ATTRIBUTE_LEN_MAX: usize = 256;

/// One span that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanRecord {
    pub trace: TraceId,
    pub span: SpanId,
    pub parent: Option<SpanId>,
    pub state: Option<TraceState>,
    pub name: String,
    pub kind: SpanKind,
    pub from: Millis,
    pub to: Millis,
    pub attributes: Vec<(&'static str, AttributeValue)>,
    pub moments: Vec<SpanMoment>,
    /// Spans elsewhere that had to do with it and are not its children.
    pub links: Vec<TraceParent>,
    pub outcome: SpanOutcome,
}

/// How a span stands to other systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Somebody asked for it.
    Server,
    /// Somebody else was asked.
    Client,
    Internal,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    Text(String),
    Number(i64),
}

/// Something that took no time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanMoment {
    pub at: Millis,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanOutcome {
    /// Neither: it was waited for, or somebody changed their mind.
    Unset,
    Good,
    Bad(String),
}

/// Whether everything that will be told of the job has happened. What people decide about a result later
/// is not waited for.
pub fn is_told(job: &Job) -> bool {
    job.state().is_terminal() && !job.owed.output_scan
}

/// All spans of an ended job, the job's own first; nothing of one that has not ended.
pub fn spans(job: &Job, trace: &JobTrace) -> Vec<SpanRecord> {
    let Some(ended) = job.marks.iter().position(|mark| mark.state.is_terminal()) else { return Vec::new() };
    let teller = SpanBuilder { job, trace, state: trace.job().state };
    let mut told = vec![teller.whole(job.marks[ended].at)];
    told.extend(teller.verdicts());
    told.extend(teller.stays(&job.marks[..=ended]));
    told.extend(teller.output(job.marks[ended].at));
    told
}

struct SpanBuilder<'a> {
    job: &'a Job,
    trace: &'a JobTrace<'a>,
    state: Option<TraceState>,
}

/// Where a job stays for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stay {
    Approval,
    Queue,
    Worker,
}

impl Stay {
    fn of(state: State) -> Option<Self> {
        match state {
            State::ApprovalRequired => Some(Self::Approval),
            State::Scheduled => Some(Self::Queue),
            State::Dispatched | State::Running => Some(Self::Worker),
            _ => None,
        }
    }
}

impl SpanBuilder<'_> {
    fn span(&self, id: SpanId, name: &str, (from, to): (Millis, Millis)) -> SpanRecord {
        SpanRecord {
            trace: self.trace.id,
            span: id,
            parent: Some(self.trace.job().parent.span),
            state: self.state.clone(),
            name: name.to_owned(),
            kind: SpanKind::Internal,
            from,
            // A clock may have been set between two marks.
            to: to.max(from),
            attributes: Vec::new(),
            moments: Vec::new(),
            links: Vec::new(),
            outcome: SpanOutcome::Unset,
        }
    }

    fn whole(&self, ended: Millis) -> SpanRecord {
        let job = self.job;
        let context = self.trace.job();
        let mut attributes = vec![
            ("reveille.job.id", text(job.id().as_str())),
            ("reveille.tenant", text(job.request.tenant.as_str())),
            ("reveille.topic", text(job.request.topic.as_str())),
            ("reveille.state", text(job.state().as_str())),
            ("reveille.attempts", AttributeValue::Number(job.attempts.len() as i64)),
        ];
        let ending = job.ending();
        let reason = ending.and_then(|ending| ending.reason);
        attributes.extend(reason.map(|reason| ("reveille.reason", text(reason.code()))));
        attributes.extend(job.worker().map(|worker| ("reveille.worker", text(worker.as_str()))));
        SpanRecord {
            parent: self.trace.caller,
            kind: SpanKind::Server,
            attributes,
            outcome: match job.state() {
                State::Succeeded => SpanOutcome::Good,
                State::Cancelled => SpanOutcome::Unset,
                _ => SpanOutcome::Bad(cut(ending.map_or("", |ending| &ending.words))),
            },
            ..self.span(context.parent.span, job.request.topic.as_str(), (job.created_at, ended))
        }
    }

    /// A verdict takes less time than a mark can tell.
    fn verdicts(&self) -> impl Iterator<Item = SpanRecord> {
        self.job.verdicts.iter().enumerate().map(|(number, recorded)| {
            let (at, verdict) = (recorded.checked_at, &recorded.verdict);
            SpanRecord {
                attributes: vec![
                    ("reveille.policy.decision", text(verdict.decision.as_str())),
                    ("reveille.policy.rule", text(&verdict.rule_id)),
                    ("reveille.policy.reason", text(&verdict.reason)),
                    ("reveille.policy.snapshot", text(&verdict.snapshot)),
                ],
                ..self.span(self.trace.span("policy", number), "policy", (at, at))
            }
        })
    }

    fn stays(&self, marks: &[Mark]) -> Vec<SpanRecord> {
        let (mut told, mut begun) = (Vec::new(), 0);
        for (here, mark) in marks.iter().enumerate() {
            let is_same = Stay::of(mark.state) == Stay::of(marks[begun].state);
            if !is_same || mark.event == Event::Assign {
                told.extend(Stay::of(marks[begun].state).map(|stay| (stay, &marks[begun..=here])));
                begun = here;
            }
        }
        let at_workers = told.iter().filter(|(stay, _)| *stay == Stay::Worker).count();
        let mut number = (self.job.attempts.len() as u32).saturating_sub(at_workers as u32);
        let tell = |(at, (stay, marks)): (usize, (Stay, &[Mark]))| match stay {
            Stay::Worker => {
                number += 1;
                self.attempt(number, marks)
            }
            Stay::Approval => self.wait(at, "approval", marks),
            Stay::Queue => self.wait(at, "queued", marks),
        };
        told.into_iter().enumerate().map(tell).collect()
    }

    fn wait(&self, at: usize, name: &str, marks: &[Mark]) -> SpanRecord {
        self.span(self.trace.span(name, at), name, between(marks))
    }

    /// From the assignment to whatever ended it.
    fn attempt(&self, number: u32, marks: &[Mark]) -> SpanRecord {
        let mut attributes = vec![("reveille.attempt", AttributeValue::Number(i64::from(number)))];
        let worker = marks.iter().rev().find_map(|mark| mark.worker.as_ref());
        attributes.extend(worker.map(|worker| ("reveille.worker", text(worker.as_str()))));
        let last = marks.last();
        attributes.extend(last.map(|mark| ("reveille.event", text(mark.event.as_str()))));
        let started = marks.iter().find(|mark| mark.event == Event::Start);
        let context = self.trace.attempt(number);
        let is_final = number as usize == self.job.attempts.len();
        let said = self.job.ending().and_then(|ending| ending.trace).filter(|_| is_final);
        SpanRecord {
            kind: SpanKind::Client,
            attributes,
            moments: started
                .map(|mark| SpanMoment { at: mark.at, name: "running".to_owned() })
                .into_iter()
                .collect(),
            links: said.into_iter().collect(),
            outcome: match last.map(|mark| mark.event) {
                Some(Event::Succeed) => SpanOutcome::Good,
                Some(Event::Cancel) | None => SpanOutcome::Unset,
                Some(_) => SpanOutcome::Bad(cut(last.map_or("", |mark| &mark.note))),
            },
            ..self.span(context.parent.span, "attempt", between(marks))
        }
    }

    fn output(&self, ended: Millis) -> Option<SpanRecord> {
        let check = self.job.output.as_ref()?;
        let verdict = &check.verdict;
        let times = (ended.min(check.checked_at), check.checked_at);
        Some(SpanRecord {
            attributes: vec![
                ("reveille.output.decision", text(verdict.decision.as_str())),
                ("reveille.output.rule", text(&verdict.rule_id)),
                ("reveille.output.findings", AttributeValue::Number(verdict.findings.len() as i64)),
            ],
            ..self.span(self.trace.span("output", 0), "output", times)
        })
    }
}

fn between(marks: &[Mark]) -> (Millis, Millis) {
    let at = |mark: Option<&Mark>| mark.map_or(Millis::ZERO, |mark| mark.at);
    (at(marks.first()), at(marks.last()))
}

fn text(words: &str) -> AttributeValue {
    AttributeValue::Text(cut(words))
}

fn cut(words: &str) -> String {
    words[..words.floor_char_boundary(ATTRIBUTE_LEN_MAX)].to_owned()
}
