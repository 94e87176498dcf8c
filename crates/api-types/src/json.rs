//! JSON as somebody wrote it: what workers are given and what they give.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

/// Passed on digit by digit, and read as a [`Value`] when somebody looks inside. Nothing at all is read as null, and so is
/// what no `Value` can hold, such as a number of a thousand digits.
#[derive(Clone, Default)]
pub struct Json {
    written: Option<Box<RawValue>>,
    read: OnceLock<Value>,
}

impl Json {
    /// The text, if there is one.
    pub fn written(&self) -> Option<&str> {
        self.written.as_deref().map(RawValue::get)
    }
}

impl From<Option<Box<RawValue>>> for Json {
    fn from(written: Option<Box<RawValue>>) -> Self {
        Self { written, read: OnceLock::new() }
    }
}

impl Deref for Json {
    type Target = Value;

    fn deref(&self) -> &Value {
        let read = |text| serde_json::from_str(text).ok();
        self.read.get_or_init(|| self.written().and_then(read).unwrap_or_default())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.written() == other.written()
    }
}

impl fmt::Display for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.written().unwrap_or("null"))
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_written_is_passed_on_as_it_was() {
        let text = r#"{"n": 12345678901234567890123, "a":  [] }"#;
        let read: Json = serde_json::from_str(text).unwrap();
        assert_eq!((serde_json::to_string(&read).unwrap().as_str(), read.written()), (text, Some(text)));
        assert_eq!(read["a"], json!([]));
    }

    #[test]
    fn nothing_is_null() {
        let read: Json = serde_json::from_str("null").unwrap();
        assert!(read == Json::default() && read.is_null() && read.written().is_none());
        assert_eq!(
            (serde_json::to_string(&read).unwrap().as_str(), read.to_string()),
            ("null", "null".into())
        );
    }
}
