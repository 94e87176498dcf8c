use super::house::{House, USER};
use reveille_client::{Error, JOB_ENDS, JobFilter, NewJob, Resolution};
use reveille_core::job::State;
use reveille_roster::Scope;
use serde_json::json;
use std::thread;
use std::time::Duration;

const LONG: Duration = Duration::from_mins(1);
const SHORT: Duration = Duration::from_millis(50);

#[test]
fn the_ends_are_those_of_the_server() {
    let ends: Vec<&str> =
        State::ALL.iter().filter(|state| state.is_terminal()).map(|state| state.as_str()).collect();
    let mut known = JOB_ENDS.to_vec();
    known.sort_by_key(|end| ends.iter().position(|state| state == end));
    assert_eq!(known, ends);
}

#[test]
fn a_job_is_asked_for_looked_at_and_cancelled() {
    let house = House::open();
    let client = house.client("ann", "acme", USER);
    let new = NewJob::new("job.x")
        .context(json!({"n": 7}))
        .prompt("please")
        .priority("critical")
        .label("team", "search")
        .requires("gpu")
        .risk_tag("money")
        .idempotency_key("once");
    let new = NewJob { deadline_ms: Some(600_000), ..new };
    let id = client.jobs().submit(&new).unwrap().job_id;
    assert_eq!(client.jobs().submit(&new).unwrap().job_id, id, "the same key gives the same job");

    let job = client.jobs().get(&id).unwrap();
    assert_eq!(
        (job.topic.as_str(), job.tenant.as_str(), job.priority.as_str()),
        ("job.x", "acme", "critical")
    );
    assert_eq!((&job.context["n"], &job.context["prompt"]), (&json!(7), &json!("please")));
    assert_eq!(job.labels.get("team").map(String::as_str), Some("search"));
    assert_eq!((&*job.requires, &*job.risk_tags), (&["gpu".to_owned()][..], &["money".to_owned()][..]));
    assert_eq!((job.idempotency_key.as_str(), job.deadline_unix > job.created_at), ("once", true));
    assert_eq!((job.decisions[0].rule_id.as_str(), job.result.is_null()), ("rest", true));
    assert!(!job.has_ended() && !job.timeline.is_empty(), "{job:?}");

    let explained = client.jobs().explain(&id).unwrap();
    assert_eq!((explained.code.as_str(), explained.unblock.is_some()), ("no_workers", true), "{explained:?}");
    assert_eq!(client.jobs().wait(&id, SHORT), Err(Error::WaitTimeout(SHORT)));

    let cancelled = client.jobs().cancel(&id).unwrap();
    assert_eq!((cancelled.state.as_str(), cancelled.reason), ("CANCELLED", None));
    let again = client.jobs().cancel(&id).unwrap();
    assert_eq!(again.reason.as_deref(), Some("the job has already ended"));
    assert_eq!(client.jobs().wait(&id, LONG).unwrap().state, "CANCELLED");
}

#[test]
fn a_job_may_have_what_only_the_server_knows() {
    let house = House::open();
    let client = house.client("ann", "acme", USER);
    let mut new = NewJob::new("job.x").context(json!({}));
    new.more.insert("pack_id".to_owned(), json!("pack-1"));
    let id = client.jobs().submit(&new).unwrap().job_id;
    assert_eq!(client.jobs().get(&id).unwrap().pack_id, "pack-1");
}

#[test]
fn whoever_waits_is_told_of_the_end_at_once() {
    let house = House::open();
    let client = house.client("ann", "acme", USER);
    let id = client.jobs().submit(&NewJob::new("job.x").context(json!({}))).unwrap().job_id;
    let waiting = thread::spawn({
        let (client, id) = (client.clone(), id.clone());
        move || client.jobs().wait(&id, LONG)
    });
    client.jobs().cancel(&id).unwrap();
    let (asked, job) = house.asked_during(|| waiting.join().unwrap());
    assert_eq!(job.unwrap().state, "CANCELLED");
    assert!(asked <= 1, "{asked} questions for one end");
}

#[test]
fn a_job_that_policy_denies_is_refused_and_kept() {
    let house = House::open();
    let client = house.client("ann", "acme", USER);
    let refused = client.jobs().submit(&NewJob::new("job.no").context(json!({}))).unwrap_err();
    let words = refused.to_string();
    let Error::Refused { status: 403, code, message, job_id: Some(id) } = refused else { panic!("{words}") };
    assert_eq!((code.as_str(), message.as_str()), ("safety_denied", "hands off"));
    assert_eq!(words, format!("hands off (job {id}) [403 safety_denied]"));
    assert_eq!(client.jobs().get(&id).unwrap().state, "DENIED");
}

