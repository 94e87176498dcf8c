//! The console asks for the same rights as the API: its buttons do nothing for whoever has another one.

use crate::house::House;
use reveille_core::job::State;
use reveille_roster::Scope;

#[tokio::test(start_paused = true)]
async fn each_right_moves_its_own_buttons_and_none_of_the_others() {
    let house = House::full().await;
    let House { waiting, asked, held, failed, .. } = &house;
    let new_job: &[(&str, &str)] = &[("topic", "job.echo"), ("context", "{}")];
    let acts = [
        (Scope::Submit, "/ui/jobs/new".to_owned(), new_job),
        (Scope::Approve, format!("/ui/approvals/{asked}/approve"), &[]),
        (Scope::Release, format!("/ui/quarantine/{held}/release"), &[]),
        (Scope::Operate, format!("/ui/dlq/{failed}/delete"), &[]),
    ];
    for held_right in [Scope::Read, Scope::Submit, Scope::Approve, Scope::Release, Scope::Operate] {
        let browser = house.browser(held_right.as_str(), "acme", &[Scope::Read, held_right]).await;
        let seal = browser.seal().await;
        for (needed, path, fields) in acts.iter().filter(|(needed, ..)| *needed != held_right) {
            let reply = browser.post(path, &[fields, &[("seal", seal.as_str())][..]].concat()).await;
            let told = format!("this key lacks the scope {}", needed.as_str());
            assert!(reply.text().contains(&told), "{held_right:?} {path}: {} {}", reply.status, reply.text());
        }
        let sees_held = browser.page("/ui/quarantine").await.contains("<mark>");
        assert_eq!(sees_held, held_right == Scope::Release, "{held_right:?}");
    }
    assert_eq!(house.state(asked).await, State::ApprovalRequired);
    assert_eq!(house.state(held).await, State::OutputQuarantined);
    for (right, path, fields) in &acts {
        let name = format!("{} again", right.as_str());
        let browser = house.browser(&name, "acme", &[Scope::Read, *right]).await;
        let seal = browser.seal().await;
        let reply = browser.post(path, &[*fields, &[("seal", seal.as_str())][..]].concat()).await;
        assert_eq!(reply.status, 303, "{right:?} {path}: {}", reply.text());
    }
    assert_ne!(house.state(asked).await, State::ApprovalRequired);
    assert_ne!(house.state(held).await, State::OutputQuarantined);
    assert_eq!(house.state(waiting).await, State::Scheduled);
}
