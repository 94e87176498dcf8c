//! The scanners that rules choose from: those built in, and those of `output_scanners.yaml`.

use super::document::Document;
use super::pattern::{PatternSet, ScanPattern};
use super::scanner::Scanner;
use super::{BadScanner, injection, pii, prompt, secret};
use crate::cost::{CostLimit, Meter};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

/// Maximum number of scanners in a document.
pub const SCANNERS_MAX: usize = 64;
/// Maximum number of patterns that a document gives one scanner.
pub const PATTERNS_MAX: usize = 128;

/// The scanner whose words come from the rule.
pub(super) const KEYWORD: &str = "keyword";

static BUILT_IN: LazyLock<BTreeMap<&'static str, Arc<Scanner>>> = LazyLock::new(|| {
    let tables = [
        ("secret", secret::patterns()),
        ("pii", pii::patterns()),
        ("injection", injection::patterns()),
        ("prompt_injection", prompt::patterns()),
    ];
    let scanner =
        |(name, patterns)| (name, Arc::new(Scanner::of_patterns(name, PatternSet::known(name, patterns))));
    tables.into_iter().map(scanner).collect()
});

/// Aliases for built-in scanners.
const ALIASES: [(&str, &str); 3] =
    [("code_injection", "injection"), ("secret_leak", "secret"), ("secrets", "secret")];

/// Compiled scanners by name. Clones share them.
#[derive(Debug, Clone)]
pub struct Library {
    scanners: BTreeMap<String, Arc<Scanner>>,
    /// Names of a document's scanners by the type of their findings.
    types: BTreeMap<String, BTreeSet<String>>,
}

/// The built-in scanners alone.
impl Default for Library {
    fn default() -> Self {
        let scanners = BUILT_IN.iter().map(|(name, scanner)| ((*name).to_owned(), scanner.clone()));
        Self { scanners: scanners.collect(), types: BTreeMap::new() }
    }
}

impl Library {
    /// The built-in scanners with those of a document. Everything is compiled here, so that a bad pattern is reported
    /// when the file is loaded and not when a rule first needs it.
    pub fn new(document: &Document) -> Result<Self, BadScanner> {
        let mut library = Self::default();
        let meter = Meter::new(CostLimit::PATTERNS);
        for (name, entry) in &document.scanners {
            let bad =
                |problem: &str| BadScanner::Scanner { scanner: name.clone(), problem: problem.to_owned() };
            if document.scanners.len() > SCANNERS_MAX {
                return Err(bad(&format!("there are more than {SCANNERS_MAX} scanners")));
            }
            if is_keyword(name) {
                return Err(bad("takes its words from rules, not from a file"));
            }
            library.add(real_name(name), entry.compile(name, &meter)?)?;
            if !entry.finding_type.is_empty() {
                let of_type = library.types.entry(entry.finding_type.clone()).or_default();
                of_type.insert(real_name(name).to_owned());
            }
        }
        Ok(library)
    }

    /// Adds patterns to a scanner, creating it if necessary.
    fn add(&mut self, name: &str, written: Vec<ScanPattern>) -> Result<(), BadScanner> {
        let own = self.scanners.get(name).map(|scanner| scanner.patterns()).unwrap_or_default();
        let set = PatternSet::new(name, own.iter().cloned().chain(written).collect())?;
        self.scanners.insert(name.to_owned(), Arc::new(Scanner::of_patterns(name, set)));
        Ok(())
    }

    /// The scanners that a word in a rule refers to: the one of that name, and those whose findings are of that type.
    /// None if neither exists.
    pub(super) fn named(&self, word: &str) -> Vec<Arc<Scanner>> {
        let of_type = self.types.get(word).into_iter().flatten().map(String::as_str);
        let names: BTreeSet<&str> = of_type.chain([real_name(word)]).collect();
        names.into_iter().filter_map(|name| self.scanners.get(name).cloned()).collect()
    }

    /// Every name that a rule may use, for error messages.
    pub(super) fn names(&self) -> String {
        let names = self.scanners.keys().map(String::as_str).chain([KEYWORD]);
        names.collect::<Vec<_>>().join(", ")
    }
}

fn real_name(word: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word, |(_, name)| name)
}

/// Files spell it in three ways.
pub(super) fn is_keyword(word: &str) -> bool {
    matches!(word, KEYWORD | "keywords" | "keyword_match")
}
