//! The engine is cut into rooms, and a room knows only those that ARCHITECTURE.md draws an arrow to.
//!
//! A page that draws the walls and code that has doors elsewhere would teach a reader the wrong thing, so both ways
//! are checked: code that names a room without an arrow, and an arrow that no code has. Every folder is a room,
//! except the facade, which knows all of them. A file at the top without a folder is in none: small shared modules are
//! for everybody. Unit tests do not count.

use super::{source, sources_under};
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const SOURCES: &str = "crates/engine/src";
const PAGE: &str = "ARCHITECTURE.md";
const BLOCK: &str = "```text rooms";
/// Wires the rooms together: it knows all of them, and none knows it.
const FACADE: &str = "engine";

pub fn complaints() -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for path in sources_under(Path::new(SOURCES))? {
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let inside = path.strip_prefix(SOURCES)?.with_extension("");
        files.push((inside.to_string_lossy().into_owned(), text));
    }
    Ok(check(&files, &fs::read_to_string(PAGE)?))
}

/// Of files by their paths below the sources, without `.rs`.
fn check(files: &[(String, String)], page: &str) -> Vec<String> {
    let folders = files.iter().filter_map(|(path, _)| path.split_once('/'));
    let rooms: BTreeSet<&str> = folders.map(|(room, _)| room).filter(|room| *room != "tests").collect();
    let Some(drawn) = drawn(page) else {
        return vec![format!("{PAGE}:1: no block {BLOCK:?} with the rooms of {SOURCES}")];
    };
    let mut complaints = Vec::new();
    let mut met = BTreeSet::new();
    let room_by_name = room_by_name(files, &rooms);
    for (path, text) in files {
        let Some(room) = room_of(path, &rooms).filter(|room| *room != FACADE) else { continue };
        for (line, other) in rooms_named(path, text, &room_by_name) {
            if other != room && !drawn.arrows.contains_key(&(room, other)) {
                complaints
                    .push(format!("{SOURCES}/{path}.rs:{line}: {room} -> {other} is not drawn in {PAGE}"));
            }
            met.insert((room, other));
        }
    }
    for ((from, to), line) in drawn.arrows.iter().filter(|(arrow, _)| !met.contains(*arrow)) {
        complaints.push(format!("{PAGE}:{line}: {from} -> {to} is drawn, and no code has it"));
    }
    for (room, line) in drawn.rooms.iter().filter(|(room, _)| !rooms.contains(*room)) {
        complaints.push(format!("{PAGE}:{line}: there is no room `{room}` in {SOURCES}"));
    }
    for room in rooms.iter().filter(|room| **room != FACADE && !drawn.rooms.contains_key(*room)) {
        complaints.push(format!("{PAGE}:{}: room `{room}` is missing in the block {BLOCK:?}", drawn.line));
    }
    complaints
}

/// What the page draws: rooms, and arrows from one to another, each with its line.
struct Drawn<'a> {
    line: usize,
    rooms: BTreeMap<&'a str, usize>,
    arrows: BTreeMap<(&'a str, &'a str), usize>,
}

fn drawn(page: &str) -> Option<Drawn<'_>> {
    let mut lines = page.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let (line, _) = lines.find(|(_, line)| *line == BLOCK)?;
    let mut drawn = Drawn { line, rooms: BTreeMap::new(), arrows: BTreeMap::new() };
    for (line, text) in lines.take_while(|(_, line)| *line != "```").filter(|(_, line)| !line.is_empty()) {
        let (room, others) = text.split_once("->").unwrap_or((text, ""));
        drawn.rooms.insert(room.trim(), line);
        for other in others.split(',').map(str::trim).filter(|other| !other.is_empty()) {
            drawn.arrows.insert((room.trim(), other), line);
        }
    }
    Some(drawn)
}

fn room_of<'a>(path: &str, rooms: &BTreeSet<&'a str>) -> Option<&'a str> {
    let mut parts = path.split('/');
    let room = parts.next().and_then(|first| rooms.get(first)).copied();
    room.filter(|_| parts.all(|part| part != "tests"))
}

/// Which room a name at the top leads to: the rooms themselves, and what `lib.rs` brings there, since `crate::Job` is no
/// way around a wall.
fn room_by_name<'a>(files: &'a [(String, String)], rooms: &BTreeSet<&'a str>) -> BTreeMap<&'a str, &'a str> {
    let root = files.iter().find(|(path, _)| path == "lib").map_or("", |(_, text)| text);
    let room_of = |path: &source::CodePath| {
        let first = path.segments.iter().find(|part| !matches!(**part, "crate" | "self"))?;
        rooms.get(*first).copied()
    };
    let imports = source::imports(&source::tokens(root));
    let shown = imports.into_iter().filter_map(|path| Some((path.name, room_of(&path)?)));
    rooms.iter().map(|room| (*room, *room)).chain(shown).collect()
}

