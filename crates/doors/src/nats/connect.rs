//! CONNECT, the first line a NATS client writes: its identity and protocol options.

/// The options that matter here; clients send more (`lang`, `version`, `pedantic`, `tls_required`, …).
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, reason = "these are the protocol's own switches")]
pub(super) struct ConnectOptions {
    /// Every operation is answered with `+OK`.
    pub verbose: bool,
    /// The client receives its own messages.
    pub echo: bool,
    /// The client understands HMSG.
    pub headers: bool,
    /// The client wants to be told when a request has no responders.
    pub no_responders: bool,
    pub name: Option<String>,
    auth_token: Option<String>,
    /// The user name is ignored: the secret alone identifies a client.
    pass: Option<String>,
}

impl Default for ConnectOptions {
    /// The defaults for a client that never sends CONNECT.
    fn default() -> Self {
        Self {
            verbose: false,
            echo: true,
            headers: false,
            no_responders: false,
            name: None,
            auth_token: None,
            pass: None,
        }
    }
}

impl ConnectOptions {
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        let mut connect: Self = serde_json::from_slice(json)?;
        connect.name = connect.name.filter(|name| !name.is_empty());
        Ok(connect)
    }

    pub fn secret(&self) -> Option<&str> {
        [&self.auth_token, &self.pass]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .find(|secret| !secret.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_the_token_or_the_password() {
        let table: [(&str, Option<&str>); 5] = [
            (r#"{"auth_token":"vk_1"}"#, Some("vk_1")),
            (r#"{"user":"any","pass":"vk_2"}"#, Some("vk_2")),
            (r#"{"user":null,"pass":null}"#, None),
            (r#"{"user":"","pass":"","auth_token":""}"#, None),
            (r#"{"user":"only"}"#, None),
        ];
        for (json, secret) in table {
            assert_eq!(ConnectOptions::parse(json.as_bytes()).unwrap().secret(), secret, "{json}");
        }
    }

    #[test]
    fn what_is_not_said_has_the_protocols_default() {
        assert_eq!(ConnectOptions::parse(b"{}").unwrap(), ConnectOptions::default());
        assert_eq!(ConnectOptions::parse(br#"{"name":""}"#).unwrap().name, None);
        assert!(ConnectOptions::parse(b"").is_err());
        assert!(ConnectOptions::parse(br#"{"verbose":"yes"}"#).is_err());
    }
}
