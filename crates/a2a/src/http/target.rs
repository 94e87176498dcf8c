//! A URL, taken apart into what a connection and a request need.
//!
//! Parsed by the rules of browsers (the `url` crate), because those know every spelling of an IPv4
//! address: `127.1`, `0x7f.1` and `2130706433` come out as the addresses that they are. Only the
//! parsed form is ever used, so that no second reader can see another host in the same text.

use crate::A2aError;
use hyper::http::uri::PathAndQuery;
use url::{Host, Position, Url};

/// The longest URL that is looked at.
pub const URL_BYTES_MAX: usize = 2048;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct A2aTarget {
    /// Whether TLS is spoken.
    pub secure: bool,
    /// A name as it is resolved, with the final dot if it was written, or an address.
    pub host: Host<String>,
    pub port: u16,
    /// The value of the Host header.
    pub authority: String,
    pub path: PathAndQuery,
}

impl A2aTarget {
    pub fn parse(text: &str) -> Result<Self, A2aError> {
        if text.len() > URL_BYTES_MAX {
            return Err(A2aError::Refused(format!("the URL is longer than {URL_BYTES_MAX} bytes")));
        }
        let refused = |why: &str| A2aError::Refused(format!("{text:?}: {why}"));
        // The parser would drop or turn these silently, and other readers of the text would not.
        if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
            return Err(refused("no white space, control character or backslash is allowed"));
        }
        // Browsers also take `http:host` and `http:///host`, where others see another host, or none.
        let host_begins = text.split_once("://").map(|(_, rest)| !rest.starts_with('/'));
        if text.find(':') != text.find("://") || host_begins != Some(true) {
            return Err(refused("a URL begins with http:// or https:// and a host"));
        }
        let url = Url::parse(text).map_err(|error| refused(&error.to_string()))?;
        let secure = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(refused("the scheme is neither http nor https")),
        };
        if !url.username().is_empty() || url.password().is_some() || has_userinfo(text) {
            return Err(A2aError::Refused("the URL holds credentials".to_owned()));
        }
        let host = url.host().ok_or_else(|| refused("there is no host"))?.to_owned();
        let port = match url.port_or_known_default() {
            None | Some(0) => return Err(refused("there is no such port")),
            Some(port) => port,
        };
        let bare = name_without_dot(&host);
        if bare.is_empty() || bare.ends_with('.') {
            return Err(refused("there is no such host"));
        }
        let authority = url.port().map_or_else(|| bare.clone(), |port| format!("{bare}:{port}"));
        let path = PathAndQuery::try_from(&url[Position::BeforePath..Position::AfterQuery])
            .map_err(|error| refused(&error.to_string()))?;
        Ok(Self { secure, host, port, authority, path })
    }

    /// The host as certificates know it: without the dot that only resolvers understand.
    pub(super) fn certified_name(&self) -> String {
        match &self.host {
            Host::Ipv6(address) => address.to_string(),
            host => name_without_dot(host),
        }
    }
}

fn name_without_dot(host: &Host<String>) -> String {
    let text = host.to_string();
    text.strip_suffix('.').map_or_else(|| text.clone(), str::to_owned)
}

/// The parser forgets an empty user (`http://@host/`); the text does not.
fn has_userinfo(text: &str) -> bool {
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default().contains('@')
}

#[cfg(test)]
mod tests {
    use super::{A2aTarget, URL_BYTES_MAX};
    use crate::A2aError;
    use proptest::prelude::*;

    #[test]
    fn a_url_becomes_host_port_authority_and_path() {
        let table = [
            ("http://agent.example", "agent.example 80 agent.example /"),
            ("HTTPS://Agent.Example:443/a2a?x=1#top", "agent.example 443 agent.example /a2a?x=1"),
            ("https://agent.example:8443/a b", ""),
            ("http://agent.example.:8080/", "agent.example. 8080 agent.example:8080 /"),
            ("http://127.1/", "127.0.0.1 80 127.0.0.1 /"),
            ("http://0x7f.1/", "127.0.0.1 80 127.0.0.1 /"),
            ("http://2130706433/", "127.0.0.1 80 127.0.0.1 /"),
            ("http://0177.0.0.1/", "127.0.0.1 80 127.0.0.1 /"),
            ("http://127.0.0.1./", "127.0.0.1 80 127.0.0.1 /"),
            ("http://①②⑦.0.0.1/", "127.0.0.1 80 127.0.0.1 /"),
            ("http://[::ffff:127.0.0.1]/", "[::ffff:7f00:1] 80 [::ffff:7f00:1] /"),
            ("http://[::1]:9/x", "[::1] 9 [::1]:9 /x"),
            ("http://bücher.example/", "xn--bcher-kva.example 80 xn--bcher-kva.example /"),
            ("http://agent.example/a/../b", "agent.example 80 agent.example /b"),
            ("http://agent.example/?q={a|b}", "agent.example 80 agent.example /?q={a|b}"),
        ];
        for (url, expected) in table {
            let found = A2aTarget::parse(url).map_or_else(
                |_| String::new(),
                |target| format!("{} {} {} {}", target.host, target.port, target.authority, target.path),
            );
            assert_eq!(found, expected, "{url}");
        }
    }

    #[test]
    fn what_is_no_plain_http_url_is_refused() {
        let long = format!("http://agent.example/{}", "a".repeat(URL_BYTES_MAX));
        let table = [
            "",
            "agent.example",
            "/a2a",
            "ftp://agent.example/",
            "file:///etc/passwd",
            "gopher://agent.example/",
            "http://",
            "http:///",
            "http:///agent.example/",
            "http:agent.example",
            "http:/agent.example/",
            "http:80://agent.example/",
            "http://./",
            "http://a../",
            "http://user@agent.example/",
            "http://user:secret@agent.example/",
            "http://@agent.example/",
            "http://:@agent.example/",
            "http://agent.example:0/",
            "http://agent.example:65536/",
            "http://agent.example\\@127.0.0.1/",
            "http://agent.example/\r\nHost: x",
            " http://agent.example/",
            "http://1.2.3.4.5/",
            "http://256.1.1.1/",
            "http://[fe80::1%25eth0]/",
            long.as_str(),
        ];
        for url in table {
            let outcome = A2aTarget::parse(url);
            assert!(matches!(outcome, Err(A2aError::Refused(_))), "{url:?} gave {outcome:?}");
        }
    }

    #[test]
    fn certificates_know_a_host_without_dot_and_brackets() {
        let table = [
            ("https://agent.example./", "agent.example"),
            ("https://[2606:4700::1]/", "2606:4700::1"),
            ("https://1.1.1.1/", "1.1.1.1"),
        ];
        for (url, name) in table {
            assert_eq!(A2aTarget::parse(url).unwrap().certified_name(), name);
        }
    }

    #[test]
    fn credentials_are_not_repeated_in_the_refusal() {
        let error = A2aTarget::parse("http://user:secret@agent.example/").unwrap_err();
        assert_eq!(error.to_string(), "refused: the URL holds credentials");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}", rest in "[ -~]{0,60}") {
            let _ = A2aTarget::parse(&text);
            let _ = A2aTarget::parse(&format!("http://{rest}"));
        }
    }
}
