//! Shell-style patterns over names: `*`, `?` and `[a-z]`, as policy files of the reference use them.
//!
//! Topics have no slashes, so `*` matches any run of characters, dots included.

/// Whether the pattern can be used at all.
pub fn check(pattern: &str) -> Result<(), String> {
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' if rest.next().is_none() => return Err("ends with a backslash".to_owned()),
            '[' if !rest.by_ref().any(|c| c == ']') => return Err("has a [ without a ]".to_owned()),
            _ => {}
        }
    }
    Ok(())
}

/// Whether the whole text matches. Linear in the text for each star: only the last star is retried.
pub fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            retry = Some((p + 1, t));
            p += 1;
        } else if let Some(after) = one(&pattern, p, text[t]) {
            p = after;
            t += 1;
        } else if let Some((after_star, at)) = retry {
            retry = Some((after_star, at + 1));
            (p, t) = (after_star, at + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Matches one character against the element at `p`; says where the next element starts.
fn one(pattern: &[char], p: usize, c: char) -> Option<usize> {
    match *pattern.get(p)? {
        '?' => Some(p + 1),
        '[' => {
            let end = p + pattern[p..].iter().position(|c| *c == ']')?;
            let class = &pattern[p + 1..end];
            let (negated, class) = match class {
                ['^' | '!', rest @ ..] => (true, rest),
                rest => (false, rest),
            };
            (in_class(class, c) != negated).then_some(end + 1)
        }
        '\\' => (*pattern.get(p + 1)? == c).then_some(p + 2),
        literal => (literal == c).then_some(p + 1),
    }
}

fn in_class(class: &[char], c: char) -> bool {
    match class {
        [low, '-', high, rest @ ..] => (*low..=*high).contains(&c) || in_class(rest, c),
        [one, rest @ ..] => *one == c || in_class(rest, c),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, text, expected) in [
            ("job.*", "job.echo", true),
            ("job.*", "job.", true),
            ("job.*", "jobs.echo", false),
            ("*.echo", "job.a.echo", true),
            ("job.?", "job.a", true),
            ("job.?", "job.ab", false),
            ("job.[a-c]x", "job.bx", true),
            ("job.[!a-c]x", "job.bx", false),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXbX", false),
            ("\\*", "*", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(check("job.[a").is_err() && check("x\\").is_err() && check("job.[a-z]*").is_ok());
    }
}
