//! Workflows and what they look like.

use reveille_core::flow::{Flow, WorkflowDocument};
use reveille_core::time::Millis;
use reveille_diagram::{Layout, draw_svg, draw_text};
use serde_json::{Value as Json, json};

fn document(steps: Json) -> WorkflowDocument {
    document_with(steps, json!({}))
}

fn document_with(steps: Json, mut more: Json) -> WorkflowDocument {
    more["id"] = json!("w");
    if more["name"].is_null() {
        more["name"] = json!("a workflow");
    }
    more["steps"] = steps;
    serde_json::from_value(more).unwrap_or_else(|error| panic!("{error}"))
}

fn drawn(document: &WorkflowDocument) -> (Flow, Layout) {
    let flow = Flow::check(document, 1, Millis(0)).unwrap_or_else(|problem| panic!("{problem}"));
    let layout = Layout::of(&flow);
    (flow, layout)
}

fn check(document: &WorkflowDocument, expected: &str) {
    let (flow, layout) = drawn(document);
    let picture = draw_text(&flow, &layout, 80);
    assert!(picture.lines().all(|line| line.chars().count() <= 80), "\n{picture}");
    assert!(picture.trim_end() == expected.trim_matches('\n'), "\n{picture}");
}

fn after(before: &[&str]) -> Json {
    json!({"topic": "job.x", "depends_on": before})
}

#[test]
fn a_switch_its_branches_and_what_follows() {
    let steps = json!({
        "classify": {"topic": "job.ticket.classify"},
        "route": {"type": "switch", "depends_on": ["classify"], "condition": "steps.classify.output.kind",
                  "input": {"cases": [{"when": "bug", "next": "triage"}, {"when": 2, "next": "triage"},
                                      {"when": "billing", "next": "refund"}], "default": "answer"}},
        "triage": {"topic": "job.ticket.triage"},
        "refund": {"topic": "job.ticket.refund", "compensation": {"topic": "job.ticket.unrefund"}},
        "answer": {"topic": "job.ticket.answer", "worker_id": "w1"},
        "close": {"type": "transform", "depends_on": ["triage", "refund", "answer"], "run_when": "settled"},
    });
    check(
        &document_with(steps, json!({"name": "A router"})),
        "
w: A router
6 steps in 4 layers; ↺ can be undone

1 ●     classify    worker job.ticket.classify
2 ●     route       switch on steps.classify.output.kind
  │                 after classify
  ├─╮
3 │ ●   answer      worker job.ticket.answer at w1
  │ │               chosen by route: otherwise
  ├─│─╮
  │ │ ● refund ↺    worker job.ticket.refund
  │ │ │             chosen by route: billing
  │ │ │             undone by job.ticket.unrefund
  ● │ │ triage      worker job.ticket.triage
  │ │ │             chosen by route: bug, 2
  ├─┴─╯
4 ●     close       transform
                    after answer, refund, triage, however they end
",
    );
}

#[test]
fn lines_that_cross_and_a_step_that_many_wait_for() {
    let steps = json!({
        "a": after(&[]), "b": after(&["a"]), "c": after(&["a"]), "d": after(&["a", "b"]), "e": after(&["c", "d"]),
        "lone": {"type": "delay", "delay_sec": 2.5},
        "fan": {"type": "parallel", "depends_on": ["lone"], "input": {"steps": ["x", "y"], "strategy": "any"}},
        "x": {"topic": "job.x", "condition": "input.n > 1"},
        "y": {"topic": "job.y", "for_each": "${input.list}", "max_parallel": 2, "retry": {"max_retries": 3}},
        "join": {"type": "approval", "depends_on": ["fan", "e", "a"]},
    });
    check(
        &document(steps),
        "
w: a workflow
10 steps in 5 layers

1 ●         a       worker job.x
  │ ●       lone    delay
  │ │               waits 2.5 s
  ├─│─╮
2 │ │ ●     b       worker job.x
  │ │ │             after a
  ├─│─│─╮
  │ │ │ ●   c       worker job.x
  │ │ │ │           after a
  │ ● │ │   fan     parallel 1 of 2
  │ │ │ │           after lone
  ├─│─┤ │
3 │ │ ● │   d       worker job.x
  │ │ │ │           after a, b
  │ ├─│─│─╮
  │ │ │ │ ● x       worker job.x
  │ │ │ │ │         with fan
  │ │ │ │ │         if input.n > 1
  │ ● │ │ │ y       worker job.y
  │ │ │ │ │         with fan
  │ │ │ │ │         for each of input.list, 2 at once
  │ │ │ │ │         tried 3 times more
  │ │ ├─╯ │
4 │ │ ●   │ e       worker job.x
  │ │ │   │         after c, d
  ├─┴─┴───╯
5 ●         join    approval
                    after a, e, fan
",
    );
}

