//! The audit trail: what is decided is recorded with it, once, in a chain without gaps.

use super::{ManualClock, change, insert, load, new_job};
use crate::{AuditOrder, AuditQuery, AuditTrail, Commit, PAGE_LEN_MAX, Page, Step, Store, verify_chain};
use reveille_core::approval::Answer;
use reveille_core::audit::{Draft, Entry, EventType, Severity, Status, Verification};
use reveille_core::id::{JobId, TenantId};
use reveille_core::job::{Job, State};
use reveille_core::life;
use reveille_core::policy::{Decision, Policy, RecordedVerdict, Verdict};
use reveille_core::time::Millis;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;

/// How many tasks commit at once, and how often.
const COMMITTERS: usize = 16;
const COMMITS: usize = 12;

pub async fn run(store: &Arc<dyn Store>, clock: &ManualClock) {
    what_a_commit_decides_is_recorded_with_it(&**store, clock).await;
    a_refused_step_records_nothing(&**store, clock).await;
    many_committers_leave_neither_gap_nor_double(store, clock).await;
    nothing_is_recorded_under_a_lock_that_has_lapsed(&**store, clock).await;
    of_any_trail(&**store, clock).await;
}

/// What a trail promises wherever its entries come from.
pub async fn of_any_trail(trail: &dyn AuditTrail, clock: &ManualClock) {
    what_belongs_to_no_job_is_recorded_too(trail, clock).await;
    every_filter_is_applied_before_the_limit(trail, clock).await;
    pages_neither_skip_nor_repeat_while_entries_come(trail, clock).await;
    a_long_chain_is_checked_to_its_end(trail, clock).await;
    a_pruned_chain_goes_on_and_holds(trail, clock).await;
    what_is_recorded_later_is_not_pruned_before_what_came_first(trail, clock).await;
    every_chain_is_listed_also_one_that_was_pruned(trail, clock).await;
}

/// The same job with policy's word on it.
pub fn judged(job: &Job, decision: Decision, now: Millis) -> Job {
    let verdict = Verdict { decision, ..Policy::builtin().evaluate(&job.request) };
    life::judge(job, RecordedVerdict { verdict, checked_at: now }, now).unwrap()
}

/// The same job, approved by ann and then allowed.
fn approved(job: &Job, now: Millis) -> Job {
    let verdict = Verdict { decision: Decision::Allow, ..Policy::builtin().evaluate(&job.request) };
    life::approve(job, &Answer::by("ann"), RecordedVerdict { verdict, checked_at: now }, now).unwrap()
}

pub async fn what_a_commit_decides_is_recorded_with_it(store: &dyn Store, clock: &ManualClock) {
    let now = clock.now();
    let asked = judged(&new_job("recorded", "a", now), Decision::RequireApproval, now);
    let asked = insert(store, asked).await;
    assert_eq!(told(&trail(store, "recorded").await), ["1 require_approval recorded-a"]);
    let allowed = change(store, &asked, approved(&asked, now + 1)).await;
    change(store, &allowed, life::settled(&allowed)).await;
    let entries = trail(store, "recorded").await;
    let expected = ["1 require_approval recorded-a", "2 approve recorded-a", "3 allow recorded-a"];
    assert_eq!(told(&entries), expected);

    let approval = &entries[1].draft;
    assert_eq!((approval.event_type, approval.identity.as_str()), (EventType::Approval, "ann"));
    assert_eq!((approval.at, approval.tenant.as_str()), (now + 1, "recorded"));
    let decision = &entries[2].draft;
    assert_eq!((decision.decision, decision.severity), (Some(Decision::Allow), Severity::Info));
    assert_eq!(
        (decision.matched_rule.as_str(), decision.policy_version.as_str()),
        ("builtin-allow", "builtin")
    );
    assert_eq!(decision.extra["topic"], "job.echo");
    whole(store, "recorded", 3).await;
}

pub async fn a_refused_step_records_nothing(store: &dyn Store, clock: &ManualClock) {
    let now = clock.now();
    let judged_job = |name: &str| {
        let mut job = new_job("unrecorded", name, now);
        Arc::make_mut(&mut job.request).idempotency_key = Some("once".to_owned());
        judged(&job, Decision::RequireApproval, now)
    };
    let asked = insert(store, judged_job("a")).await;
    let rejected = Step::change(&asked, life::reject(&asked, &Answer::by("bob"), now).unwrap());
    change(store, &asked, approved(&asked, now)).await;
    for step in [rejected, Step::insert(judged_job("a")), Step::insert(judged_job("b"))] {
        assert!(!step.audit().is_empty());
        assert_ne!(store.commit(step).await.unwrap(), Commit::Done);
    }
    let expected = ["1 require_approval unrecorded-a", "2 approve unrecorded-a", "3 allow unrecorded-a"];
    assert_eq!(told(&trail(store, "unrecorded").await), expected);
    whole(store, "unrecorded", 3).await;
}

