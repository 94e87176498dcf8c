//! Signing in, and out again.

use crate::browser::Browser;
use crate::house::{EVIL, House, USER};
use reveille_test_kit::create_key;

#[tokio::test(start_paused = true)]
async fn only_a_good_key_opens_the_door() {
    let house = House::full().await;
    let nobody = Browser::new(house.http.clone());
    let text = nobody.page("/ui/sign-in?next=/ui/jobs").await;
    assert!(
        text.contains("<title>Sign in · Reveille</title>") && text.contains("value=\"/ui/jobs\""),
        "{text}"
    );
    let text = nobody.page("/ui/sign-in?next=%22%3E%3Cscript%3Ealert(1)%3C/script%3E").await;
    assert!(!text.contains(EVIL) && text.contains("name=\"next\" value=\"/\""), "{text}");

    for key in ["vk_wrong", "", EVIL] {
        let reply = nobody.post("/ui/sign-in", &[("key", key)]).await;
        assert_eq!((reply.status, reply.header("set-cookie")), (401, ""));
        assert!(reply.text().contains("wrong, expired or revoked"), "{}", reply.text());
        assert!(!reply.text().contains(EVIL));
    }
    let key = create_key(&house.server, "ann", "acme", USER).await;
    let good = [("key", key.as_str()), ("next", "//evil.example")];
    let reply = nobody.post_with("/ui/sign-in", &good, &[("sec-fetch-site", "cross-site")]).await;
    assert_eq!((reply.status, reply.header("set-cookie")), (401, ""), "the form was another site's");
    let reply = nobody.post("/ui/sign-in", &good).await;
    assert_eq!((reply.status, reply.header("location")), (303, "/"), "nobody is sent to another site");
    let cookie = reply.header("set-cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    assert!(!cookie.contains(&key), "the browser keeps no key");
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_with_its_cookie_its_time_and_its_key() {
    let house = House::full().await;
    let ann = house.ann().await;
    assert_eq!(ann.get("/ui/sign-in?next=/ui/fleet").await.header("location"), "/ui/fleet");
    let seal = ann.seal().await;
    let reply = ann.post("/ui/sign-out", &[("seal", &seal)]).await;
    assert_eq!((reply.status, reply.header("location")), (303, "/ui/sign-in"));
    assert!(reply.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(ann.get("/ui/jobs").await.status, 303, "a copy of the cookie opens nothing either");

    let ann = house.browser("ann2", "acme", USER).await;
    let false_cookie = ann.cookie.replace(&ann.cookie[ann.cookie.len() - 4..], "0000");
    let forger = Browser { http: house.http.clone(), cookie: false_cookie };
    assert_eq!(forger.get("/ui/jobs").await.status, 303);

    let key = house.server.access().list_keys().into_iter().find(|key| key.name == "ann2").unwrap();
    assert!(house.server.access().revoke_key(&key.id, "root").await.unwrap());
    assert_eq!(ann.get("/ui/jobs").await.status, 303, "its key is revoked");

    let carol = house.browser("carol", "acme", USER).await;
    house.world.clock.shift(13 * 3600 * 1000);
    assert_eq!(carol.get("/ui/jobs").await.status, 303, "half a day is over");
}
