//! What somebody may try with another's cookie. Each test is named after its attack, and passes where the attack comes to
//! nothing.

use crate::browser::Browser;
use crate::house::{House, USER};
use reveille_test_kit::{TestHttp, TestServer, create_key};

fn http(server: &TestServer) -> TestHttp {
    TestHttp::new(reveille_console::router(server.engine.clone(), Vec::new()))
}

fn copy(browser: &Browser, http: &TestHttp) -> Browser {
    Browser { http: http.clone(), cookie: browser.cookie.clone() }
}

#[tokio::test(start_paused = true)]
async fn a_signed_out_cookie_goes_on_working() {
    let house = House::full().await;
    let ann = house.ann().await;
    let beside = house.world.engine().seed(7).start().await;
    let thief = copy(&ann, &http(&beside));
    assert_eq!((ann.get("/ui/jobs").await.status, thief.get("/ui/jobs").await.status), (200, 200));
    let mut live = house.http.open("", "/ui/live?what=job", &[("cookie", &ann.cookie)]).await;

    let seal = ann.seal().await;
    assert_eq!(ann.post("/ui/sign-out", &[("seal", &seal)]).await.status, 303);
    assert_eq!(ann.get("/ui/jobs").await.status, 303, "it is worth nothing where it was signed out");
    assert_eq!(ann.post("/ui/jobs/new", &[("seal", &seal)]).await.status, 401);
    live.end().await;

    assert!(beside.access().ended_sessions().reload().await.unwrap());
    assert_eq!(thief.get("/ui/jobs").await.status, 303, "nor at another server");
    house.server.kill();
    let restarted = house.world.engine().seed(8).start().await;
    assert_eq!(copy(&ann, &http(&restarted)).get("/ui/jobs").await.status, 303, "nor after a restart");
}

#[tokio::test(start_paused = true)]
async fn whoever_signs_out_everywhere_takes_copied_cookies_along() {
    let house = House::full().await;
    let key = create_key(&house.server, "ann", "acme", USER).await;
    let (desk, lost) =
        (Browser::sign_in(house.http.clone(), &key).await, Browser::sign_in(house.http.clone(), &key).await);
    let carol = house.browser("carol", "acme", USER).await;
    let seal = desk.seal().await;
    let foreign = carol.seal().await;
    let everywhere = |seal| [("seal", seal), ("everywhere", "true")];
    assert_eq!(desk.post("/ui/sign-out", &everywhere(&foreign)).await.status, 403, "another session's form");
    assert_eq!(lost.get("/ui/jobs").await.status, 200);
    assert_eq!(desk.post("/ui/sign-out", &everywhere(&seal)).await.status, 303);
    assert_eq!((desk.get("/ui/jobs").await.status, lost.get("/ui/jobs").await.status), (303, 303));
    assert_eq!(carol.get("/ui/jobs").await.status, 200, "others stay");
    let again = Browser::sign_in(house.http.clone(), &key).await;
    assert_eq!(again.get("/ui/jobs").await.status, 200, "even in the same millisecond");
}
