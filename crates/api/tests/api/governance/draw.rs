//! What is drawn: policies, jobs, and what happens to them.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

pub const TOPICS: [&str; 3] = ["job.a", "job.b", "job.c"];
pub const TENANTS: [&str; 2] = ["acme", "zeta"];
const ENVS: [&str; 2] = ["dev", "prod"];
const DECISIONS: [&str; 5] = ["allow", "deny", "require_approval", "throttle", "allow_with_constraints"];

#[derive(Debug, Clone)]
pub struct Story {
    /// The first is in force at the start.
    pub policies: Vec<Value>,
    pub acts: Vec<Act>,
}

#[derive(Debug, Clone)]
pub struct Asked {
    pub tenant: &'static str,
    pub topic: &'static str,
    pub env: Option<&'static str>,
    pub is_risky: bool,
    /// The label by which the reference's scheduler knows an approved job.
    pub claims_approval: bool,
    /// The labels by which it knows a compensation, which it lets pass where policy cannot be asked.
    pub claims_compensation: bool,
}

/// Numbers pick one of those that are there, whichever that is.
#[derive(Debug, Clone)]
pub enum Act {
    SubmitOverHttp(Asked),
    SubmitOverGrpc(Asked),
    SubmitOverBus(Asked),
    /// A run whose one job is undone by another.
    StartRun {
        tenant: &'static str,
        topic: &'static str,
    },
    /// A packet with the id of a job that waits for a person, and the claim that one has agreed.
    ForgeApproval(usize),
    Approve(usize),
    Reject(usize),
    Cancel(usize),
    RetryLetter(usize),
    RedriveAll,
    /// A job that policy stopped is asked for in the way that policy offered.
    Remediate(usize),
    Reload(usize),
    /// The worker does this with the next packets it gets.
    Behave(usize, Behaviour),
    /// It falls silent until its jobs are taken back, and then returns.
    WorkerDies(usize),
    /// Somebody speaks of a job that they were never given.
    FalseReport(usize),
    Restart,
    Wait(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    Succeeds,
    Fails,
    AsksForAnotherTry,
    /// Takes the job and forgets it.
    Forgets,
}

pub fn story() -> impl Strategy<Value = Story> {
    (vec(policy(), 2..5), vec(act(), 20..60)).prop_map(|(policies, acts)| Story { policies, acts })
}

fn policy() -> impl Strategy<Value = Value> {
    let default = select(&["allow", "allow", "deny", "require_approval"][..]);
    (vec(rule(), 0..5), default).prop_map(|(rules, default)| {
        let named = rules.into_iter().enumerate().map(|(number, mut rule)| {
            rule["id"] = json!(format!("r{number}"));
            rule
        });
        json!({"default_decision": default, "rules": named.collect::<Vec<_>>()})
    })
}

fn rule() -> impl Strategy<Value = Value> {
    let matcher = (
        option::of(select(&TOPICS[..])),
        option::of(select(&TENANTS[..])),
        option::of(select(&ENVS[..])),
        any::<bool>(),
    );
    (matcher, option::weighted(0.2, 1u32..4), select(&DECISIONS[..])).prop_map(
        |((topic, tenant, env, asks_risk), often, decision)| {
            let way_out =
                json!({"id": "way-out", "add_labels": {"env": "dev"}, "remove_labels": ["approval_granted"]});
            let mut rule = json!({"match": {}, "decision": decision, "remediations": [way_out]});
            if let Some(topic) = topic {
                rule["match"]["topics"] = json!([topic]);
            }
            if let Some(tenant) = tenant {
                rule["match"]["tenants"] = json!([tenant]);
            }
            match (env, asks_risk) {
                (Some(env), false) => rule["match"]["labels"] = json!({"env": env}),
                (Some(env), true) => rule["when"] = json!(format!("job.labels.env == '{env}'")),
                (None, true) => rule["match"]["risk_tags"] = json!(["money"]),
                (None, false) => {}
            }
            if let Some(max) = often {
                rule["velocity"] = json!({"max_requests": max, "window_seconds": 30, "key": "tenant"});
            }
            rule
        },
    )
}

fn asked() -> impl Strategy<Value = Asked> {
    let words = (select(&TENANTS[..]), select(&TOPICS[..]), option::of(select(&ENVS[..])));
    let claims = (any::<bool>(), any::<bool>());
    (words, any::<bool>(), claims).prop_map(|((tenant, topic, env), is_risky, claims)| {
        let (claims_approval, claims_compensation) = claims;
        Asked { tenant, topic, env, is_risky, claims_approval, claims_compensation }
    })
}

fn act() -> impl Strategy<Value = Act> {
    let which = 0usize..100;
    let behaviour = select(
        &[Behaviour::Succeeds, Behaviour::Fails, Behaviour::AsksForAnotherTry, Behaviour::Forgets][..],
    );
    prop_oneof![
        6 => asked().prop_map(Act::SubmitOverHttp),
        3 => asked().prop_map(Act::SubmitOverGrpc),
        6 => asked().prop_map(Act::SubmitOverBus),
        4 => (select(&TENANTS[..]), select(&TOPICS[..])).prop_map(|(tenant, topic)| Act::StartRun { tenant, topic }),
        2 => which.clone().prop_map(Act::ForgeApproval),
        4 => which.clone().prop_map(Act::Approve),
        1 => which.clone().prop_map(Act::Reject),
        1 => which.clone().prop_map(Act::Cancel),
        3 => which.clone().prop_map(Act::RetryLetter),
        2 => Just(Act::RedriveAll),
        3 => which.clone().prop_map(Act::Remediate),
        3 => which.clone().prop_map(Act::Reload),
        4 => (which.clone(), behaviour).prop_map(|(worker, how)| Act::Behave(worker, how)),
        1 => which.clone().prop_map(Act::WorkerDies),
        2 => which.prop_map(Act::FalseReport),
        1 => Just(Act::Restart),
        4 => (1u64..20_000).prop_map(Act::Wait),
    ]
}
