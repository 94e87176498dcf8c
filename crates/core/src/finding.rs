//! What was found when something that the server stands on was looked at, in words for whoever runs it.

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    Good(String),
    /// It works, and can lose something.
    Risky(String),
    /// It must not be used like this.
    Bad(String),
}

impl Finding {
    pub fn is_bad(&self) -> bool {
        matches!(self, Self::Bad(_))
    }

    /// As operators read it.
    pub fn grade(&self) -> &'static str {
        match self {
            Self::Good(_) => "ok",
            Self::Risky(_) => "risk",
            Self::Bad(_) => "bad",
        }
    }

    pub fn words(&self) -> &str {
        match self {
            Self::Good(words) | Self::Risky(words) | Self::Bad(words) => words,
        }
    }
}
