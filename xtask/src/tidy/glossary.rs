//! A word of our own means one thing: docs/glossary.md has it once and names what defines it, and that stands in one
//! place. A word that was given up does not come back as the name of a module or of a type.

use super::{source, sources_under};
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/glossary.md";
const SOURCES: [&str; 4] = ["crates", "sim", "xtask", "bench"];
const WORDS: &str = "## Words";
const RETIRED: &str = "## Retired words";

pub fn complaints() -> anyhow::Result<Vec<String>> {
    let mut code = Code::default();
    for directory in SOURCES {
        for path in sources_under(Path::new(directory))? {
            if path.extension().is_some_and(|end| end == "rs") {
                let text =
                    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
                code.add(path, &text);
            }
        }
    }
    let page = fs::read_to_string(PAGE)?;
    Ok([word_complaints(&page, &code), retired_complaints(&page, &code)].concat())
}

/// The files there are, and which of them define a type of some name.
#[derive(Default)]
struct Code {
    files: BTreeSet<PathBuf>,
    types: BTreeMap<String, Vec<Definition>>,
}

struct Definition {
    path: PathBuf,
    line: usize,
}

impl Code {
    fn add(&mut self, path: PathBuf, text: &str) {
        for pair in source::tokens(text).windows(2) {
            let (keyword, name) = (pair[0].text, pair[1]);
            if matches!(keyword, "struct" | "enum" | "trait" | "type")
                && name.text.starts_with(char::is_uppercase)
            {
                let definition = Definition { path: path.clone(), line: name.line };
                self.types.entry(name.text.to_owned()).or_default().push(definition);
            }
        }
        self.files.insert(path);
    }

    /// What is wrong with a path such as `core::placement::lane::Lane` or `core::life`.
    fn complaint(&self, written: &str) -> Option<String> {
        let mut modules: Vec<&str> = written.split("::").collect();
        let name = modules.pop_if(|last| last.starts_with(char::is_uppercase));
        let module = files_of(&modules).into_iter().find(|path| self.files.contains(path));
        let Some(module) = module else { return Some(format!("there is no module for `{written}`")) };
        let name = name?;
        let none = Vec::new();
        let all =
            self.types.get(name).unwrap_or(&none).iter().filter(|definition| !is_test(&definition.path));
        let (here, elsewhere): (Vec<_>, Vec<_>) = all.partition(|definition| definition.path == module);
        match (here.as_slice(), elsewhere.first()) {
            ([], None) => Some(format!("there is no type `{written}`")),
            ([], Some(other)) => Some(format!("`{written}` is not there, but in {}", other.path.display())),
            ([_], None) => None,
            ([_], Some(other)) => {
                Some(format!("`{written}` is not the only `{name}`: {}:{}", other.path.display(), other.line))
            }
            ([_, second, ..], _) => {
                Some(format!("`{written}` is not the only `{name}`: {}:{}", module.display(), second.line))
            }
        }
    }
}

/// Where a module may be: `core::life` in one of two files, `roster` in its crate's root.
fn files_of(modules: &[&str]) -> Vec<PathBuf> {
    let Some((first, inside)) = modules.split_first() else { return Vec::new() };
    let folders = [format!("crates/{}/src", first.replace('_', "-")), format!("{first}/src")];
    let file = if inside.is_empty() { "lib".to_owned() } else { inside.join("/") };
    folders.iter().map(|folder| PathBuf::from(format!("{folder}/{file}.rs"))).collect()
}

fn is_test(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "tests.rs")
}

fn word_complaints(page: &str, code: &Code) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut met = BTreeSet::new();
    let retired: BTreeSet<String> = rows(page, RETIRED).map(|row| row.word).collect();
    for GlossaryRow { line, word, second } in rows(page, WORDS) {
        if retired.contains(&word) {
            complaints.push(format!("{PAGE}:{line}: `{word}` is retired"));
        }
        complaints
            .extend(code.complaint(second.trim_matches('`')).map(|what| format!("{PAGE}:{line}: {what}")));
        if !met.insert(word.clone()) {
            complaints.push(format!("{PAGE}:{line}: `{word}` stands here for the second time"));
        }
    }
    if met.is_empty() {
        complaints.push(format!("{PAGE}:1: no table under `{WORDS}`"));
    }
    complaints
}

fn retired_complaints(page: &str, code: &Code) -> Vec<String> {
    let retired: BTreeMap<String, String> = rows(page, RETIRED).map(|row| (row.word, row.second)).collect();
    let mut complaints = Vec::new();
    let mut check = |place: String, name: &str| {
        let singular_too = |word: &String| [word.clone(), word.trim_end_matches('s').to_owned()];
        for word in words_in(name).iter().flat_map(singular_too).collect::<BTreeSet<_>>() {
            if let Some(instead) = retired.get(&word) {
                complaints.push(format!("{place}: `{name}`: the word {word} is retired; say {instead}"));
            }
        }
    };
    for path in &code.files {
        for part in path {
            let name = Path::new(part).file_stem().unwrap_or_default().to_string_lossy();
            check(path.display().to_string(), &name);
        }
    }
    for (name, definitions) in &code.types {
        for Definition { path, line } in definitions {
            check(format!("{}:{line}", path.display()), name);
        }
    }
    complaints
}

