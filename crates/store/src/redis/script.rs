//! Scripts and their arguments, by name.
//!
//! A script has one list of names, where it is declared ([`scripts!`](super::script::scripts)). The fields that a
//! caller fills in ([`call!`](super::script::told)) and the locals that the script begins with both come from that
//! list, so that neither side counts positions. A script repeats the list at its top, for its reader; a test compares
//! the two.

use super::keys::Keys;
use redis::{Cmd, RedisWrite, Script, ToRedisArgs};
use std::borrow::Cow;

/// What an ordinary call takes: arguments, and their bytes.
const CALL_LEN: usize = 96;
const CALL_BYTES: usize = 4_096;

/// One value of a call. A missing value is written as empty, and keeps its position.
#[derive(Debug)]
pub(crate) enum ScriptValue<'a> {
    Bytes(Cow<'a, [u8]>),
    Signed(i64),
    Unsigned(u64),
}

/// The names of a script, and its text.
#[derive(Debug)]
pub(crate) struct Declared {
    pub text: &'static str,
    pub keys: &'static [&'static str],
    pub args: &'static [&'static str],
}

/// The arguments of one call of a script, under those names.
pub(crate) trait ScriptCall<'a>: Sized {
    const DECLARED: Declared;

    /// What holds the script.
    type Scripts;

    fn script(scripts: &Self::Scripts) -> &Script;

    /// Keys, then arguments, in the order of the list.
    fn values(self) -> impl IntoIterator<Item = ScriptValue<'a>>;

    fn of(self, scripts: &Self::Scripts) -> Invocation<'_> {
        self.of_more(scripts, std::iter::empty())
    }

    /// With unnamed keys after the named ones.
    fn of_more<'s, 'k>(
        self,
        scripts: &'s Self::Scripts,
        more_keys: impl ExactSizeIterator<Item = &'k str>,
    ) -> Invocation<'s> {
        let script = Self::script(scripts);
        let named_keys = Self::DECLARED.keys.len();
        let mut command = Cmd::with_capacity(CALL_LEN, CALL_BYTES);
        command.arg("EVALSHA").arg(script.get_hash()).arg(named_keys + more_keys.len());
        let mut values = self.values().into_iter();
        for key in values.by_ref().take(named_keys) {
            command.arg(key);
        }
        for key in more_keys {
            command.arg(key);
        }
        for value in values {
            command.arg(value);
        }
        Invocation { script, command }
    }
}

/// A call that is written out.
pub(crate) struct Invocation<'s> {
    pub script: &'s Script,
    pub command: Cmd,
}

impl Invocation<'_> {
    /// One more argument after the named ones.
    pub fn more<'a>(&mut self, value: impl Into<ScriptValue<'a>>) -> &mut Self {
        self.command.arg(value.into());
        self
    }
}

impl Declared {
    /// The script as it is run. It begins with a local for each name; `more_keys` and `more_args` say where the
    /// unnamed ones begin. Lines keep their numbers.
    ///
    /// While a cluster migrates our slot to another node, key by key, a script would stop at the first key that has
    /// left, with half of its work done. So it first looks for a key that exists nowhere: a node that is giving up
    /// the slot redirects that one.
    pub fn script(&self, keys: &Keys) -> Script {
        let mut lines = Vec::new();
        if keys.is_on_a_cluster() {
            lines.push(format!("redis.call('EXISTS', '{}')", keys.of("reveille:nothing")));
        }
        for (list, names) in [("KEYS", self.keys), ("ARGV", self.args)] {
            if !names.is_empty() {
                lines.push(format!("local {} = unpack({list}, 1, {})", names.join(", "), names.len()));
            }
        }
        let (more_keys, more_args) = (self.keys.len() + 1, self.args.len() + 1);
        lines.push(format!("local more_keys, more_args = {more_keys}, {more_args}"));
        Script::new(&format!("{} {}", lines.join(" "), self.text))
    }
}

