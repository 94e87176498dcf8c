//! Somebody at a browser: keeps cookies, follows nothing, sends forms.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reveille_test_kit::{Reply, TestHttp};

pub const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

pub struct Browser {
    pub http: TestHttp,
    pub cookie: String,
}

impl Browser {
    /// Somebody who has not signed in.
    pub fn new(http: TestHttp) -> Self {
        Self { http, cookie: String::new() }
    }

    pub async fn sign_in(http: TestHttp, key: &str) -> Self {
        let sent = Self::new(http.clone()).post("/ui/sign-in", &[("key", key), ("next", "/ui/jobs")]).await;
        assert_eq!((sent.status, sent.header("location")), (303, "/ui/jobs"));
        Self { http, cookie: sent.header("set-cookie").split(';').next().unwrap().to_owned() }
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.http.send("GET", path, &[("cookie", &self.cookie)], "").await
    }

    /// A page that must be there.
    pub async fn page(&self, path: &str) -> String {
        let reply = self.get(path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.text().to_owned()
    }

    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        self.post_with(path, fields, &[]).await
    }

    pub async fn post_with(&self, path: &str, fields: &[(&str, &str)], more: &[(&str, &str)]) -> Reply {
        let coded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let pairs: Vec<String> =
            fields.iter().map(|(name, value)| format!("{}={}", coded(name), coded(value))).collect();
        let headers = [&[FORM, ("cookie", self.cookie.as_str())][..], more].concat();
        self.http.send("POST", path, &headers, pairs.join("&")).await
    }

    /// What the forms of this browser's pages bring along.
    pub async fn seal(&self) -> String {
        let page = self.page("/ui/jobs/new").await;
        let (_, rest) = page.split_once("name=\"seal\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}