pub async fn nothing_is_recorded_under_a_lock_that_has_lapsed(store: &dyn Store, clock: &ManualClock) {
    let key = |action: &str| Draft::new(TenantId::known("under"), clock.now(), EventType::Auth, action);
    let first = store.lock("test:audit", 1_000).await.unwrap().unwrap();
    assert!(store.record_under(&first, vec![key("one"), key("two")]).await.unwrap());
    clock.advance(1_000);
    assert!(!store.record_under(&first, vec![key("late")]).await.unwrap());
    let second = store.lock("test:audit", 1_000).await.unwrap().unwrap();
    assert!(!store.record_under(&first, vec![key("later")]).await.unwrap());
    assert!(store.record_under(&second, vec![key("three")]).await.unwrap());
    assert!(store.unlock(&second).await.unwrap());
    assert!(!store.record_under(&second, vec![key("last")]).await.unwrap());
    assert_eq!(told(&trail(store, "under").await), ["1 one -", "2 two -", "3 three -"]);
    whole(store, "under", 3).await;
}

pub async fn what_belongs_to_no_job_is_recorded_too(store: &dyn AuditTrail, clock: &ManualClock) {
    let key = |tenant: &str, action: &str| {
        Draft::new(TenantId::known(tenant), clock.now(), EventType::Auth, action)
    };
    store.record(Vec::new()).await.unwrap();
    let drafts = vec![key("keys", "create_key"), key("keys-other", "create_key"), key("keys", "revoke_key")];
    store.record(drafts).await.unwrap();
    let mut odd = key("keys", "größe \0 \u{1f980}");
    odd.extra.insert("\"".to_owned(), "\n".to_owned());
    store.record(vec![odd.clone()]).await.unwrap();
    let entries = trail(store, "keys").await;
    assert_eq!(told(&entries)[..2], ["1 create_key -", "2 revoke_key -"]);
    assert_eq!(entries[2].draft, odd, "it is read back as it was written");
    whole(store, "keys", 3).await;
    whole(store, "keys-other", 1).await;
    whole(store, "keys-nobody", 0).await;
}

pub async fn many_committers_leave_neither_gap_nor_double(store: &Arc<dyn Store>, clock: &ManualClock) {
    let now = clock.now();
    let tenants = ["busy-a", "busy-b", "busy-c"];
    let mut tasks = JoinSet::new();
    for task in 0..COMMITTERS {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            for number in 0..COMMITS {
                // Half of the ids are wanted by two tasks, and every job by two who decide about it.
                let name = if number % 2 == 0 {
                    format!("{}-{number}", task / 2)
                } else {
                    format!("{task}-{number}-own")
                };
                let tenant = tenants[(task / 2 + number) % tenants.len()];
                let asked = judged(&new_job(tenant, &name, now), Decision::RequireApproval, now);
                store.commit(Step::insert(asked.clone())).await.unwrap();
                let Some(asked) = load(&*store, asked.id()).await else { panic!("{name} is not there") };
                if asked.state() == State::ApprovalRequired {
                    store.commit(Step::change(&asked, approved(&asked, now))).await.unwrap();
                }
            }
        });
    }
    tasks.join_all().await;
    let mut total = 0;
    for tenant in tenants {
        let entries = trail(&**store, tenant).await;
        whole(&**store, tenant, entries.len() as u64).await;
        let lines: BTreeSet<_> =
            entries.iter().map(|entry| (&entry.draft.action, &entry.draft.job_id)).collect();
        assert_eq!(lines.len(), entries.len(), "nothing is recorded twice");
        total += entries.len();
    }
    let jobs = COMMITTERS * COMMITS * 3 / 4;
    assert_eq!(total, 3 * jobs, "an ask, an approval and an allowance of each");
}