/// `SimClock` and `sim_clock` are both `sim` and `clock`.
fn words_in(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if letter.is_uppercase() || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(last) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            last.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

struct GlossaryRow {
    line: usize,
    word: String,
    second: String,
}

/// The rows of the table in a section, without its head.
fn rows<'a>(page: &'a str, section: &'a str) -> impl Iterator<Item = GlossaryRow> + 'a {
    let lines = page.lines().enumerate().skip_while(move |(_, line)| *line != section).skip(1);
    let table =
        lines.take_while(|(_, line)| !line.starts_with("## ")).filter(|(_, line)| line.starts_with('|'));
    table.skip(2).map(|(index, line)| {
        let mut cells = line.split('|').skip(1).map(|cell| cell.trim().to_owned());
        GlossaryRow {
            line: index + 1,
            word: cells.next().unwrap_or_default(),
            second: cells.next().unwrap_or_default(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETIRED_ROWS: &str =
        "## Retired words\n\n| word | say |\n|---|---|\n| floor | placement |\n| seal | session token |\n";

    fn code(files: &[(&str, &str)]) -> Code {
        let mut code = Code::default();
        for (path, text) in files {
            code.add(PathBuf::from(path), text);
        }
        code
    }

    #[track_caller]
    fn check_words(rows: &str, files: &[(&str, &str)], expected: &[&str]) {
        let page = format!("# G\n\n## Words\n\n| word | is | what |\n|---|---|---|\n{rows}\n{RETIRED_ROWS}");
        assert_eq!(word_complaints(&page, &code(files)), expected);
    }

    const LANE: (&str, &str) = ("crates/core/src/placement/lane.rs", "//! Lanes.\npub struct Lane {}\n");

    #[test]
    fn a_word_is_defined_where_the_page_says() {
        let row = "| lane | `core::placement::lane::Lane` | A line. |";
        check_words(row, &[LANE], &[]);
        check_words("| lane | `core::placement::lane` | A line. |", &[LANE], &[]);
        check_words("| desk | `test_kit` | A desk. |", &[("crates/test-kit/src/lib.rs", "")], &[]);
        check_words("| world | `sim::world` | All. |", &[("sim/src/world.rs", "")], &[]);
        let complaint = "docs/glossary.md:7: there is no module for `core::placement::lane::Lane`";
        check_words(row, &[], &[complaint]);
        let complaint = "docs/glossary.md:7: there is no type `core::placement::lane::Lane`";
        check_words(row, &[("crates/core/src/placement/lane.rs", "// struct Lane")], &[complaint]);
        let complaint =
            "docs/glossary.md:7: `core::life::Lane` is not there, but in crates/core/src/placement/lane.rs";
        check_words(
            "| lane | `core::life::Lane` | A line. |",
            &[LANE, ("crates/core/src/life.rs", "")],
            &[complaint],
        );
    }

    #[test]
    fn a_word_is_defined_once() {
        let row = "| lane | `core::placement::lane::Lane` | A line. |";
        let complaint =
            "docs/glossary.md:7: `core::placement::lane::Lane` is not the only `Lane`: sim/src/road.rs:1";
        for second in ["enum Lane {}", "pub trait Lane {}", "type Lane = u8;"] {
            check_words(row, &[LANE, ("sim/src/road.rs", second)], &[complaint]);
        }
        check_words(
            row,
            &[LANE, ("crates/a/src/tests.rs", "struct Lane;"), ("sim/src/a.rs", "struct Lanes;")],
            &[],
        );
    }

    #[test]
    fn a_word_stands_once_on_the_page() {
        let rows =
            "| lane | `core::placement::lane` | A line. |\n| lane | `core::placement::lane` | A way. |";
        check_words(rows, &[LANE], &["docs/glossary.md:8: `lane` stands here for the second time"]);
        check_words("", &[], &["docs/glossary.md:1: no table under `## Words`"]);
        let complaint = "docs/glossary.md:7: `floor` is retired";
        check_words("| floor | `core::placement::lane` | A floor. |", &[LANE], &[complaint]);
    }

    #[test]
    fn a_retired_word_names_nothing() {
        let check = |files: &[(&str, &str)], expected: &[&str]| {
            assert_eq!(retired_complaints(RETIRED_ROWS, &code(files)), expected);
        };
        check(
            &[("crates/core/src/a.rs", "struct Flooring; fn floor() {} // struct Floor\nstruct Sealed;")],
            &[],
        );
        check(
            &[("crates/core/src/floor/a.rs", "")],
            &["crates/core/src/floor/a.rs: `floor`: the word floor is retired; say placement"],
        );
        check(
            &[("crates/core/src/key_seals.rs", "")],
            &["crates/core/src/key_seals.rs: `key_seals`: the word seal is retired; say session token"],
        );
        check(
            &[("crates/core/src/a.rs", "\nenum TopFloor {}")],
            &["crates/core/src/a.rs:2: `TopFloor`: the word floor is retired; say placement"],
        );
    }
}