fn rooms_named<'a>(
    path: &str,
    text: &str,
    room_by_name: &BTreeMap<&'a str, &'a str>,
) -> Vec<(usize, &'a str)> {
    let depth = path.split('/').count();
    let named = |written: &source::CodePath| {
        let up = written.segments.iter().take_while(|part| **part == "super").count();
        let is_from_the_top = written.segments[0] == "crate" || up >= depth;
        let first = written.segments.get(up.max(1)).filter(|_| is_from_the_top)?;
        Some((written.line, *room_by_name.get(*first)?))
    };
    source::paths(&source::tokens(text)).iter().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWN: &str = "# Page\n\n```text rooms\njobs -> placement\nplacement\n```\n";

    #[track_caller]
    fn check_page(files: &[(&str, &str)], page: &str, expected: &[&str]) {
        let files: Vec<_> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        assert_eq!(check(&files, page), expected);
    }

    #[test]
    fn rooms_are_drawn() {
        let complaint = "ARCHITECTURE.md:1: no block \"```text rooms\" with the rooms of crates/engine/src";
        check_page(&[("jobs/submit", "")], "# Page\n", &[complaint]);
        let complaint = "ARCHITECTURE.md:1: room `jobs` is missing in the block \"```text rooms\"";
        check_page(&[("jobs/submit", "")], "```text rooms\n```\n", &[complaint]);
    }

    #[test]
    fn an_arrow_of_the_code_is_drawn() {
        let placement = ("placement/lane", "use crate::clock::Clock;\nfn f() { crate::jobs::f(); }");
        let jobs = ("jobs/submit", "use crate::{Engine, clock, placement::{A, B}};");
        let complaint =
            "crates/engine/src/placement/lane.rs:2: placement -> jobs is not drawn in ARCHITECTURE.md";
        check_page(&[placement, jobs], DRAWN, &[complaint]);
    }

    #[test]
    fn an_arrow_that_is_drawn_is_in_the_code() {
        let complaint = "ARCHITECTURE.md:4: jobs -> placement is drawn, and no code has it";
        let jobs = (
            "jobs",
            "use crate::jobs::x;\n// use crate::placement::X;\nconst X: &str = \"crate::placement\";",
        );
        check_page(&[jobs, ("jobs/submit", ""), ("placement/lane", "")], DRAWN, &[complaint]);
    }

    #[test]
    fn a_room_that_is_drawn_is_there() {
        let complaint = "ARCHITECTURE.md:5: there is no room `placement` in crates/engine/src";
        let arrow = "ARCHITECTURE.md:4: jobs -> placement is drawn, and no code has it";
        check_page(&[("jobs/submit", "use crate::placement::X;")], DRAWN, &[arrow, complaint]);
    }

    #[test]
    fn there_is_no_way_around_a_wall() {
        let files = |placement| {
            let root = ("lib", "mod jobs;\npub use jobs::{submit::Job, Other as Task};");
            let jobs = ("jobs/submit", "use crate::placement::X;");
            [root, jobs, ("placement", placement), ("placement/lane", "")]
        };
        let complaint = "crates/engine/src/placement.rs:1: placement -> jobs is not drawn in ARCHITECTURE.md";
        for way in ["use crate::Job;", "use crate::{Clock, Task};", "use super::Job;", "use super::jobs;"] {
            check_page(&files(way), DRAWN, &[complaint]);
        }
        check_page(&files("use crate::Other;"), DRAWN, &[]);
    }

    #[test]
    fn the_facade_shared_modules_and_tests_are_in_no_room() {
        let uses = "use crate::jobs::X;";
        let test = "#[cfg(test)]\nmod tests {\n    use crate::jobs::X;\n}\n";
        let outside = [("engine", uses), ("engine/start", uses), ("clock", uses)];
        let placement = [("placement", test), ("placement/lane", test), ("placement/tests", uses)];
        let jobs = [("jobs/submit", "use crate::placement::X;")];
        check_page(&[&outside[..], &placement, &jobs].concat(), DRAWN, &[]);
        let complaint =
            "crates/engine/src/placement/lane.rs:1: placement -> engine is not drawn in ARCHITECTURE.md";
        let placement = [("placement/lane", "use crate::engine::Engine;")];
        check_page(&[&outside[..], &placement, &jobs].concat(), DRAWN, &[complaint]);
    }

    #[test]
    fn every_folder_is_a_room() {
        let complaint = "ARCHITECTURE.md:3: room `roster` is missing in the block \"```text rooms\"";
        let jobs = ("jobs/submit", "use crate::placement::X;");
        check_page(&[jobs, ("placement/lane", ""), ("roster/writer", "")], DRAWN, &[complaint]);
    }
}
