//! Where a server is: `http://host:port/prefix`, taken apart once.

use hyper::Uri;

use crate::error::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    pub is_https: bool,
    /// A name or an IP address, without the brackets that an IPv6 address wears in URLs.
    pub host: String,
    pub port: u16,
    /// What stands before every path; empty, or without a slash at its end.
    prefix: String,
    /// The `Host` header: with the port only if it is not the usual one.
    pub authority: String,
}

impl ServerAddress {
    /// `what` names the setting that `url` came from.
    pub fn parse(what: &'static str, url: &str) -> Result<Self, Error> {
        Self::read(url.trim()).ok_or_else(|| Error::HttpUrl { what, url: url.to_owned() })
    }

    fn read(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let authority = uri.authority()?;
        // Credentials in a URL end up in logs; keys have a place of their own.
        if authority.as_str().contains('@') || uri.query().is_some() {
            return None;
        }
        let is_https = match uri.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return None;
        }
        Some(Self {
            is_https,
            host,
            port: authority.port_u16().unwrap_or(if is_https { 443 } else { 80 }),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            authority: authority.as_str().to_owned(),
        })
    }

    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: (bool, &str, u16, &str)) {
        let address = ServerAddress::parse("X_URL", url).unwrap();
        let found = (address.is_https, address.host.as_str(), address.port, &*address.path("/v1/x"));
        assert_eq!(found, expected);
    }

    #[test]
    fn an_address_is_taken_apart() {
        check("http://127.0.0.1:8080", (false, "127.0.0.1", 8080, "/v1/x"));
        check("http://collector/", (false, "collector", 80, "/v1/x"));
        check(" https://api.example.com/voice/ ", (true, "api.example.com", 443, "/voice/v1/x"));
        check("http://[::1]:9000", (false, "::1", 9000, "/v1/x"));
    }

    #[test]
    fn what_is_no_address_is_named() {
        for url in ["", "collector:8080", "ftp://x", "http://", "/v1", "http://user:key@host", "http://h?k=v"]
        {
            let error = ServerAddress::parse("X_URL", url).unwrap_err().to_string();
            assert_eq!(error, format!("X_URL: expected http[s]://host[:port], got {url:?}"));
        }
    }
}