/// Declares scripts: a struct that holds them, and for each a struct with a field for each name.
macro_rules! scripts {
    ($holder:ident { $($field:ident: $call:ident = $file:literal, keys $keys:tt, args $args:tt;)+ }) => {
        pub(super) struct $holder {
            $($field: redis::Script,)+
        }

        impl $holder {
            pub fn new(keys: &$crate::redis::Keys) -> Self {
                use $crate::redis::script::ScriptCall;
                Self { $($field: $call::DECLARED.script(keys),)+ }
            }

            pub fn all(&self) -> Vec<&redis::Script> {
                vec![$(&self.$field),+]
            }

            #[cfg(test)]
            pub fn declared() -> Vec<(&'static str, $crate::redis::script::Declared)> {
                use $crate::redis::script::ScriptCall;
                vec![$(($file, $call::DECLARED)),+]
            }
        }

        $($crate::redis::script::script!($holder, $field, $call, $file, $keys, $args);)+
    };
}

macro_rules! script {
    ($holder:ident, $field:ident, $call:ident, $file:literal, [$($key:ident),*], [$($arg:ident),*]) => {
        pub(super) struct $call<'a> {
            $(pub $key: $crate::redis::script::ScriptValue<'a>,)*
            $(pub $arg: $crate::redis::script::ScriptValue<'a>,)*
        }

        impl<'a> $crate::redis::script::ScriptCall<'a> for $call<'a> {
            const DECLARED: $crate::redis::script::Declared = $crate::redis::script::Declared {
                text: include_str!($file),
                keys: &[$(stringify!($key)),*],
                args: &[$(stringify!($arg)),*],
            };

            type Scripts = $holder;

            fn script(scripts: &$holder) -> &redis::Script {
                &scripts.$field
            }

            fn values(self) -> impl IntoIterator<Item = $crate::redis::script::ScriptValue<'a>> {
                [$(self.$key,)* $(self.$arg,)*]
            }
        }
    };
}

/// Fills in a call, whatever the types of its values are.
macro_rules! call {
    ($call:ident { $($name:ident: $value:expr),* $(,)? }) => {
        $call { $($name: $crate::redis::script::ScriptValue::from($value),)* }
    };
}

pub(crate) use {call, script, scripts};

impl ToRedisArgs for ScriptValue<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        match self {
            Self::Bytes(bytes) => out.write_arg(bytes),
            Self::Signed(number) => number.write_redis_args(out),
            Self::Unsigned(number) => number.write_redis_args(out),
        }
    }
}

impl redis::ToSingleRedisArg for ScriptValue<'_> {}

impl<'a, T: Into<ScriptValue<'a>>> From<Option<T>> for ScriptValue<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Bytes(Cow::Borrowed(b"")), Into::into)
    }
}

/// Yes and no, as scripts expect them.
impl From<bool> for ScriptValue<'_> {
    fn from(is: bool) -> Self {
        Self::Bytes(Cow::Borrowed(if is { b"1" } else { b"0" }))
    }
}

macro_rules! value_from {
    ($($value:ty: $from:expr;)+) => {
        $(impl<'a> From<$value> for ScriptValue<'a> {
            fn from(value: $value) -> Self {
                let from: fn($value) -> ScriptValue<'a> = $from;
                from(value)
            }
        })+
    };
}

value_from! {
    &'a [u8]: |bytes| Self::Bytes(Cow::Borrowed(bytes));
    Vec<u8>: |bytes| Self::Bytes(Cow::Owned(bytes));
    &'a str: |text| Self::Bytes(Cow::Borrowed(text.as_bytes()));
    &'a String: |text| Self::Bytes(Cow::Borrowed(text.as_bytes()));
    String: |text| Self::Bytes(Cow::Owned(text.into_bytes()));
    i64: Self::Signed;
    u32: |number| Self::Unsigned(number.into());
    u64: Self::Unsigned;
    usize: |number| Self::Unsigned(number as u64);
}

#[cfg(test)]
pub(crate) mod tests;
