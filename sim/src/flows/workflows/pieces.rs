//! The pieces that workflows are made of. Each begins when the one before has succeeded, and succeeds itself, except
//! the last.

use super::{STEP, UNDO};
use crate::flows::script::{fails_first, gives, told};
use crate::plan::DENIED;
use crate::rng::SimRng;
use serde_json::{Map, Value as Json, json};

pub struct Sketch<'a> {
    rng: &'a SimRng,
    gates: bool,
    steps: Map<String, Json>,
    /// The step that the next piece comes after.
    last: Option<String>,
}

impl<'a> Sketch<'a> {
    pub fn new(rng: &'a SimRng, gates: bool) -> Self {
        Self { rng, gates, steps: Map::new(), last: None }
    }

    pub fn steps(self) -> Json {
        Json::Object(self.steps)
    }

    /// Any piece that succeeds.
    pub fn piece(&mut self) {
        match self.rng.below(if self.gates { 17 } else { 16 }) {
            0..=2 => self.work(),
            3 | 4 => self.list(),
            5 => self.choice(),
            6 => self.all(),
            7 => self.first(),
            8 => self.two_of_three(),
            9 => self.rounds(),
            10 => self.delay(),
            11 => self.transform(),
            12 => self.child("child"),
            13 => self.mended(),
            14 => self.skipped(),
            15 => self.told_and_kept(),
            _ => self.gate("approve"),
        }
    }

    /// The last piece of a run that does not end well.
    pub fn fails(&mut self) {
        match self.rng.below(if self.gates { 8 } else { 7 }) {
            0 | 1 => self.fatal(),
            2 => self.denied(),
            3 => self.list_fails(),
            4 => self.nobody_succeeds(),
            5 => self.child("bad-child"),
            6 => self.too_late(),
            _ => self.gate("reject"),
        }
    }

    /// A step that succeeds, sometimes not at once.
    pub fn work(&mut self) {
        let what = json!({"n": "${input.n}", "with": "${ctx.limit}"});
        let times = if self.rng.percent(30) { self.rng.between(1, 2) as u32 } else { 0 };
        let mut step = json!({"topic": STEP, "input": fails_first(times, &what)});
        if times > 0 {
            step["retry"] = json!({"max_retries": 2, "initial_backoff_sec": self.rng.between(1, 9)});
        }
        if self.rng.percent(20) {
            step["delay_sec"] = json!(self.rng.between(1, 40));
        }
        self.may_be_undone(&mut step, "${input.n}");
        self.add_last("w", step);
    }

    pub fn fatal(&mut self) {
        self.add_last("f", json!({"topic": STEP, "input": told("fatal"), "retry": {"max_retries": 2}}));
    }

    fn list(&mut self) {
        let mut step = json!({
            "topic": STEP, "for_each": "${input.list}", "max_parallel": self.rng.between(1, 3),
            "input": gives(&json!({"item": "${item}", "index": "${index}"})),
        });
        self.may_be_undone(&mut step, "${item}");
        self.add_last("l", step);
    }

    /// One after the other, and one of them fails.
    fn list_fails(&mut self) {
        let failing = self.rng.below(3);
        let item = |number: u64| if number == failing { told("fatal") } else { gives(&json!(number)) };
        let mut step = json!({
            "topic": STEP, "for_each": [item(0), item(1), item(2)], "max_parallel": 1, "input": "${item}",
        });
        self.may_be_undone(&mut step, "${index}");
        self.add_last("l", step);
    }

    fn choice(&mut self) {
        let (one, other) = (self.worker("c"), self.worker("c"));
        let cases = json!([{"when": self.rng.between(0, 9), "next": one}]);
        let input = json!({"cases": cases, "default": other});
        self.add_last("s", json!({"type": "switch", "condition": "input.n", "input": input}));
        self.after_all(&[&one, &other]);
    }

    fn all(&mut self) {
        let branches = [self.worker("a"), self.worker("a"), self.worker("a")];
        self.add_last("p", json!({"type": "parallel", "input": {"steps": branches}}));
    }

    /// One succeeds, and the other, which would take for ever, is called back.
    fn first(&mut self) {
        let quick = self.worker("a");
        let slow = match self.rng.below(if self.gates { 3 } else { 2 }) {
            0 => self.add("h", json!({"topic": STEP, "input": told("hang")})),
            1 => self.add("h", json!({"type": "delay", "delay_sec": 360_000})),
            _ => self.add("h", json!({"type": "approval", "input": {"decide": "never"}})),
        };
        let input = json!({"steps": [slow, quick], "strategy": "any"});
        self.add_last("p", json!({"type": "parallel", "input": input}));
    }

