//! Lists: newest first, filtered before the limit, whole while the store goes on changing.

use super::{ManualClock, change, ended, insert, letters_of, new_job, running};
use crate::{DeadLetterQuery, JobQuery, PAGE_LEN_MAX, Page, Store};
use reveille_core::id::{JobId, TenantId, Topic};
use reveille_core::job::{Job, Phase, State};
use reveille_core::life;
use reveille_core::output::{OutputCheck, OutputDecision, OutputVerdict, Resolution, Resolved, Stage};
use reveille_core::reason::Reason;
use reveille_core::time::Millis;
use std::collections::BTreeSet;
use std::sync::Arc;

pub async fn run(store: &dyn Store, clock: &ManualClock) {
    the_newest_job_is_listed_first(store, clock).await;
    a_full_last_page_has_no_next(store, clock).await;
    every_filter_is_applied_before_the_limit(store, clock).await;
    a_trace_has_all_its_jobs(store, clock).await;
    pages_neither_skip_nor_repeat_while_jobs_come_and_change(store, clock).await;
    a_page_ends_when_enough_was_looked_through(store, clock).await;
    a_page_is_never_longer_than_the_limit(store, clock).await;
    live_jobs_are_found_in_order_until_they_owe_nothing(store, clock).await;
    a_bad_ending_is_listed_once_until_it_is_taken_off(store, clock).await;
    a_released_result_is_no_dead_letter(store, clock).await;
    dead_letters_are_paged_within_a_tenant(store, clock).await;
    dead_letters_are_filtered_before_the_limit_and_counted(store, clock).await;
    who_waits_for_a_person_is_found_until_one_decides(store, clock).await;
}

pub async fn the_newest_job_is_listed_first(store: &dyn Store, clock: &ManualClock) {
    let first = insert(store, new_job("newest", "a", clock.now())).await;
    insert(store, new_job("newest", "b", clock.now())).await;
    change(store, &first, running(&first, clock.now() + 5)).await;
    let page = store.jobs(&of("newest", 10)).await.unwrap();
    assert_eq!(names(&page), ["newest-b", "newest-a"], "a change does not move a job");
    assert_eq!(page.items[1].state(), State::Running);
    assert_eq!(page.next, None);
}

pub async fn a_full_last_page_has_no_next(store: &dyn Store, clock: &ManualClock) {
    for name in ["a", "b", "c", "d"] {
        insert(store, new_job("full-page", name, clock.now())).await;
    }
    let first = store.jobs(&of("full-page", 2)).await.unwrap();
    let second = store.jobs(&JobQuery { cursor: first.next, ..of("full-page", 2) }).await.unwrap();
    assert_eq!(names(&first), ["full-page-d", "full-page-c"]);
    assert_eq!(names(&second), ["full-page-b", "full-page-a"]);
    assert_eq!(second.next, None);
}

pub async fn every_filter_is_applied_before_the_limit(store: &dyn Store, clock: &ManualClock) {
    let now = clock.now();
    for number in 0..20 {
        let mut job = new_job("filters", &format!("{number:02}"), now + number);
        let request = Arc::make_mut(&mut job.request);
        if number % 10 == 0 {
            request.topic = Topic::known("job.rare");
            "blue".clone_into(&mut request.actor.team);
            "trace-rare".clone_into(&mut request.trace_id);
        }
        let job = insert(store, job).await;
        if number % 10 == 0 {
            change(store, &job, ended(&job, State::Denied, now + 1000 + number)).await;
        }
    }
    let check = async |query: JobQuery, expected: &[&str]| {
        assert_eq!(names(&store.jobs(&query).await.unwrap()), expected, "{query:?}");
    };
    let all = of("filters", 2);
    let rare = ["filters-10", "filters-00"];
    check(JobQuery { state: Some(State::Denied), ..all.clone() }, &rare).await;
    check(JobQuery { topic: Some(Topic::known("job.rare")), ..all.clone() }, &rare).await;
    check(JobQuery { team: Some("blue".to_owned()), ..all.clone() }, &rare).await;
    check(JobQuery { trace_id: Some("trace-rare".to_owned()), ..all.clone() }, &rare).await;
    check(JobQuery { trace_id: Some("trace-rare".to_owned()), tenant: None, ..all.clone() }, &rare).await;
    check(JobQuery { updated_after: Some(now + 1000), ..all.clone() }, &rare).await;
    check(JobQuery { updated_after: Some(now + 1001), ..all.clone() }, &["filters-10"]).await;
    check(JobQuery { updated_before: Some(now + 1), ..all.clone() }, &["filters-01"]).await;
    check(JobQuery { updated_before: Some(now + 2), ..all.clone() }, &["filters-02", "filters-01"]).await;
    check(JobQuery { team: Some("green".to_owned()), ..all.clone() }, &[]).await;
    check(JobQuery { state: Some(State::Timeout), ..all.clone() }, &[]).await;
    check(of("filters-nobody", 2), &[]).await;
    let both = JobQuery { state: Some(State::Denied), updated_before: Some(now + 1000), ..all };
    check(both, &["filters-00"]).await;
}

