//! `tracestate`: what other tracing systems want to hear again. It is passed on as it came, and never read.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The longest that is passed on. The recommendation asks for at least this much.
pub const TRACESTATE_LEN_MAX: usize = 512;
const MEMBERS_MAX: usize = 32;
const VALUE_LEN_MAX: usize = 256;
const KEY_LEN_MAX: usize = 256;
/// A key of the form `tenant@system`.
const TENANT_LEN_MAX: usize = 241;
const SYSTEM_LEN_MAX: usize = 14;

/// A list that keeps the rules, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct TraceState(String);

impl TraceState {
    /// Nothing if it is too long, empty, or breaks a rule: half of a list helps nobody.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > TRACESTATE_LEN_MAX {
            return None;
        }
        let mut keys = BTreeSet::new();
        for member in text.split(',').map(|member| member.trim_matches([' ', '\t'])) {
            if member.is_empty() {
                continue;
            }
            let (key, value) = member.split_once('=')?;
            if !is_key(key) || !is_value(value) || !keys.insert(key) {
                return None;
            }
        }
        (1..=MEMBERS_MAX).contains(&keys.len()).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_key(key: &str) -> bool {
    let rest = |text: &str| {
        text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/'))
    };
    let begins = |text: &str| text.starts_with(|first: char| first.is_ascii_lowercase());
    match key.split_once('@') {
        None => key.len() <= KEY_LEN_MAX && begins(key) && rest(key),
        Some((tenant, system)) => {
            let tenant_begins = begins(tenant) || tenant.starts_with(|first: char| first.is_ascii_digit());
            let fits = tenant.len() <= TENANT_LEN_MAX && system.len() <= SYSTEM_LEN_MAX;
            fits && tenant_begins && begins(system) && rest(tenant) && rest(system)
        }
    }
}

fn is_value(value: &str) -> bool {
    let plain = |byte: u8| matches!(byte, 0x20..=0x7e) && byte != b',' && byte != b'=';
    (1..=VALUE_LEN_MAX).contains(&value.len()) && value.bytes().all(plain)
}

impl TryFrom<String> for TraceState {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not a tracestate")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_kept_as_it_came_or_not_at_all() {
        let longest = format!("a={},b={}", "v".repeat(256), "w".repeat(251));
        assert_eq!(longest.len(), TRACESTATE_LEN_MAX);
        let full = (0..32).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
        for good in [
            "rojo=00f067aa0ba902b7",
            "rojo=1,congo=t61rcWkgMzE",
            "foo=1 \t , \t bar=2, \t baz=3",
            "foo@bar=1,2fa@vendor=x",
            "foo=1,,bar=2",
            "a/b_c-d*e=!\"#$%&'()+-./:;<>?@[]^_`{|}~ x",
            &longest,
            &full,
        ] {
            assert_eq!(TraceState::parse(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            " , ,",
            "foo",
            "foo=",
            "=1",
            "Foo=1",
            "foo =1",
            "foo=1=2",
            "foo@=1",
            "@foo=1",
            "foo@bar@baz=1",
            "foo@averylongsystem=1",
            "1foo=1",
            "foo=1,foo=2",
            "foo=\u{e9}",
            "foo=a\r\nx: y",
            "foo=\0",
            &format!("{longest}w"),
            &format!("{full},k32=v"),
        ] {
            assert_eq!(TraceState::parse(bad), None, "{bad:?}");
        }
    }
}
