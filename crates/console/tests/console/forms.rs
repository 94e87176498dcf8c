//! Forms: what they do with their seal, and that they do nothing without.

use crate::browser::Browser;
use crate::house::{ESCAPED, EVIL, House, WORKER};
use reveille_core::job::State;

/// Every form of the console, with what it needs beside its seal.
fn forms(house: &House) -> Vec<(String, Vec<(&'static str, &'static str)>)> {
    let House { waiting, asked, held, failed, denied, run, .. } = house;
    let plain = [
        format!("/ui/jobs/{waiting}/cancel"),
        format!("/ui/jobs/{failed}/retry"),
        format!("/ui/jobs/{denied}/remediate"),
        format!("/ui/approvals/{asked}/approve"),
        format!("/ui/approvals/{asked}/reject"),
        format!("/ui/quarantine/{held}/release"),
        format!("/ui/quarantine/{held}/discard"),
        format!("/ui/dlq/{failed}/retry"),
        format!("/ui/dlq/{failed}/delete"),
        "/ui/dlq/retry".to_owned(),
        format!("/ui/fleet/worker/{WORKER}/drain"),
        format!("/ui/runs/{run}/cancel"),
        format!("/ui/runs/{run}/rerun"),
        "/ui/sign-out".to_owned(),
    ];
    let mut forms: Vec<_> = plain.into_iter().map(|path| (path, Vec::new())).collect();
    forms.push(("/ui/workflows/story/start".to_owned(), vec![("what", "{}")]));
    forms.push(("/ui/jobs/new".to_owned(), vec![("topic", "job.echo"), ("context", "{}")]));
    forms.push(("/ui/policy".to_owned(), vec![("topic", "job.echo")]));
    forms.push(("/ui/tenant".to_owned(), vec![("tenant", "acme")]));
    forms
}

#[tokio::test(start_paused = true)]
async fn a_form_without_the_seal_of_its_page_is_refused_and_does_nothing() {
    let house = House::full().await;
    let (ann, operator) = (house.ann().await, house.operator().await);
    let nobody = Browser::new(house.http.clone());
    let (seal, foreign) = (operator.seal().await, ann.seal().await);
    for (path, fields) in forms(&house) {
        let with = |seal| [&fields[..], &[("seal", seal)]].concat();
        for forged in ["", "0", &foreign] {
            let reply = operator.post(&path, &with(forged)).await;
            assert_eq!(reply.status, 403, "{path}: {}", reply.text());
            assert!(reply.text().contains("This form is out of date."), "{path}: {}", reply.text());
        }
        let reply = operator.post(&path, &fields).await;
        assert!(matches!(reply.status, 403 | 422), "{path} without any: {}", reply.status);
        let reply = operator.post_with(&path, &with(&seal), &[("sec-fetch-site", "cross-site")]).await;
        assert_eq!(reply.status, 403, "{path} from another site");
        assert_eq!(nobody.post(&path, &with(&seal)).await.status, 401, "{path} without a session");
    }
    let House { waiting, asked, held, failed, .. } = &house;
    for (id, state) in [
        (waiting, State::Scheduled),
        (asked, State::ApprovalRequired),
        (held, State::OutputQuarantined),
        (failed, State::Failed),
    ] {
        assert_eq!(house.state(id).await, state);
    }
    assert!(operator.page("/ui/dlq").await.contains(failed), "it is still there");
}

#[tokio::test(start_paused = true)]
async fn a_form_with_its_seal_does_what_it_says() {
    let house = House::full().await;
    let ann = house.ann().await;
    let seal = ann.seal().await;
    let House { waiting, asked, held, failed, .. } = &house;

    let reply = ann.post(&format!("/ui/jobs/{waiting}/cancel"), &[("seal", &seal)]).await;
    assert_eq!((reply.status, reply.header("location")), (303, &*format!("/ui/jobs/{waiting}")));
    assert_eq!(house.state(waiting).await, State::Cancelled);

    // What was looked at is what is decided.
    let page = ann.page(&format!("/ui/approvals/{asked}")).await;
    let (_, looked_at) = page.split_once("name=\"what\" value=\"").unwrap();
    let what = looked_at.split('"').next().unwrap();
    let path = format!("/ui/approvals/{asked}/approve");
    let stale = [("seal", &*seal), ("what", "another request"), ("reason", "")];
    assert_eq!(ann.post(&path, &stale).await.status, 409);
    let fields = [("seal", &*seal), ("what", what), ("reason", EVIL)];
    assert_eq!(ann.post(&path, &fields).await.status, 303);
    let page = ann.page("/ui/approvals?include_resolved=true").await;
    assert!(page.contains("approved") && page.contains("ann"), "{page}");
    let page = ann.page(&format!("/ui/approvals/{asked}")).await;
    assert!(page.contains(&format!("Decided by <b>ann</b>: {ESCAPED}")), "{page}");

    let fields = [("seal", &*seal), ("back", "https://evil.example")];
    let reply = ann.post(&format!("/ui/quarantine/{held}/release"), &fields).await;
    assert_eq!((reply.status, reply.header("location")), (303, "/ui/quarantine"));
    assert_eq!(house.state(held).await, State::Succeeded);
    let reply = ann.post(&format!("/ui/dlq/{failed}/delete"), &[("seal", &seal)]).await;
    assert_eq!(reply.status, 303);
    assert!(!ann.page("/ui/dlq").await.contains(failed));
    assert_eq!(ann.post(&format!("/ui/jobs/{held}/explode"), &[("seal", &seal)]).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_job_is_asked_for_and_what_was_wrong_is_said_beside_what_was_typed() {
    let house = House::full().await;
    let ann = house.ann().await;
    let seal = ann.seal().await;
    let bad = [("seal", &*seal), ("topic", EVIL), ("context", EVIL)];
    let reply = ann.post("/ui/jobs/new", &bad).await;
    let text = reply.text();
    assert_eq!(reply.status, 400, "{text}");
    assert!(
        text.contains("The input is not JSON") && text.contains(ESCAPED) && !text.contains(EVIL),
        "{text}"
    );

    let good =
        [("seal", &*seal), ("topic", "job.nobody"), ("context", "{\"n\": 1}"), ("risk_tags", "pii, prod")];
    let reply = ann.post("/ui/jobs/new", &good).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
    let text = ann.page(reply.header("location")).await;
    for words in ["SCHEDULED", "job.nobody", "pii, prod"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn policy_says_what_it_would_say() {
    let house = House::full().await;
    let ann = house.ann().await;
    let seal = ann.seal().await;
    let fields = [("seal", &*seal), ("topic", "job.no"), ("principal", EVIL)];
    let reply = ann.post("/ui/policy", &fields).await;
    let text = reply.text();
    assert_eq!(reply.status, 200, "{text}");
    assert!(text.contains("DENY") && text.contains("hands off") && !text.contains(EVIL), "{text}");
}
