//! Times, spans and states as people read them.

use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reveille_core::time::Millis;

/// A moment as how long ago it was; the script goes on counting.
pub fn ago(at: Millis, now: Millis) -> Markup {
    html! { time datetime=(at.rfc3339()) data-at=(at.0) title=(at.rfc3339()) { (span(now.since(at))) " ago" } }
}

/// The same for one that the API has written down in microseconds; nothing for zero.
pub fn ago_micros(at: i64, now: Millis) -> Markup {
    if at == 0 {
        html! { "–" }
    } else {
        ago(Millis(at / 1000), now)
    }
}

/// A moment as how long it is until then, or how long it has passed.
pub fn ahead(at: Millis, now: Millis) -> Markup {
    if at < now {
        return ago(at, now);
    }
    html! { time datetime=(at.rfc3339()) title=(at.rfc3339()) { "in " (span(at.since(now))) } }
}

/// A moment that the API has written as text.
pub fn moment(text: &str) -> Millis {
    text.parse::<jiff::Timestamp>().map_or(Millis(0), |at| Millis(at.as_millisecond()))
}

/// The time of day: lines of one life are apart by milliseconds.
pub fn clock(at: Millis) -> String {
    let ms = at.0.rem_euclid(86_400_000);
    format!("{:02}:{:02}:{:02}.{:03}", ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000)
}

/// A duration in at most two units.
pub fn span(ms: i64) -> String {
    let ms = ms.max(0);
    let (seconds, minutes, hours, days) = (ms / 1000, ms / 60_000, ms / 3_600_000, ms / 86_400_000);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{}.{} s", seconds, ms % 1000 / 100),
        10_000..60_000 => format!("{seconds} s"),
        60_000..3_600_000 => format!("{minutes} min {} s", seconds % 60),
        3_600_000..86_400_000 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// The state of a job, a run, a step or a worker, with the colour that it has everywhere.
pub fn chip(state: &str) -> Markup {
    let class = match state.to_ascii_lowercase().as_str() {
        "succeeded" | "online" | "approved" | "allow" | "good" | "released" | "active" | "ok" => "good",
        "running" | "dispatched" | "busy" => "busy",
        "pending"
        | "scheduled"
        | "waiting"
        | "approval_required"
        | "degraded"
        | "throttle"
        | "risky"
        | "draining"
        | "drained"
        | "allow_with_constraints"
        | "require_approval"
        | "quarantine"
        | "redact"
        | "medium" => "warn",
        "failed" | "timeout" | "timed_out" | "denied" | "output_quarantined" | "rejected" | "deny"
        | "bad" | "high" | "critical" => "bad",
        "restored" => "restored",
        _ => "off",
    };
    html! { span class={ "chip " (class) } { (state) } }
}

/// JSON as people read it; text that is none, as it is.
pub fn pretty(text: &str) -> String {
    serde_json::from_str::<serde_json::Value>(text)
        .and_then(|value| serde_json::to_string_pretty(&value))
        .unwrap_or_else(|_| text.to_owned())
}

/// `n things`, or `1 thing`.
pub fn count(n: u64, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// What stands for itself in an address.
const PLAIN: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':').remove(b'@');

/// An id, or whatever somebody typed, as one part of an address of ours.
pub fn path(id: &str) -> String {
    utf8_percent_encode(id, &PLAIN).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_at_most_two_units() {
        let spans = [0, 999, 1_250, 59_999, 61_000, 3_700_000, 90_000_000, -5].map(span);
        assert_eq!(spans, ["0 ms", "999 ms", "1.2 s", "59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h", "0 ms"]);
    }

    #[test]
    fn an_id_stays_in_its_part_of_a_path() {
        assert_eq!(path("a/../b?c#d&e f"), "a%2F..%2Fb%3Fc%23d%26e%20f");
    }
}