/// A job of which nobody said which trace it belongs to begins one with its own name.
pub async fn a_trace_has_all_its_jobs(store: &dyn Store, clock: &ManualClock) {
    let submit = async |name: &str, trace: &str| {
        let mut job = new_job("traced", name, clock.now());
        Arc::make_mut(&mut job.request).trace_id = format!("traced-{trace}");
        insert(store, job).await;
    };
    let check = async |tenant: &str, trace: &str, expected: &[&str]| {
        let query = JobQuery { trace_id: Some(format!("traced-{trace}")), ..of(tenant, 10) };
        let page = store.jobs(&query).await.unwrap();
        assert_eq!((names(&page), page.next), (expected.iter().map(ToString::to_string).collect(), None));
    };
    submit("a", "a").await;
    check("traced", "a", &["traced-a"]).await;
    check("another", "a", &[]).await;
    submit("b", "a").await;
    check("traced", "a", &["traced-b", "traced-a"]).await;
    submit("c", "a").await;
    check("traced", "a", &["traced-c", "traced-b", "traced-a"]).await;
    check("traced", "b", &[]).await;
    // The one that gave the name may also come later.
    submit("y", "z").await;
    check("traced", "z", &["traced-y"]).await;
    submit("z", "z").await;
    check("traced", "z", &["traced-z", "traced-y"]).await;
}

pub async fn pages_neither_skip_nor_repeat_while_jobs_come_and_change(
    store: &dyn Store,
    clock: &ManualClock,
) {
    type NamedFilter = (&'static str, fn(&mut JobQuery));
    let now = clock.now();
    let filters: [NamedFilter; 8] = [
        ("none", |_| ()),
        ("state", |query| query.state = Some(State::Running)),
        ("topic", |query| query.topic = Some(Topic::known("job.echo"))),
        ("team", |query| query.team = Some("blue".to_owned())),
        ("trace", |query| query.trace_id = Some("one-trace".to_owned())),
        ("updated", |query| query.updated_after = Some(Millis(0))),
        ("bounded", |query| query.look_through = Some(3)),
        ("all-tenants", |query| (query.tenant, query.trace_id) = (None, Some("one-trace".to_owned()))),
    ];
    for (name, filter) in filters {
        let check = format!("paging-{name}");
        let trace = format!("one-trace-{name}");
        let job = |name: String| {
            let mut job = new_job(&check, &name, now);
            let request = Arc::make_mut(&mut job.request);
            "blue".clone_into(&mut request.actor.team);
            request.trace_id.clone_from(&trace);
            running(&job, now)
        };
        let mut expected = BTreeSet::new();
        for number in 0..23 {
            let job = insert(store, job(format!("old-{number:02}"))).await;
            expected.insert(job.id().to_string());
        }
        let mut query = of(&check, 4);
        filter(&mut query);
        query.trace_id = query.trace_id.map(|_| trace.clone());
        let mut seen = Vec::new();
        for round in 0.. {
            let page = store.jobs(&query).await.unwrap();
            seen.extend(names(&page));
            // New jobs come in front, and jobs on both sides of the cursor change.
            insert(store, job(format!("new-{round}"))).await;
            for touched in ["old-00", "old-11", "old-22"] {
                let id = JobId::known(format!("{check}-{touched}"));
                let before = store.job(&id).await.unwrap().unwrap();
                change(store, &before, running(&before, now + round)).await;
            }
            let Some(next) = page.next else { break };
            query.cursor = Some(next);
        }
        assert_eq!(seen.len(), expected.len(), "{name}: {seen:?}");
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), expected, "{name}");
    }
}

pub async fn a_page_ends_when_enough_was_looked_through(store: &dyn Store, clock: &ManualClock) {
    for number in 0..10 {
        let mut job = new_job("looking", &number.to_string(), clock.now());
        if [0, 1, 5].contains(&number) {
            Arc::make_mut(&mut job.request).topic = Topic::known("job.rare");
        }
        insert(store, job).await;
    }
    let topic = Some(Topic::known("job.rare"));
    let mut query = JobQuery { topic, look_through: Some(4), ..of("looking", 2) };
    let first = store.jobs(&query).await.unwrap();
    assert_eq!(names(&first), [] as [&str; 0], "it is none of the newest four");
    let (mut seen, mut next) = (Vec::new(), first.next);
    assert!(next.is_some(), "the looking goes on");
    while next.is_some() {
        query.cursor = next;
        let page = store.jobs(&query).await.unwrap();
        seen.extend(names(&page));
        next = page.next;
    }
    assert_eq!(seen, ["looking-5", "looking-1", "looking-0"]);
    let all = JobQuery { cursor: None, look_through: None, limit: 10, ..query };
    assert_eq!(names(&store.jobs(&all).await.unwrap()), seen);
}

