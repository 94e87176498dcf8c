//! Where spans go, and which. The variables are OpenTelemetry's own; those that are not here do nothing.

use anyhow::{Context, Result, ensure};
use reveille_core::trace::Ratio;
use reveille_traces::{Collector, headers};
use serde::Deserialize;
use std::fmt;

#[derive(Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TracingSection {
    /// The collector, without a path: `http://127.0.0.1:4318`. Empty: spans are not exported.
    pub otlp_endpoint: String,
    /// The same with its path, where that is not `/v1/traces`. It counts more.
    pub otlp_traces_endpoint: String,
    /// Headers for the collector: `name=value,other=value`.
    pub otlp_headers: String,
    pub service_name: String,
    /// Which part of the traces that begin here is recorded, from 0 to 1.
    #[serde(deserialize_with = "number_or_text")]
    pub sample_ratio: String,
}

impl Default for TracingSection {
    fn default() -> Self {
        Self {
            otlp_endpoint: String::new(),
            otlp_traces_endpoint: String::new(),
            otlp_headers: String::new(),
            service_name: "reveille".to_owned(),
            sample_ratio: "1".to_owned(),
        }
    }
}

/// Headers hold credentials, and settings may end up in a log.
impl fmt::Debug for TracingSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TracingSection")
            .field("otlp_endpoint", &self.otlp_endpoint)
            .field("otlp_traces_endpoint", &self.otlp_traces_endpoint)
            .field("service_name", &self.service_name)
            .field("sample_ratio", &self.sample_ratio)
            .finish_non_exhaustive()
    }
}

fn number_or_text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum RatioOrText {
        Number(f64),
        Text(String),
    }
    Ok(match RatioOrText::deserialize(from)? {
        RatioOrText::Number(number) => number.to_string(),
        RatioOrText::Text(text) => text,
    })
}

impl TracingSection {
    /// Nothing if spans are not exported.
    pub fn collector(&self) -> Result<Option<Collector>> {
        let url = match (self.otlp_traces_endpoint.as_str(), self.otlp_endpoint.trim_end_matches('/')) {
            ("", "") => return Ok(None),
            ("", base) => format!("{base}/v1/traces"),
            (whole, _) => whole.to_owned(),
        };
        let is_web = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
        ensure!(is_web, "tracing.otlp_endpoint: {url:?} is not a URL such as http://127.0.0.1:4318");
        let headers = headers(&self.otlp_headers).context("tracing.otlp_headers")?;
        Ok(Some(Collector { url, headers, service_name: self.service_name.clone() }))
    }

    pub fn ratio(&self) -> Result<Ratio> {
        let part = self.sample_ratio.trim().parse().ok().and_then(Ratio::new);
        part.with_context(|| {
            format!("tracing.sample_ratio: {:?} is not a number from 0 to 1", self.sample_ratio)
        })
    }

    pub fn check(&self) -> Result<()> {
        headers(&self.otlp_headers).context("tracing.otlp_headers")?;
        self.collector()?;
        self.ratio().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_added_to_an_endpoint_and_not_to_a_traces_endpoint() {
        let url = |base: &str, whole: &str| {
            let settings = TracingSection {
                otlp_endpoint: base.to_owned(),
                otlp_traces_endpoint: whole.to_owned(),
                ..TracingSection::default()
            };
            settings.collector().unwrap().map(|collector| collector.url)
        };
        assert_eq!(url("", ""), None);
        assert_eq!(url("http://c:4318", "").unwrap(), "http://c:4318/v1/traces");
        assert_eq!(url("https://c/otlp/", "").unwrap(), "https://c/otlp/v1/traces");
        assert_eq!(url("http://c:4318", "http://d/spans").unwrap(), "http://d/spans");
    }

    #[test]
    fn header_values_are_not_shown() {
        let settings =
            TracingSection { otlp_headers: "authorization=secret".to_owned(), ..TracingSection::default() };
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