pub async fn every_filter_is_applied_before_the_limit(store: &dyn AuditTrail, clock: &ManualClock) {
    clock.advance(10);
    let now = clock.now();
    for number in 0..12 {
        let tenant = if number % 6 == 0 { "filtered" } else { "filtered-other" };
        let mut draft =
            Draft::new(TenantId::known(tenant), now + number, EventType::Auth, &number.to_string());
        if number % 3 == 0 {
            (draft.event_type, draft.severity) = (EventType::PolicyChange, Severity::High);
            draft.job_id = Some(JobId::known(format!("filtered-{}", number % 2)));
        }
        if number % 4 == 0 {
            draft.event_type = EventType::Decision;
        }
        store.record(vec![draft]).await.unwrap();
    }
    let check = async |query: AuditQuery, expected: &[&str]| {
        let query = AuditQuery { from: query.from.or(Some(now)), limit: 3, ..query };
        let newest = actions(&store.audit(&query).await.unwrap());
        assert_eq!(newest, expected, "{query:?}");
        // The other way round, by the pages of one.
        let mut query = AuditQuery { order: AuditOrder::OldestFirst, limit: 1, ..query };
        let mut oldest = Vec::new();
        loop {
            let page = store.audit(&query).await.unwrap();
            oldest.extend(actions(&page));
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
        oldest.reverse();
        oldest.truncate(3);
        assert_eq!(oldest, expected, "{query:?}");
    };
    let all = AuditQuery::default();
    let other = AuditQuery { tenant: Some(TenantId::known("filtered-other")), ..AuditQuery::default() };
    check(all.clone(), &["11", "10", "9"]).await;
    check(other.clone(), &["11", "10", "9"]).await;
    check(AuditQuery { tenant: Some(TenantId::known("filtered")), ..all.clone() }, &["6", "0"]).await;
    check(AuditQuery { event_type: Some(EventType::Decision), ..all.clone() }, &["8", "4", "0"]).await;
    check(AuditQuery { event_type: Some(EventType::Decision), ..other.clone() }, &["8", "4"]).await;
    check(AuditQuery { event_type: Some(EventType::PolicyChange), ..all.clone() }, &["9", "6", "3"]).await;
    check(AuditQuery { event_type: Some(EventType::PolicyChange), ..other.clone() }, &["9", "3"]).await;
    check(AuditQuery { severity: Some(Severity::High), ..other.clone() }, &["9", "3"]).await;
    check(AuditQuery { job_id: Some(JobId::known("filtered-0")), ..all.clone() }, &["6", "0"]).await;
    check(AuditQuery { job_id: Some(JobId::known("filtered-1")), ..other.clone() }, &["9", "3"]).await;
    check(AuditQuery { from: Some(now + 10), ..all.clone() }, &["11", "10"]).await;
    check(AuditQuery { to: Some(now + 2), ..all }, &["2", "1", "0"]).await;
    check(AuditQuery { to: Some(now + 2), ..other }, &["2", "1"]).await;
}

pub async fn pages_neither_skip_nor_repeat_while_entries_come(store: &dyn AuditTrail, clock: &ManualClock) {
    fill(store, "turned", 10, clock.now()).await;
    let mut query = AuditQuery { limit: 4, ..of("turned") };
    let mut seen = Vec::new();
    loop {
        let page = store.audit(&query).await.unwrap();
        seen.extend(page.items.iter().map(|entry| entry.seq));
        fill(store, "turned", 1, clock.now()).await;
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, (1..=10).rev().collect::<Vec<_>>());
    let page = store.audit(&AuditQuery { limit: usize::MAX, ..of("turned") }).await.unwrap();
    assert_eq!((page.items.len(), page.next), (13, None));
}

pub async fn a_long_chain_is_checked_to_its_end(store: &dyn AuditTrail, clock: &ManualClock) {
    let len = 2 * PAGE_LEN_MAX + 7;
    fill(store, "long-chain", len, clock.now()).await;
    whole(store, "long-chain", len as u64).await;
    let part = verify_chain(store, &TenantId::known("long-chain"), 10).await.unwrap();
    assert_eq!((part.status, part.last_seq), (Status::Partial, Some(PAGE_LEN_MAX as u64)));
}

pub async fn a_pruned_chain_goes_on_and_holds(store: &dyn AuditTrail, clock: &ManualClock) {
    forget_the_other_checks(store, clock).await;
    let now = clock.now();
    for number in 0..4 {
        fill(store, "pruned-a", 2, now + number).await;
        fill(store, "pruned-b", 1, now + number).await;
    }
    assert_eq!(store.prune_audit(now, 100).await.unwrap(), 0, "nothing is that old");
    assert_eq!(store.prune_audit(now + 2, 4).await.unwrap(), 4, "no more than it was told to");
    holds_from(store, "pruned-a", 4, 5).await;
    holds_from(store, "pruned-b", 2, 3).await;
    assert_eq!(store.prune_audit(now + 2, 4).await.unwrap(), 2);
    assert_eq!(store.prune_audit(now + 2, 4).await.unwrap(), 0);
    holds_from(store, "pruned-a", 5, 4).await;
    holds_from(store, "pruned-b", 3, 2).await;

    // When everything is gone, the numbers still go on.
    forget_the_other_checks(store, clock).await;
    holds_from(store, "pruned-a", 9, 0).await;
    fill(store, "pruned-a", 2, now + 9).await;
    let found = holds_from(store, "pruned-a", 9, 2).await;
    assert_eq!((found.first_seq, found.last_seq), (Some(9), Some(10)));
}

pub async fn what_is_recorded_later_is_not_pruned_before_what_came_first(
    store: &dyn AuditTrail,
    clock: &ManualClock,
) {
    forget_the_other_checks(store, clock).await;
    let now = clock.now();
    // A clock that was an hour ahead, and then was not.
    for at in [now, now + 3_600_000, now + 1, now + 3_600_000] {
        fill(store, "ahead", 1, at).await;
    }
    assert_eq!(store.prune_audit(now + 10, 100).await.unwrap(), 3);
    holds_from(store, "ahead", 4, 1).await;
}

pub async fn every_chain_is_listed_also_one_that_was_pruned(store: &dyn AuditTrail, clock: &ManualClock) {
    // Some of these a dictionary would sort otherwise.
    let tenants = ["Listed-b", "listed-A", "listed-a", "listed_a", "listedé"].map(TenantId::known);
    for tenant in &tenants {
        fill(store, tenant.as_str(), 1, clock.now()).await;
    }
    forget_the_other_checks(store, clock).await;
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = store.chains(after.as_ref(), 2).await.unwrap();
        assert!(page.len() <= 2, "{page:?}");
        after = page.last().cloned();
        if after.is_none() {
            break;
        }
        listed.extend(page);
    }
    assert!(listed.is_sorted() && listed.iter().collect::<BTreeSet<_>>().len() == listed.len(), "{listed:?}");
    assert!(tenants.iter().all(|tenant| listed.contains(tenant)), "{listed:?}");
    assert!(!listed.contains(&TenantId::known("listed-nobody")));
}