pub async fn a_page_is_never_longer_than_the_limit(store: &dyn Store, clock: &ManualClock) {
    for number in 0..=PAGE_LEN_MAX {
        insert(store, new_job("long", &number.to_string(), clock.now())).await;
    }
    let page = store.jobs(&of("long", usize::MAX)).await.unwrap();
    assert_eq!(page.items.len(), PAGE_LEN_MAX);
    let last = store.jobs(&JobQuery { cursor: page.next, ..of("long", usize::MAX) }).await.unwrap();
    assert_eq!((names(&last), last.next), (vec!["long-0".to_owned()], None));
    assert_eq!(store.live(None, usize::MAX).await.unwrap().items.len(), PAGE_LEN_MAX);
    assert_eq!(store.jobs(&of("long", 0)).await.unwrap().items.len(), 1, "a page holds at least one");
}

pub async fn live_jobs_are_found_in_order_until_they_owe_nothing(store: &dyn Store, clock: &ManualClock) {
    let now = clock.now();
    let mut jobs = Vec::new();
    for name in ["a", "b", "c", "d"] {
        jobs.push(insert(store, new_job("live", name, now)).await);
    }
    assert_eq!(live_of(store, "live").await, ["live-a", "live-b", "live-c", "live-d"]);
    change(store, &jobs[0], ended(&jobs[0], State::Succeeded, now)).await;
    change(store, &jobs[2], running(&jobs[2], now)).await;
    let failed = change(store, &jobs[3], ended(&jobs[3], State::Failed, now)).await;
    assert_eq!(live_of(store, "live").await, ["live-b", "live-c", "live-d"], "a failed job owes its letter");
    change(store, &failed, life::settled(&failed)).await;
    assert_eq!(live_of(store, "live").await, ["live-b", "live-c"]);
}

pub async fn a_bad_ending_is_listed_once_until_it_is_taken_off(store: &dyn Store, clock: &ManualClock) {
    let now = clock.now();
    let tenant = TenantId::known("letters");
    let job = insert(store, new_job("letters", "a", now)).await;
    let good = insert(store, new_job("letters", "good", now)).await;
    change(store, &good, ended(&good, State::Succeeded, now)).await;
    let failed = change(store, &job, ended(&job, State::Failed, now + 7)).await;
    let page = store.dead_letters(&letters_of(&tenant, 10)).await.unwrap();
    assert_eq!(page.items, [failed.dead_letter().unwrap()]);
    assert_eq!(page.next, None);

    assert!(store.remove_dead_letter(job.id()).await.unwrap());
    assert!(!store.remove_dead_letter(job.id()).await.unwrap());
    change(store, &failed, life::settled(&failed)).await;
    let page = store.dead_letters(&letters_of(&tenant, 10)).await.unwrap();
    assert!(page.items.is_empty(), "settling what is owed brought back {:?}", page.items);
}

pub async fn a_released_result_is_no_dead_letter(store: &dyn Store, clock: &ManualClock) {
    let now = clock.now();
    let job = insert(store, new_job("released", "a", now)).await;
    let held = change(store, &job, ended(&job, State::OutputQuarantined, now)).await;
    let tenant = TenantId::known("released");
    assert_eq!(store.dead_letters(&letters_of(&tenant, 10)).await.unwrap().items.len(), 1);
    let mut out = ended(&held, State::Succeeded, now);
    let verdict = OutputVerdict {
        decision: OutputDecision::Quarantine,
        stage: Stage::Async,
        rule_id: String::new(),
        reason: String::new(),
        snapshot: String::new(),
        findings: Vec::new(),
    };
    let resolved =
        Resolved { by: "ann".to_owned(), key: None, how: Resolution::Released, at: now, note: String::new() };
    let check =
        OutputCheck { verdict, checked_at: now, original_ptr: String::new(), resolved: Some(resolved) };
    out.output = Some(Box::new(check));
    change(store, &held, out).await;
    assert!(store.dead_letters(&letters_of(&tenant, 10)).await.unwrap().items.is_empty());
}

