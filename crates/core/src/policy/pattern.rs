//! A pattern over names, made ready to be asked often: most are a plain name or a name and a star.

use super::glob;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    Everything,
    Exactly(String),
    StartsWith(String),
    Glob(String),
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, String> {
        glob::check(text)?;
        let is_plain = |text: &str| !text.contains(['*', '?', '[', '\\']);
        Ok(match text.strip_suffix('*') {
            Some("") => Self::Everything,
            Some(start) if is_plain(start) => Self::StartsWith(start.to_owned()),
            None if is_plain(text) => Self::Exactly(text.to_owned()),
            _ => Self::Glob(text.to_owned()),
        })
    }

    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Exactly(name) => name == text,
            Self::StartsWith(start) => text.starts_with(start.as_str()),
            Self::Glob(pattern) => glob::matches(pattern, text),
        }
    }

    /// Whether everything that the other matches is matched by this one, as far as can be told.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Everything, _) => true,
            (_, Self::Exactly(name)) => self.matches(name),
            (Self::StartsWith(start), Self::StartsWith(other)) => other.starts_with(start.as_str()),
            _ => self == other,
        }
    }
}

/// Patterns, any of which may match; none at all do not ask.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patterns(Vec<Pattern>);

impl Patterns {
    pub fn parse(texts: &[String]) -> Result<Self, String> {
        let parse = |text: &String| Pattern::parse(text).map_err(|problem| format!("{text:?} {problem}"));
        texts.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn any(&self, text: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(text))
    }

    /// Whether they ask of nobody what the others do not.
    pub fn cover(&self, others: &Self) -> bool {
        self.0.is_empty()
            || (!others.0.is_empty()
                && others.0.iter().all(|other| self.0.iter().any(|pattern| pattern.covers(other))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_what_its_glob_matches() {
        for text in ["*", "job.*", "job.a", "*.a", "job.?", "job.[a-b]*", "a*c", "\\*", "", "j\\*"] {
            let pattern = Pattern::parse(text).unwrap();
            for name in ["", "job.", "job.a", "job.ab", "x.a", "abc", "*", "j*", "j"] {
                assert_eq!(pattern.matches(name), glob::matches(text, name), "{text} {name}");
            }
        }
        assert_eq!(Pattern::parse("job.*").unwrap(), Pattern::StartsWith("job.".to_owned()));
        assert!(Pattern::parse("job.[a").is_err());
    }

    #[test]
    fn what_covers_what() {
        let covers = |a: &str, b: &str| Pattern::parse(a).unwrap().covers(&Pattern::parse(b).unwrap());
        assert!(covers("*", "job.[a-b]"));
        assert!(covers("job.*", "job.deploy.*") && !covers("job.deploy.*", "job.*"));
        assert!(covers("job.*", "job.a") && !covers("job.a", "job.*"));
        assert!(covers("job.?x", "job.?x") && covers("job.?x", "job.ax") && !covers("job.ax", "job.?x"));
    }
}