async fn forget_the_other_checks(store: &dyn AuditTrail, clock: &ManualClock) {
    while store.prune_audit(clock.now() + 10_000_000, 1000).await.unwrap() > 0 {}
}

/// Records so many entries that say nothing.
async fn fill(store: &dyn AuditTrail, tenant: &str, len: usize, at: Millis) {
    let draft = Draft::new(TenantId::known(tenant), at, EventType::Auth, "create_key");
    store.record(vec![draft; len]).await.unwrap();
}

/// The chain has so many entries, and all of them are what they were.
pub async fn whole(store: &dyn AuditTrail, tenant: &str, len: u64) {
    let found = verify_chain(store, &TenantId::known(tenant), u64::MAX).await.unwrap();
    assert_eq!(
        (found.status, found.total_events, found.verified_events),
        (Status::Ok, len, len),
        "{found:?}"
    );
    assert_eq!((found.first_seq, found.last_seq), ((len > 0).then_some(1), (len > 0).then_some(len)));
}

/// Of a chain that was pruned, so many entries are left, the first of which is `boundary`.
async fn holds_from(store: &dyn AuditTrail, tenant: &str, boundary: u64, len: u64) -> Verification {
    let found = verify_chain(store, &TenantId::known(tenant), u64::MAX).await.unwrap();
    assert_eq!((found.status, found.retention_boundary_seq), (Status::Partial, boundary), "{found:?}");
    assert_eq!((found.total_events, found.verified_events), (len, len), "{found:?}");
    found
}

/// Everything a tenant's trail has, oldest first.
pub async fn trail(store: &dyn AuditTrail, tenant: &str) -> Vec<Entry> {
    let mut query = AuditQuery { order: AuditOrder::OldestFirst, limit: PAGE_LEN_MAX, ..of(tenant) };
    let mut entries = Vec::new();
    loop {
        let page = store.audit(&query).await.unwrap();
        entries.extend(page.items);
        query.cursor = page.next;
        if query.cursor.is_none() {
            return entries;
        }
    }
}

fn of(tenant: &str) -> AuditQuery {
    AuditQuery { tenant: Some(TenantId::known(tenant)), ..AuditQuery::default() }
}

fn told(entries: &[Entry]) -> Vec<String> {
    let line = |Entry { seq, draft, .. }: &Entry| {
        format!("{seq} {} {}", draft.action, draft.job_id.as_ref().map_or("-", |id| id.as_str()))
    };
    entries.iter().map(line).collect()
}

fn actions(page: &Page<Entry>) -> Vec<String> {
    page.items.iter().map(|entry| entry.draft.action.clone()).collect()
}