    fn two_of_three(&mut self) {
        let slow = self.add("h", json!({"topic": STEP, "input": told("hang")}));
        let branches = [self.worker("a"), slow, self.worker("a")];
        let input = json!({"steps": branches, "strategy": "n_of_m", "required": 2});
        self.add_last("p", json!({"type": "parallel", "input": input}));
    }

    fn nobody_succeeds(&mut self) {
        let branch = || json!({"topic": STEP, "input": told("fatal")});
        let branches = [self.add("a", branch()), self.add("a", branch())];
        let input = json!({"steps": branches, "strategy": "any"});
        self.add_last("p", json!({"type": "parallel", "input": input}));
    }

    fn rounds(&mut self) {
        let mut body = json!({"topic": STEP, "input": gives(&json!({"round": "${index}"}))});
        if self.rng.percent(30) {
            body["delay_sec"] = json!(self.rng.between(1, 10));
        }
        self.may_be_undone(&mut body, "${index}");
        let body = self.add("b", body);
        let until = format!("steps.{body}.output.round >= {}", self.rng.between(0, 2));
        self.add_last("r", json!({"type": "loop", "input": {"body_step": body, "until": until}}));
    }

    fn delay(&mut self) {
        self.add_last("d", json!({"type": "delay", "delay_sec": self.rng.between(1, 90)}));
    }

    fn transform(&mut self) {
        let before = match &self.last {
            Some(last) => format!("${{steps.{last}.output}}"),
            None => "${input.list}".to_owned(),
        };
        let mut step = json!({"type": "transform", "input": {"more": "${input.n + 1}", "before": before}});
        self.may_be_undone(&mut step, "${input.n}");
        self.add_last("t", step);
    }

    fn child(&mut self, workflow: &str) {
        let input =
            json!({"workflow_id": workflow, "input_mapping": {"n": "${input.n}", "list": "${input.list}"}});
        let mut step = json!({"type": "subworkflow", "input": input});
        self.may_be_undone(&mut step, "${input.n}");
        self.add_last("k", step);
    }

    /// A step that fails for good, and another that is there for that.
    fn mended(&mut self) {
        let mend = self.worker("m");
        let step = json!({"topic": STEP, "input": told("fatal"), "on_error": mend});
        let fails = self.add_last("f", step);
        self.after_all(&[&fails, &mend]);
    }

    fn skipped(&mut self) {
        let step = json!({"topic": STEP, "input": told("fatal"), "condition": "input.n > 1000"});
        let skipped = self.add_last("s", step);
        self.after_all(&[&skipped]);
    }

    fn told_and_kept(&mut self) {
        self.add_last("n", json!({"type": "notify", "input": {"message": "at ${input.n}"}}));
        let write = json!({"operation": "write", "key": "seen", "value": ["${input.n}"]});
        self.add_last("o", json!({"type": "storage", "input": write}));
        self.add_last("o", json!({"type": "storage", "input": {"operation": "read", "key": "seen"}}));
    }

    fn gate(&mut self, decision: &str) {
        self.add_last("g", json!({"type": "approval", "input": {"decide": decision}}));
    }

    fn denied(&mut self) {
        self.add_last("f", json!({"topic": DENIED, "input": told("fatal"), "retry": {"max_retries": 2}}));
    }

    fn too_late(&mut self) {
        let seconds = self.rng.between(5, 60);
        self.add_last("f", json!({"topic": STEP, "input": told("late"), "timeout_sec": seconds}));
    }

    /// A step that another one lets begin.
    fn worker(&mut self, letter: &str) -> String {
        let mut step = json!({"topic": STEP, "input": gives(&json!({"n": "${input.n}"}))});
        self.may_be_undone(&mut step, "${input.n}");
        self.add(letter, step)
    }

    /// Goes on when these are over, however.
    fn after_all(&mut self, steps: &[&str]) {
        let step = json!({"type": "transform", "depends_on": steps, "run_when": "settled", "input": "on"});
        self.last = Some(self.add("e", step));
    }

    fn may_be_undone(&self, step: &mut Json, what: &str) {
        if self.rng.percent(60) {
            let times = if self.rng.percent(20) { self.rng.between(1, 2) as u32 } else { 0 };
            let input = if self.rng.percent(10) { told("fatal") } else { fails_first(times, &json!(what)) };
            step["compensation"] = json!({"topic": UNDO, "input": input});
        }
    }

    fn add(&mut self, letter: &str, step: Json) -> String {
        let id = format!("{letter}{}", self.steps.len());
        self.steps.insert(id.clone(), step);
        id
    }

    fn add_last(&mut self, letter: &str, mut step: Json) -> String {
        if let Some(last) = &self.last {
            step["depends_on"] = json!([last]);
        }
        let id = self.add(letter, step);
        self.last = Some(id.clone());
        id
    }
}
