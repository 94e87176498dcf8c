//! Enums whose variants are words on the wire and in the store.

/// A closed list of words, each spelled once, beside its variant.
macro_rules! words {
    ($(#[$doc:meta])* $kind:ident { $($(#[$item:meta])* $name:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        pub enum $kind {
            $($(#[$item])* #[serde(rename = $word)] $name,)*
        }

        impl $kind {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }

            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|item| item.as_str().eq_ignore_ascii_case(word))
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;
