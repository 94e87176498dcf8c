//! Small things written as text in a query.

use crate::ApiError;
use reveille_core::time::Millis;
use reveille_store::PAGE_LEN_MAX;
use std::time::Duration;

const PAGE_LEN: usize = 50;
const WAIT_MAX: Duration = Duration::from_mins(5);

/// `?limit=`: 50 unless told, clamped to 500.
pub fn limit(text: Option<&str>) -> Result<usize, ApiError> {
    let Some(text) = text else { return Ok(PAGE_LEN) };
    let limit: usize =
        text.parse().map_err(|_| ApiError::field("limit", format!("{text:?} is not a number")))?;
    Ok(limit.clamp(1, PAGE_LEN_MAX))
}

/// `?cursor=`: whatever the page before said.
pub fn cursor(text: Option<&str>) -> Result<Option<u64>, ApiError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| ApiError::field("cursor", "use the next_cursor of the page before"))
}

/// `30s`, `500ms`, `2m` or plain seconds; at most five minutes.
pub fn duration(field: &str, text: Option<&str>) -> Result<Option<Duration>, ApiError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" | "" => 1_000,
        "m" => 60_000,
        _ => 0,
    };
    match number.parse::<u64>() {
        Ok(number) if unit_ms > 0 => {
            Ok(Some(Duration::from_millis(number.saturating_mul(unit_ms)).min(WAIT_MAX)))
        }
        _ => Err(ApiError::field(field, format!("{text:?} is not a duration such as 30s or 500ms"))),
    }
}

pub fn parse_rfc3339(field: &str, text: &str) -> Result<Millis, ApiError> {
    let at: jiff::Timestamp = text.parse().map_err(|_| {
        ApiError::field(field, format!("{text:?} is not a time such as 2026-11-15T12:00:00Z"))
    })?;
    Ok(Millis(at.as_millisecond()))
}

/// A time, or how long ago: `30m`, `24h`, `7d`.
pub fn moment(field: &str, text: &str, now: Millis) -> Result<Millis, ApiError> {
    let unit_s = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3_600,
        Some('d') => 86_400,
        _ => return parse_rfc3339(field, text),
    };
    let number = text[..text.len() - 1].parse::<u32>().map_err(|_| {
        ApiError::field(field, format!("{text:?} is neither a duration such as 24h nor a time"))
    })?;
    Ok(now - i64::from(number) * unit_s * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_or_how_long_ago() {
        let now = Millis(1_800_000_000_000);
        for (text, ms) in [("30m", 1_800_000), ("24h", 86_400_000), ("7d", 604_800_000), ("0s", 0)] {
            assert_eq!(moment("since", text, now).unwrap(), now - ms);
        }
        assert_eq!(moment("since", "2027-01-15T08:00:00Z", now).unwrap(), now);
        for text in ["", "h", "1", "-1h", "1.5h", "ü", "99999999999999d", "yesterday"] {
            assert!(moment("since", text, now).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_read_and_bounded() {
        for (text, ms) in [("30s", 30_000), ("500ms", 500), ("2m", 120_000), ("7", 7_000), ("9999m", 300_000)]
        {
            assert_eq!(duration("wait", Some(text)).unwrap().unwrap().as_millis(), ms);
        }
        for text in ["s", "-1s", "1h", "1.5s", "x"] {
            assert!(duration("wait", Some(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_is_clamped_and_nonsense_is_named() {
        assert_eq!(limit(None).unwrap(), 50);
        assert_eq!(limit(Some("100000")).unwrap(), 500);
        assert_eq!(limit(Some("0")).unwrap(), 1);
        assert!(limit(Some("many")).is_err() && cursor(Some("x")).is_err());
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(parse_rfc3339("expiresAt", "1970-01-01T00:00:01Z").unwrap(), Millis(1000));
    }
}
