//! Every page: who gets it, what it is called, and what it shows.

use crate::browser::Browser;
use crate::house::{ESCAPED, EVIL, House, PASSWORD, SECRET, USER, WORKER};

/// A page of the house: its path, its title, what must be on it.
struct Page {
    path: String,
    title: String,
    shows: Vec<String>,
}

fn page(path: impl Into<String>, title: &str, shows: &[&str]) -> Page {
    let shows = shows.iter().map(|words| (*words).to_owned()).collect();
    Page { path: path.into(), title: title.to_owned(), shows }
}

/// All that somebody of the tenant can open.
fn pages(house: &House) -> Vec<Page> {
    let House { waiting, asked, held, failed, denied, run, .. } = house;
    let job = |id: &str, shows: &[&str]| page(format!("/ui/jobs/{id}"), id, shows);
    vec![
        page("/", "Now", &[]),
        page("/ui/fleet", "Fleet", &[WORKER, ESCAPED]),
        page(format!("/ui/workers/{WORKER}"), &format!("owl {ESCAPED}"), &[WORKER, ESCAPED, "job.leak"]),
        page("/ui/jobs", "Jobs", &[waiting, asked, held, failed, denied, "job.nobody"]),
        page("/ui/jobs/new", "Submit a job", &["Idempotency key"]),
        job(waiting, &[waiting, ESCAPED, "SCHEDULED", "No live worker"]),
        job(asked, &["APPROVAL_REQUIRED", "it costs money", ESCAPED]),
        job(held, &["OUTPUT_QUARANTINED", "It is held back."]),
        job(failed, &["FAILED", WORKER, ESCAPED, "Try again"]),
        job(denied, &["DENIED", "hands off", ESCAPED]),
        page("/ui/approvals", "Approvals", &[asked, "bob", "it costs money", ESCAPED, "Decide"]),
        page(format!("/ui/approvals/{asked}"), "Approval", &[asked, "job.ask", ESCAPED, "Approve", "Reject"]),
        page("/ui/quarantine", "Quarantine", &[held, "it says too much", "<mark>", ESCAPED, "Release"]),
        page("/ui/dlq", "Dead letters", &[failed, ESCAPED, "Put away"]),
        page("/ui/workflows", "Workflows", &["story", ESCAPED, run]),
        page("/ui/workflows/story", "story", &[ESCAPED, run, "Start a run"]),
        page("/ui/runs", "Runs", &[run, "story"]),
        page(format!("/ui/runs/{run}"), run, &["story", ESCAPED, "Cancel"]),
        page("/ui/policy", "Policy", &["hands off", ESCAPED, "What would it say?"]),
        page("/ui/audit", "Audit", &[denied, ESCAPED, "Verify the chain"]),
    ]
}

fn is_titled(text: &str, title: &str) -> bool {
    text.contains(&format!("<title>{title} · Reveille</title>"))
}

#[tokio::test(start_paused = true)]
async fn every_page_has_its_title_and_shows_what_is_there() {
    let house = House::full().await;
    let ann = house.ann().await;
    for Page { path, title, shows } in pages(&house) {
        let reply = ann.get(&path).await;
        let text = reply.text();
        assert_eq!(reply.status, 200, "{path}: {text}");
        assert!(is_titled(text, &title), "{path} is not {title}: {text}");
        for words in shows {
            assert!(text.contains(&words), "{path} does not show {words}: {text}");
        }
        assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
        assert_eq!(reply.header("cache-control"), "no-store");
        assert!(reply.header("content-security-policy").starts_with("default-src 'none'"), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_wrote_is_text_and_secrets_are_masked_on_every_page() {
    let house = House::full().await;
    let ann = house.ann().await;
    for Page { path, .. } in pages(&house) {
        let text = ann.page(&path).await;
        for words in [EVIL, "<script>alert", PASSWORD, SECRET] {
            assert!(!text.contains(words), "{path} has {words}: {text}");
        }
    }
    // What was asked for comes back in the forms of lists.
    for path in ["/ui/fleet?q=", "/ui/jobs?topic=", "/ui/runs?workflow_id=", "/ui/audit?job_id="] {
        let reply = ann.get(&format!("{path}%22%3E%3Cscript%3Ealert(1)%3C/script%3E")).await;
        assert!(!reply.text().contains("<script>alert"), "{path}: {}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a_jobs_secrets_are_shown_to_whoever_asks() {
    let house = House::full().await;
    let path = format!("/ui/jobs/{}", house.waiting);
    let (ann, reveal) = (house.ann().await, format!("{path}?reveal=1"));
    let text = ann.page(&path).await;
    assert!(text.contains("2 secrets are masked.") && text.contains(&reveal), "{text}");
    let text = ann.page(&reveal).await;
    assert!(text.contains(PASSWORD) && text.contains(SECRET) && !text.contains(EVIL), "{text}");
}

#[tokio::test(start_paused = true)]
async fn without_a_session_every_page_leads_to_sign_in_and_back() {
    let house = House::full().await;
    let nobody = Browser::new(house.http.clone());
    let paths = pages(&house).into_iter().map(|page| page.path).chain(["/ui/system".to_owned()]);
    for path in paths {
        let reply = nobody.get(&path).await;
        assert_eq!(reply.status, 303, "{path}");
        let to = reply.header("location");
        assert!(to.starts_with("/ui/sign-in?next="), "{path} leads to {to}");
        assert!(!reply.text().contains(EVIL) && reply.text().is_empty(), "{path} tells nothing");
    }
    assert_eq!(nobody.get("/ui/live").await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_another_tenant_is_not_there() {
    let house = House::full().await;
    let zoe = house.browser("zoe", "zeta", USER).await;
    let House { waiting, asked, held, failed, denied, run, .. } = &house;
    let theirs = [
        format!("/ui/workers/{WORKER}"),
        format!("/ui/workers/{WORKER}?contract=cap&tenant=acme"),
        format!("/ui/jobs/{waiting}"),
        format!("/ui/jobs/{held}?reveal=1"),
        format!("/ui/approvals/{asked}"),
        "/ui/workflows/story".to_owned(),
        format!("/ui/runs/{run}"),
    ];
    for path in theirs {
        let reply = zoe.get(&path).await;
        assert_eq!(reply.status, 404, "{path}: {}", reply.text());
        assert!(is_titled(reply.text(), "Not here"), "{path}: {}", reply.text());
    }
    let lists = ["/", "/ui/fleet", "/ui/jobs", "/ui/approvals", "/ui/quarantine", "/ui/dlq"];
    for path in lists.into_iter().chain(["/ui/workflows", "/ui/runs", "/ui/policy", "/ui/audit"]) {
        let text = zoe.page(path).await;
        for words in [waiting, asked, held, failed, denied, run, WORKER] {
            assert!(!text.contains(words), "{path} shows {words}: {text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_system_is_for_operators() {
    let house = House::full().await;
    let (ann, operator) = (house.ann().await, house.operator().await);
    assert_eq!(ann.get("/ui/system").await.status, 403);
    assert!(!ann.page("/ui/fleet").await.contains("/ui/system"), "nor is it in the menu");
    let text = operator.page("/ui/system").await;
    assert!(is_titled(&text, "System"), "{text}");
    for words in ["Memory", "It forgets everything.", "Timers", "Locks", "Circuits"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let text = operator.page("/ui/jobs").await;
    assert!(text.contains(&house.waiting), "an operator sees every tenant's jobs: {text}");
}
