//! Circuit breakers, in the form operators read: a number counts consecutive failures, a word says more.

use super::RedisStore;
use super::script::{ScriptCall, call};
use super::scripts::SwapValue;
use crate::{Breakers, StoreError};
use reveille_core::breaker::Breaker;
use reveille_core::time::Millis;

#[async_trait::async_trait]
impl Breakers for RedisStore {
    async fn breaker(&self, name: &str) -> Result<Breaker, StoreError> {
        let key = self.keys.of(name);
        let text: Option<String> = self.link.command(redis::cmd("GET").arg(&key)).await?;
        match text {
            None => Ok(Breaker::default()),
            Some(text) => read(&text).ok_or_else(|| StoreError::Corrupt(format!("{key} is {text:?}"))),
        }
    }

    async fn swap_breaker(&self, name: &str, before: Breaker, after: Breaker) -> Result<bool, StoreError> {
        let swap = call!(SwapValue { value: self.keys.of(name), before: write(before), after: write(after) });
        Ok(self.link.run(&swap.of(&self.scripts)).await?)
    }
}

fn write(breaker: Breaker) -> String {
    match breaker {
        Breaker::Closed { failures } => failures.to_string(),
        Breaker::Open { until } => format!("open:{}", until.0),
        Breaker::HalfOpen { probes, answers, until } => format!("half:{probes}:{answers}:{}", until.0),
    }
}

fn read(text: &str) -> Option<Breaker> {
    let mut parts = text.split(':');
    let breaker = match parts.next()? {
        "open" => Breaker::Open { until: Millis(parts.next()?.parse().ok()?) },
        "half" => Breaker::HalfOpen {
            probes: parts.next()?.parse().ok()?,
            answers: parts.next()?.parse().ok()?,
            until: Millis(parts.next()?.parse().ok()?),
        },
        failures => Breaker::Closed { failures: failures.parse().ok()? },
    };
    parts.next().is_none().then_some(breaker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_breaker_is_read_as_it_was_written() {
        let until = Millis(1_800_000_030_000);
        let all = [
            Breaker::default(),
            Breaker::Closed { failures: 2 },
            Breaker::Open { until },
            Breaker::HalfOpen { probes: 3, answers: 1, until },
        ];
        for breaker in all {
            assert_eq!(read(&write(breaker)), Some(breaker));
        }
        assert_eq!(all.map(write)[1], "2", "a count, as operators know it");
        for text in ["", "x", "open", "open:x", "half:1:2", "half:1:2:3:4", "1:2"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
