//! `reveille approval …`

use crate::args::{ApprovalCommand, ResolveArgs, ServerArgs};
use crate::client::connect;
use crate::output;
use anyhow::Result;
use reveille_api_types::approval::{
    self as shape, ApprovalContext, Approved, PriorApproval, Rejected, Resolution,
};
use reveille_engine::{Clock, SystemClock};
use serde_json::Value;
use std::process::ExitCode;

pub fn run(command: ApprovalCommand) -> Result<ExitCode> {
    match command {
        ApprovalCommand::List { all, limit, server } => list(all, limit, &server),
        ApprovalCommand::Show { id, server } => show(&id, &server),
        ApprovalCommand::Approve(resolve) => approve(&resolve),
        ApprovalCommand::Reject(resolve) => reject(&resolve),
    }
}

fn list(all: bool, limit: usize, server: &ServerArgs) -> Result<ExitCode> {
    let include = if all { "true" } else { "false" };
    let now = SystemClock::start().now().0;
    output::list(
        server,
        connect(server)?.list("/api/v1/approvals", &[("include_resolved", include)], limit),
        &["JOB", "TOPIC", "TENANT", "ASKED BY", "RULE", "STATUS", "DECIDED BY", "ASKED"],
        |approval: shape::Approval| {
            let is_own = approval.approval_actionability == "own_job";
            vec![
                approval.job.id,
                approval.job.topic,
                approval.job.tenant,
                approval.job.principal,
                approval.policy_rule_id,
                if is_own { "pending (yours)".to_owned() } else { approval.approval_status },
                approval.resolved_by.unwrap_or_default(),
                output::ago(approval.requested_at, now),
            ]
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

fn show(id: &str, server: &ServerArgs) -> Result<ExitCode> {
    let answer: Value = connect(server)?.get(&format!("/api/v1/approvals/{id}/context"), &[])?;
    output::answer(server, &answer, |context: ApprovalContext| {
        let (approval, reach) = (&context.approval, &context.blast_radius);
        let left = context
            .time_remaining_ms
            .map_or("as long as it takes".to_owned(), |ms| format!("{} s", ms / 1000));
        let workers = format!("{} {}", reach.workers_total, reach.workers.join(", "));
        output::facts(
            12,
            &[
                ("job", &approval.job.id),
                ("topic", &reach.topic),
                ("asked by", &approval.job.principal),
                ("status", &approval.approval_status),
                ("rule", &approval.policy_rule_id),
                ("reason", approval.policy_reason.trim_end()),
                ("risk tags", &reach.risk_tags.join(", ")),
                ("pools", &reach.pools.join(", ")),
                ("workers", workers.trim_end()),
                ("rollback", &context.rollback_hint.hint),
                ("time left", &left),
                ("decided by", approval.resolved_by.as_deref().unwrap_or_default()),
                ("comment", approval.resolved_comment.as_deref().unwrap_or_default().trim_end()),
                ("job hash", &approval.job_hash),
                ("policy", &approval.policy_snapshot),
                ("input", output::text(&context.input.value).trim_end()),
            ],
        );
        for PriorApproval { job_id, decision, resolved_by, .. } in &context.prior_approvals {
            let by = resolved_by.as_deref().unwrap_or_default();
            output::line(&format!("{:12} {job_id} {decision} {by}", "before"));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn approve(resolve: &ResolveArgs) -> Result<ExitCode> {
    let answer = decide("approve", resolve)?;
    output::answer(&resolve.server, &answer, |said: Approved| {
        print_decision(&resolve.id, "approved", said.status.is_some(), said.approved_by);
    })?;
    Ok(ExitCode::SUCCESS)
}

fn reject(resolve: &ResolveArgs) -> Result<ExitCode> {
    let answer = decide("reject", resolve)?;
    output::answer(&resolve.server, &answer, |said: Rejected| {
        print_decision(&resolve.id, "rejected", said.status.is_some(), said.rejected_by);
    })?;
    Ok(ExitCode::SUCCESS)
}

fn decide(verb: &str, resolve: &ResolveArgs) -> Result<Value> {
    let body = Resolution {
        reason: resolve.reason.clone(),
        note: None,
        job_hash: resolve.job_hash.clone(),
        policy_snapshot: resolve.policy_snapshot.clone(),
    };
    Ok(connect(&resolve.server)?.post(&format!("/api/v1/approvals/{}/{verb}", resolve.id), &body)?)
}

/// Says what has become of a job, and whether somebody had decided before.
fn print_decision(id: &str, done: &str, was_before: bool, by: Option<String>) {
    if was_before {
        output::line(&format!("{id} was {done} already, by {}", by.unwrap_or_default()));
    } else {
        output::line(&format!("{id} is {done}"));
    }
}