pub async fn dead_letters_are_paged_within_a_tenant(store: &dyn Store, clock: &ManualClock) {
    for number in 0..6 {
        let check = if number % 2 == 0 { "dead-even" } else { "dead-odd" };
        let job = insert(store, new_job(check, &number.to_string(), clock.now())).await;
        change(store, &job, ended(&job, State::Timeout, clock.now())).await;
    }
    let mut cursor = None;
    let mut seen = Vec::new();
    loop {
        let query = DeadLetterQuery { cursor, ..letters_of(&TenantId::known("dead-even"), 2) };
        let page = store.dead_letters(&query).await.unwrap();
        seen.extend(page.items.iter().map(|letter| letter.job_id.to_string()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["dead-even-4", "dead-even-2", "dead-even-0"]);
    let all = store.dead_letters(&DeadLetterQuery { limit: 3, ..DeadLetterQuery::default() }).await.unwrap();
    let all: Vec<_> = all.items.iter().map(|letter| letter.job_id.as_str()).collect();
    assert_eq!(all, ["dead-odd-5", "dead-even-4", "dead-odd-3"]);
}

pub async fn dead_letters_are_filtered_before_the_limit_and_counted(store: &dyn Store, clock: &ManualClock) {
    let (now, tenant) = (clock.now(), TenantId::known("sorted"));
    for number in 0..6 {
        let mut job = new_job("sorted", &number.to_string(), now);
        if number % 3 == 0 {
            Arc::make_mut(&mut job.request).topic = Topic::known("job.rare");
        }
        let job = insert(store, job).await;
        let mut dead = ended(&job, State::Failed, now + number);
        if let Phase::Ended(ending) = &mut dead.phase
            && number != 5
        {
            ending.reason = Some(if number % 2 == 0 { Reason::Timeout } else { Reason::JobFailed });
        }
        change(store, &job, dead).await;
    }
    let check = async |filter: fn(&mut DeadLetterQuery, Millis), expected: &[&str]| {
        let mut query = letters_of(&TenantId::known("sorted"), 2);
        filter(&mut query, now);
        let page = store.dead_letters(&query).await.unwrap();
        let names: Vec<_> = page.items.iter().map(|letter| letter.job_id.as_str()).collect();
        assert_eq!(names, expected, "{query:?}");
    };
    check(|query, _| query.topic = Some(Topic::known("job.rare")), &["sorted-3", "sorted-0"]).await;
    check(|query, _| query.reason = Some(Reason::JobFailed), &["sorted-3", "sorted-1"]).await;
    check(|query, _| query.reason = Some(Reason::WorkerLost), &[]).await;
    check(|query, now| query.before = Some(now + 2), &["sorted-1", "sorted-0"]).await;
    check(|query, _| query.job = Some(JobId::known("sorted-4")), &["sorted-4"]).await;
    check(|query, _| query.job = Some(JobId::known("letters-a")), &[]).await;
    let counts = store.count_dead_letters(Some(&tenant)).await.unwrap();
    let expected = [(None, 1), (Some(Reason::JobFailed), 2), (Some(Reason::Timeout), 3)];
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
    let all = store.count_dead_letters(None).await.unwrap();
    assert!(all[&None] > 1, "all tenants: {all:?}");
}

pub async fn who_waits_for_a_person_is_found_until_one_decides(store: &dyn Store, clock: &ManualClock) {
    let now = clock.now();
    let asks = |job: &Job| Job { phase: Phase::ApprovalRequired, ..job.clone() };
    insert(store, new_job("asking", "never", now)).await;
    let first = insert(store, asks(&new_job("asking", "first", now))).await;
    let second = insert(store, new_job("asking", "second", now)).await;
    change(store, &second, asks(&second)).await;
    let asking = JobQuery { state: Some(State::ApprovalRequired), ..of("asking", 10) };
    let asked = JobQuery { asked: true, ..of("asking", 10) };
    let both = ["asking-second", "asking-first"];
    assert_eq!(names(&store.jobs(&asking).await.unwrap()), both);
    change(store, &first, running(&first, now)).await;
    assert_eq!(names(&store.jobs(&asking).await.unwrap()), ["asking-second"]);
    assert_eq!(names(&store.jobs(&asked).await.unwrap()), both, "it is known for good");
    let page = store.jobs(&JobQuery { limit: 1, ..asked.clone() }).await.unwrap();
    let next = store.jobs(&JobQuery { cursor: page.next, ..asked }).await.unwrap();
    assert_eq!((names(&next), next.next), (vec!["asking-first".to_owned()], None));
}

fn of(tenant: &str, limit: usize) -> JobQuery {
    JobQuery { tenant: Some(TenantId::known(tenant)), limit, ..JobQuery::default() }
}

fn names(page: &Page<Arc<Job>>) -> Vec<String> {
    page.items.iter().map(|job| job.id().to_string()).collect()
}

pub(super) async fn live_of(store: &dyn Store, tenant: &str) -> Vec<String> {
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let page = store.live(cursor, 3).await.unwrap();
        seen.extend(names(&page));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    seen.retain(|name| name.starts_with(&format!("{tenant}-")));
    seen
}