#[test]
fn loops_handlers_and_the_other_kinds() {
    let steps = json!({
        "fetch": {"topic": "job.fetch", "on_error": "mend", "retry": {"max_retries": 1}},
        "mend": {"type": "subworkflow", "input": {"workflow_id": "mending"}},
        "poll": {"type": "loop", "depends_on": ["fetch", "mend"], "run_when": "settled",
                 "input": {"body_step": "look", "while": "index < 3", "until": "steps.look.output.done"}},
        "look": {"topic": "job.look", "delay_sec": 10},
        "keep": {"type": "storage", "depends_on": ["poll"], "input": {"operation": "write", "key": "kept", "value": 1}},
        "tell": {"type": "notify", "depends_on": ["keep"], "input": {"message": "done", "level": "warning"}, "delay_until": "${input.at}"},
        "yes": {"type": "condition", "condition": "input.n > 1"},
    });
    check(
        &document(steps),
        "
w: a workflow
7 steps in 6 layers

1 ●   fetch    worker job.fetch
  │            tried once more
  │ ● yes      condition input.n > 1
  ├─╮
2 │ ● mend     subworkflow mending
  │ │          if fetch fails
  ├─╯
3 ●   poll     loop while index < 3, until steps.look.output.done, at most 100 …
  │            after fetch, mend, however they end
4 ●   look     worker job.look
  │            in every round of poll
  │            waits 10 s
5 ●   keep     storage write kept
  │            after poll
6 ●   tell     notify warning
               after keep
               waits until input.at
",
    );
}

#[test]
fn too_many_lanes_leave_the_words() {
    let mut steps = json!({"end": {}});
    let names: Vec<String> = (10..40).map(|n| format!("s{n}")).collect();
    for name in &names {
        steps[name] = after(&[]);
    }
    steps["end"] = after(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let (flow, layout) = drawn(&document(steps));
    let picture = draw_text(&flow, &layout, 80);
    let lines: Vec<&str> = picture.lines().collect();
    assert_eq!(lines[3], "1  s10    worker job.x");
    assert_eq!(lines[4], "   s11    worker job.x");
    assert_eq!(lines.len(), 3 + 31 + 1);
    assert!(lines[34].ends_with('…') && lines[34].chars().count() == 80, "{}", lines[34]);
}

#[test]
fn an_svg_stands_alone_and_what_people_wrote_is_only_text() {
    let steps = json!({
        "a": {"topic": "job.<script>alert(1)</script>", "condition": "input.a < 2 && input.b == \"x\""},
        "b": {"topic": "job.b", "depends_on": ["a"], "compensation": {"topic": "job.unb"}},
        "way": {"type": "switch", "condition": "input.k", "input": {"cases": [{"when": "</text>&\u{1}", "next": "c"}]}},
        "c": {"topic": "job.c"},
    });
    let (flow, layout) = drawn(&document_with(steps, json!({"name": "\"><script src='http://x'>\u{ffff}"})));
    let picture = draw_svg(&flow, &layout);
    assert!(
        picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" ") && picture.ends_with("</svg>\n")
    );
    assert!(!picture.contains("<script") && !picture.contains('\u{1}') && !picture.contains('\u{ffff}'));
    assert!(!picture.replace("http://www.w3.org/2000/svg", "").contains("href"), "nothing is fetched");
    assert!(picture.contains("job.&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(picture.contains(">&lt;/text&gt;&amp; </text>"), "{picture}");
    assert!(picture.contains("prefers-color-scheme: dark"));
    assert_eq!(picture.matches("↺").count(), 1);
    for tag in ["svg", "g", "text", "title", "style"] {
        let opened =
            picture.matches(&format!("<{tag}>")).count() + picture.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, picture.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}
