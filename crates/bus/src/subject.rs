//! Subjects and the patterns that match them, as NATS has them.
//!
//! A subject is tokens joined by dots: `sys.job.result`. A pattern may also contain `*`, which stands for exactly one
//! token, and may end in `>`, which stands for one or more. Neither may contain white space or control characters: a
//! subject is written into protocol lines as it is.
//!
//! This file only defines what is valid and what matches. Finding the subscriptions for a subject without trying
//! every pattern is up to the local adapter.

/// The longest subject anyone may use.
pub const SUBJECT_LEN_MAX: usize = 1024;

/// The most tokens a subject may have; it bounds how deep any index over subjects grows.
pub const SUBJECT_TOKENS_MAX: usize = 64;

/// One token, any token.
pub const ANY_TOKEN: &str = "*";

/// One or more tokens, whatever they are, up to the end.
pub const ANY_TAIL: &str = ">";

/// Whether a message may be published on this.
pub fn is_subject(text: &str) -> bool {
    well_formed(text) && text.split('.').all(|token| token != ANY_TOKEN && token != ANY_TAIL)
}

/// Whether this may be subscribed to. A `*` or `>` inside a longer token is an ordinary character,
/// and `>` as a whole token must be the last one.
pub fn is_pattern(text: &str) -> bool {
    let Some((body, _last)) = text.rsplit_once('.') else { return well_formed(text) };
    well_formed(text) && body.split('.').all(|token| token != ANY_TAIL)
}

/// Whether a valid pattern matches a valid subject.
pub fn matches(pattern: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for wanted in pattern.split('.') {
        let Some(token) = tokens.next() else { return false };
        match wanted {
            ANY_TAIL => return true,
            ANY_TOKEN => {}
            literal if literal == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

/// Whether some subject matches both of two valid patterns.
pub fn overlap(one: &str, other: &str) -> bool {
    let (mut ones, mut others) = (one.split('.'), other.split('.'));
    loop {
        let (a, b) = match (ones.next(), others.next()) {
            (Some(a), Some(b)) => (a, b),
            (a, b) => return a == b,
        };
        if a == ANY_TAIL || b == ANY_TAIL {
            return true;
        }
        if a != b && a != ANY_TOKEN && b != ANY_TOKEN {
            return false;
        }
    }
}

/// Whether every subject that the narrow pattern matches is matched by the wide one too.
pub fn covers(wide: &str, narrow: &str) -> bool {
    let mut tokens = narrow.split('.');
    for wanted in wide.split('.') {
        let Some(token) = tokens.next() else { return false };
        match wanted {
            ANY_TAIL => return true,
            ANY_TOKEN if token != ANY_TAIL => {}
            literal if literal == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

fn well_formed(text: &str) -> bool {
    text.len() <= SUBJECT_LEN_MAX
        && text.split('.').count() <= SUBJECT_TOKENS_MAX
        && text.split('.').all(|token| !token.is_empty())
        && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_have_no_empty_tokens_no_blanks_and_no_wildcards() {
        let longest = "s".repeat(SUBJECT_LEN_MAX);
        let deepest = ["t"; SUBJECT_TOKENS_MAX].join(".");
        for good in [
            "sys",
            "sys.job.result",
            "_INBOX.aB3",
            "$SYS.x",
            "job.a*b",
            "job.a>",
            "wörk.er",
            &longest,
            &deepest,
        ] {
            assert!(is_subject(good), "{good:?}");
        }
        for bad in [
            "", ".", "sys.", ".sys", "sys..job", "sys job", "sys\tjob", "a\r\nb", "a\0", "sys.*", "sys.>",
            "*", ">",
        ] {
            assert!(!is_subject(bad), "{bad:?}");
        }
        assert!(!is_subject(&format!("{longest}s")));
        assert!(!is_subject(&format!("{deepest}.t")));
    }

    #[test]
    fn patterns_may_hold_stars_and_end_in_a_tail() {
        for good in ["sys.job.result", "*", ">", "sys.*", "*.job.*", "sys.>", "*.>", "a*.b>"] {
            assert!(is_pattern(good), "{good:?}");
        }
        for bad in ["", ">.sys", "sys.>.job", "sys..>", "sys. >", "sys.>."] {
            assert!(!is_pattern(bad), "{bad:?}");
        }
    }

    #[test]
    fn patterns_are_compared_by_what_they_match() {
        // One, other, whether they overlap, whether the first covers the second.
        let table = [
            ("sys.job.submit", "sys.job.submit", true, true),
            ("sys.job.submit", "sys.job.result", false, false),
            ("sys.>", "sys.job.submit", true, true),
            ("sys.job.submit", "sys.>", true, false),
            ("sys.>", "sys", false, false),
            ("*.job.*", "sys.*.submit", true, false),
            ("sys.*", "sys.job.submit", false, false),
            ("sys.*", "sys.>", true, false),
            ("sys.>", "sys.*", true, true),
            ("sys.>", "sys.*.x.>", true, true),
            ("worker.>", "worker.*.jobs", true, true),
            (">", "a", true, true),
            ("a.b", "a", false, false),
        ];
        for (one, other, overlaps, covered) in table {
            assert_eq!(overlap(one, other), overlaps, "{one} and {other}");
            assert_eq!(overlap(other, one), overlaps, "{other} and {one}");
            assert_eq!(covers(one, other), covered, "{one} covers {other}");
        }
    }

    #[test]
    fn matching_follows_the_tokens() {
        let table = [
            ("sys.job.result", "sys.job.result", true),
            ("sys.job.result", "sys.job", false),
            ("sys.job", "sys.job.result", false),
            ("sys.*.result", "sys.job.result", true),
            ("sys.*", "sys.job.result", false),
            ("sys.*", "sys", false),
            ("*.*.*", "sys.job.result", true),
            ("sys.>", "sys.job.result", true),
            ("sys.>", "sys.job", true),
            ("sys.>", "sys", false),
            (">", "sys", true),
            ("*.>", "sys", false),
            ("*.>", "sys.job", true),
            ("sys.j*", "sys.job", false),
            ("sys.j*", "sys.j*", true),
        ];
        for (pattern, subject, expected) in table {
            assert_eq!(matches(pattern, subject), expected, "{pattern} on {subject}");
        }
    }
}
