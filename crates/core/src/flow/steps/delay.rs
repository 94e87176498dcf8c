//! Delays: for so long, or until a moment. Every step may have one; a delay step has nothing else.

use super::super::definition::FlowProblem;
use super::super::document::StepDocument;
use super::super::template::Template;
use super::StepKind;
use crate::expression::Names;
use crate::time::Millis;
use jiff::Timestamp;
use serde_json::Value as Json;

/// A year; who wants longer names a date.
pub const DELAY_MS_MAX: i64 = 366 * 24 * 3600 * 1000;
/// The last moment of the year 9999.
const LAST: i64 = 253_402_300_799_999;

#[derive(Debug, Clone)]
pub enum Delay {
    For(i64),
    Until(Template),
}

impl Delay {
    /// `now` refuses moments that are over before the workflow is saved.
    pub(in super::super) fn read(
        document: &StepDocument,
        names: Names<'_>,
        now: Millis,
    ) -> Result<Option<Self>, FlowProblem> {
        match (document.delay_sec, &document.delay_until) {
            (Some(_), Some(_)) => {
                Err(FlowProblem::new("delay_until", "a step has either delay_sec or delay_until"))
            }
            (Some(seconds), None) => {
                let ms = (seconds * 1000.0).round();
                if !(0.0..=DELAY_MS_MAX as f64).contains(&ms) {
                    let problem = format!("must be from 0 to {} seconds", DELAY_MS_MAX / 1000);
                    return Err(FlowProblem::new("delay_sec", problem));
                }
                Ok(Some(Self::For(ms as i64)))
            }
            (None, Some(text)) => {
                let problem = |problem| FlowProblem::new("delay_until", problem);
                let template = Template::parse(&Json::String(text.clone()), names).map_err(problem)?;
                if let Template::Fixed(fixed) = &template {
                    let at = moment(fixed).map_err(problem)?;
                    if at < now {
                        return Err(problem("is in the past".to_owned()));
                    }
                }
                Ok(Some(Self::Until(template)))
            }
            (None, None) => Ok(None),
        }
    }
}

pub(super) fn read_kind(document: &StepDocument) -> Result<StepKind, FlowProblem> {
    if document.delay_sec.is_none() && document.delay_until.is_none() {
        return Err(FlowProblem::new("delay_sec", "a delay step needs delay_sec or delay_until"));
    }
    Ok(StepKind::Delay)
}

/// A moment in RFC 3339.
pub(in super::super) fn moment(json: &Json) -> Result<Millis, String> {
    let text = json.as_str().ok_or_else(|| "is not a moment in RFC 3339".to_owned())?;
    let moment: Timestamp = text.parse().map_err(|_| format!("{text:?} is not a moment in RFC 3339"))?;
    let ms = moment.as_millisecond();
    if ms > LAST { Err("is after the year 9999".to_owned()) } else { Ok(Millis(ms)) }
}