#[test]
fn a_person_approves_or_rejects() {
    let house = House::open();
    let (ann, bob) = (house.client("ann", "acme", USER), house.client("bob", "acme", USER));
    let ask = || ann.jobs().submit(&NewJob::new("job.ask").context(json!({}))).unwrap();
    let (first, second) = (ask(), ask());
    assert_eq!(
        (first.status.as_deref(), first.reason.as_deref()),
        (Some("approval_required"), Some("it costs money"))
    );
    let pending: Vec<_> = bob.approvals().list(10).collect::<Result<_, _>>().unwrap();
    let names: Vec<_> = pending.iter().map(|approval| approval.job.id.as_str()).collect();
    assert_eq!(names, [&second.job_id, &first.job_id]);
    assert_eq!((pending[0].policy_rule_id.as_str(), pending[0].approval_status.as_str()), ("ask", "pending"));

    let own = ann.approvals().approve(&first.job_id, &Resolution::default()).unwrap_err();
    assert!(matches!(&own, Error::Refused { code, .. } if code == "self_approval_denied"), "{own}");
    let other = Resolution { job_hash: Some(pending[0].job_hash.clone()), ..Resolution::because("fine") };
    assert!(bob.approvals().approve(&first.job_id, &other).is_err(), "that is the other one's hash");
    let bound = Resolution { job_hash: Some(pending[1].job_hash.clone()), ..other };
    assert_eq!(bob.approvals().approve(&first.job_id, &bound).unwrap().status, None);
    let again = bob.approvals().approve(&first.job_id, &bound).unwrap();
    assert_eq!(
        (again.status.as_deref(), again.approved_by.as_deref()),
        (Some("already_approved"), Some("bob"))
    );

    assert_eq!(bob.approvals().reject(&second.job_id, &Resolution::because("no")).unwrap().status, None);
    let again = bob.approvals().reject(&second.job_id, &Resolution::default()).unwrap();
    assert_eq!(
        (again.status.as_deref(), again.rejected_by.as_deref()),
        (Some("already_rejected"), Some("bob"))
    );
    assert_eq!(ann.jobs().wait(&second.job_id, LONG).unwrap().state, "DENIED");
    assert!(!ann.jobs().get(&first.job_id).unwrap().has_ended());

    assert_eq!(bob.approvals().list(10).count(), 0);
    let all: Vec<_> = bob.approvals().list_all(10).collect::<Result<_, _>>().unwrap();
    let answers: Vec<_> = all.iter().map(|approval| approval.approval_status.as_str()).collect();
    assert_eq!(answers, ["rejected", "approved"]);
    assert_eq!(all[1].resolved_comment.as_deref(), Some("fine"));
}

#[test]
fn a_list_is_fetched_page_by_page_and_no_further_than_wanted() {
    let house = House::open();
    let client = house.client("ann", "acme", USER);
    let submit = |topic: &str| client.jobs().submit(&NewJob::new(topic).context(json!({}))).unwrap().job_id;
    let mut ids: Vec<String> = (0..8).map(|_| submit("job.x")).collect();
    submit("job.other");
    ids.reverse();
    let xs = JobFilter { topic: Some("job.x"), ..JobFilter::default() };
    let check = |limit: usize, expected: &[String], pages: usize| {
        let list =
            || client.jobs().list(&xs, limit).page_size(3).map(|job| job.unwrap().id).collect::<Vec<_>>();
        let (asked, listed) = house.asked_during(list);
        assert_eq!((listed.as_slice(), asked), (expected, pages), "limit {limit}");
    };
    check(7, &ids[..7], 3);
    check(100, &ids, 3);
    check(6, &ids[..6], 2);
    check(1, &ids[..1], 1);
    check(0, &[], 0);
    let (asked, first) = house.asked_during(|| client.jobs().list(&xs, 100).page_size(3).next());
    assert_eq!((first.unwrap().unwrap().id.as_str(), asked), (ids[0].as_str(), 1), "the rest is not read");
    let (asked, count) = house.asked_during(|| client.jobs().list(&JobFilter::default(), 100).count());
    assert_eq!((count, asked), (9, 1));
}

#[test]
fn a_list_ends_with_the_first_error() {
    let house = House::open();
    let client = house.client("ann", "acme", USER);
    let bad = JobFilter { state: Some("ASLEEP"), ..JobFilter::default() };
    let mut list = client.jobs().list(&bad, 10);
    assert!(matches!(list.next(), Some(Err(Error::Refused { status: 400, .. }))));
    assert!(list.next().is_none());
}

#[test]
fn an_operator_acts_for_the_tenant_it_names() {
    let house = House::open();
    for tenant in ["acme", "zeta"] {
        let client = house.client(tenant, tenant, USER);
        client.jobs().submit(&NewJob::new("job.x").context(json!({}))).unwrap();
    }
    let operator = house.client("op", "ops", &[Scope::Admin]);
    let tenants = |client: &reveille_client::Client| -> Vec<String> {
        client.jobs().list(&JobFilter::default(), 10).map(|job| job.unwrap().tenant).collect()
    };
    assert_eq!(tenants(&operator), ["zeta", "acme"]);
    assert_eq!(tenants(&operator.clone().tenant("acme")), ["acme"]);
}
