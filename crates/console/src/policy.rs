//! Policy: the rules that are loaded, what they decided lately, and what they would say.

use crate::Console;
use crate::error_page::ErrorPage;
use crate::job::short;
use crate::page::{HtmlPage, PageFrame};
use crate::session::Session;
use crate::words::chip;
use axum::Form;
use axum::extract::State;
use axum::http::HeaderMap;
use maud::{Markup, html};
use reveille_api::body::Body;
use reveille_api::policy;
use reveille_api_types::policy::{CheckMeta, PolicyAnswer, PolicyCheck};
use reveille_store::JobQuery;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Jobs whose decisions are counted.
const COUNTED: usize = 500;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct PolicyForm {
    seal: String,
    topic: String,
    capability: String,
    risk_tags: String,
    principal: String,
    labels: String,
}

pub async fn show(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
) -> Result<HtmlPage, ErrorPage> {
    drawn(&console, &session, &headers, &PolicyForm::default(), None).await
}

/// What policy would say of a job, and why. Nothing is counted.
pub async fn simulate(
    State(console): State<Console>,
    session: Session,
    headers: HeaderMap,
    Form(asked): Form<PolicyForm>,
) -> Result<HtmlPage, ErrorPage> {
    session.allows(&asked.seal)?;
    let pairs = asked.labels.split(',').filter_map(|pair| pair.trim().split_once('='));
    let check = PolicyCheck {
        topic: asked.topic.trim().to_owned(),
        principal_id: asked.principal.trim().to_owned(),
        labels: pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect(),
        meta: CheckMeta {
            capability: asked.capability.trim().to_owned(),
            risk_tags: asked
                .risk_tags
                .split(',')
                .map(str::trim)
                .filter(|tag| !tag.is_empty())
                .map(str::to_owned)
                .collect(),
            ..CheckMeta::default()
        },
        ..PolicyCheck::default()
    };
    let answer = policy::explain(State(console.engine.clone()), session.auth.clone(), Body(check)).await;
    let answer = answer.map(|answer| answer.0).map_err(|error| error.message().to_owned());
    drawn(&console, &session, &headers, &asked, Some(answer)).await
}

async fn drawn(
    console: &Console,
    session: &Session,
    headers: &HeaderMap,
    asked: &PolicyForm,
    answer: Option<Result<PolicyAnswer, String>>,
) -> Result<HtmlPage, ErrorPage> {
    let query = JobQuery { tenant: session.auth.list_of(), limit: COUNTED, ..JobQuery::default() };
    let jobs = console.engine.jobs().list(&query).await?.items;
    let mut decided: BTreeMap<String, u64> = BTreeMap::new();
    for recorded in jobs.iter().flat_map(|job| &job.verdicts) {
        *decided.entry(recorded.verdict.rule_id.clone()).or_default() += 1;
    }
    let content = html! {
        h1 { "Policy" }
        @match console.engine.jobs().policy().kernel_address() {
            Some(address) => p.note { "Jobs are judged by another safety kernel: " code { (address) } "." },
            None => (rules(console, &decided, jobs.len())),
        }
        h2 { "What would it say?" }
        (form(session, asked))
        @match answer {
            None => {},
            Some(Err(problem)) => p.bad role="alert" { (problem) },
            Some(Ok(answer)) => (told(&answer)),
        }
    };
    let about = PageFrame { title: "Policy", place: "/ui/policy", live: "", every: 0 };
    Ok(console.page(session, headers, about, content).await)
}

fn rules(console: &Console, decided: &BTreeMap<String, u64>, jobs: usize) -> Markup {
    let loaded = console.engine.rules();
    let policy = &loaded.policy;
    html! {
        p.quiet { "Snapshot " code title=(policy.snapshot()) { (short(policy.snapshot())) } ". What no rule speaks of: " (chip(policy.default_decision().as_str())) "." }
        @for remark in policy.remarks() { p.note { (remark) "." } }
        div.scroll { table {
            thead { tr { th { "Rule" } th { "Tier" } th { "Decision" } th { "Reason" } th { "Decided, in the last " (jobs) " jobs" } } }
            tbody { @for (id, tier, decision, reason) in policy.rules() { tr {
                td { code { (id) } }
                td { (tier) }
                td { (chip(decision.as_str())) }
                td { (reason) }
                @match decided.get(id) {
                    Some(number) => td.number { (number) },
                    None => td.number.quiet { "never" },
                }
            } } }
        } }
    }
}

fn form(session: &Session, asked: &PolicyForm) -> Markup {
    let topic = if asked.topic.is_empty() { "job.default" } else { &asked.topic };
    html! {
        form.filter method="post" action="/ui/policy" {
            (session.hidden())
            label { "Topic " input name="topic" value=(topic) required; }
            label { "Capability " input name="capability" value=(asked.capability); }
            label { "Risks " input name="risk_tags" value=(asked.risk_tags) placeholder="pii, prod"; }
            label { "Asked by " input name="principal" value=(asked.principal); }
            label { "Labels " input name="labels" value=(asked.labels) placeholder="env=prod"; }
            button.main type="submit" { "Ask" }
        }
    }
}

fn told(answer: &PolicyAnswer) -> Markup {
    let decision = answer.decision.trim_start_matches("DECISION_TYPE_");
    let decision = if decision == "REQUIRE_HUMAN" { "REQUIRE_APPROVAL" } else { decision };
    html! {
        div.reason role="status" {
            p.words { (chip(decision)) " by " code { (answer.rule_id) } @if !answer.reason.is_empty() { ": " (answer.reason) } }
        }
        @if !answer.trace.is_empty() {
            div.scroll { table {
                thead { tr { th { "Rule" } th { "Matched" } th { "Why" } } }
                tbody { @for line in &answer.trace { tr {
                    td { code { (line.rule_id) } }
                    td { @if line.matched { (chip(&line.decision)) } @else { "no" } }
                    td { (line.why) }
                } } }
            } }
        }
    }
}
