//! Conditions: a CEL expression over a job's facts (`when:`), checked when the policy is loaded.
//!
//! The checker knows the type of every fact, so a rule that compares a label with a number, or asks for a
//! fact that does not exist, is refused at load and not at three in the morning. A label that a job does
//! not have reads as the empty text.

mod check;
mod depth;
mod kinds;

use crate::request::Request;
use cel::objects::{Key, Map};
use cel::parser::Parser;
use cel::{Context, Env, IdedExpr, Value};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Characters of one condition.
pub const LEN_MAX: usize = 1024;
/// How deep a condition may be nested; `a + b + c` is two deep.
const DEPTH_MAX: u16 = 64;

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A condition that was found to be one: it says yes or no of every job, or that it cannot.
#[derive(Clone)]
pub struct Condition {
    source: String,
    expression: Arc<IdedExpr>,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Condition").field(&self.source).finish()
    }
}

/// A job's facts as conditions read them, made once for all rules.
pub struct Facts<'a>(Context<'a, 'a>);

impl Condition {
    pub fn parse(source: &str) -> Result<Self, String> {
        if source.chars().count() > LEN_MAX {
            return Err(format!("has more than {LEN_MAX} characters"));
        }
        let parsed = Parser::new().max_recursion_depth(DEPTH_MAX).parse(source);
        let parsed = parsed.map_err(|errors| errors.to_string().trim().replace('\n', " "))?;
        if depth::of(&parsed) > DEPTH_MAX {
            return Err(format!("is nested more than {DEPTH_MAX} deep"));
        }
        let expression = Arc::new(check::yes_or_no(parsed)?);
        Ok(Self { source: source.to_owned(), expression })
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// What it says, or why it cannot say: a division by zero, a text that is no number.
    pub fn holds(&self, facts: &Facts<'_>) -> Result<bool, String> {
        match facts.0.resolve(&self.expression) {
            Ok(Value::Bool(yes)) => Ok(yes),
            Ok(other) => Err(format!("says {other:?}, which is neither yes nor no")),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Facts<'_> {
    pub fn of(request: &Request) -> Self {
        let job = kinds::FIELDS.iter().map(|field| (Key::from(field.name), (field.read)(request)));
        let mut context = Context::with_env(Arc::clone(&ENV));
        let map = Map { map: Arc::new(job.collect::<HashMap<Key, Value>>()) };
        context.add_variable_from_value("job", Value::Map(map));
        Self(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Request {
        let mut request = Request::plain("j", "job.deploy.web");
        request.labels.insert("env".to_owned(), "prod".to_owned());
        request.labels.insert("amount".to_owned(), "250".to_owned());
        request.needs.risk_tags = vec!["money".to_owned(), "network".to_owned()];
        request.budget.max_input_tokens = 9000;
        request
    }

    #[test]
    fn conditions_over_a_jobs_facts() {
        let facts_of = job();
        let facts = Facts::of(&facts_of);
        for (source, expected) in [
            ("true", true),
            ("job.topic == 'job.deploy.web'", true),
            ("job.topic.startsWith('job.deploy.') && !(job.tenant in ['acme', 'zeta'])", true),
            ("job.labels.env == 'prod'", true),
            ("job.labels['env'] in ['prod', 'staging']", true),
            ("int(job.labels.amount) > 200", true),
            ("job.labels.missing == ''", true),
            ("job.labels['no' + 'thing'] == 'x'", false),
            ("has(job.labels.env) && !has(job.labels.missing)", true),
            ("'env' in job.labels", true),
            ("job.risk_tags.exists(tag, tag == 'money')", true),
            ("job.risk_tags.all(tag, tag.size() > 5)", false),
            ("job.risk_tags.filter(tag, tag.contains('net')).size() == 1", true),
            ("size(job.risk_tags) == 2 && size(job.labels) >= 2", true),
            ("job.max_input_tokens > 8000 ? job.priority == 'interactive' : false", true),
            ("double(job.labels.amount) / 2.0 >= 125.0", true),
            ("job.capability == '' && job.step_index == 0", true),
        ] {
            let condition = Condition::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"));
            assert_eq!(condition.holds(&facts), Ok(expected), "{source}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused_at_load_with_the_reason() {
        for (source, part) in [
            ("", ""),
            ("job.topic ==", ""),
            ("job.topic", "text, not yes or no"),
            ("job.tpoic == 'x'", "tpoic"),
            ("topic == 'x'", "unknown name topic"),
            ("job.labels.amount > 200", "text with a number"),
            ("job.topic == 5", "text with a number"),
            ("job.risk_tags == 'x'", "list"),
            ("'x' in job.topic", "in"),
            ("job.topic.matches('x')", "matches"),
            ("system('rm')", "system"),
            ("job.step_index && true", "number"),
            ("job.risk_tags.exists(t, t > 3)", "text with a number"),
            ("[1, 'a'].size() > 0", "list"),
            ("job.labels.env ? true : false", "text"),
            ("job == job", "job"),
        ] {
            let error = Condition::parse(source).expect_err(source);
            assert!(error.contains(part), "{source}: {error:?} should contain {part:?}");
        }
        assert!(Condition::parse(&format!("'{}' == ''", "a".repeat(LEN_MAX))).is_err());
        assert!(Condition::parse(&format!("{}true{}", "(".repeat(500), ")".repeat(500))).is_err());
    }

    #[test]
    fn a_condition_cannot_be_too_deep_for_the_stack() {
        let facts_of = job();
        let facts = Facts::of(&facts_of);
        let most = vec!["true"; 150].join("&&");
        assert_eq!(Condition::parse(&most).map(|most| most.holds(&facts)), Ok(Ok(true)));
        let sum = format!("{} == 60", vec!["1"; 60].join("+"));
        assert_eq!(Condition::parse(&sum).map(|sum| sum.holds(&facts)), Ok(Ok(true)));
        for deep in [
            format!("{} == 1", vec!["1"; 500].join("+")),
            format!("job.topic{} == 1", ".x".repeat(450)),
            format!("job{} == 1", "[0]".repeat(300)),
            format!("{}true", "true?".repeat(80) + &"true:".repeat(80)),
            format!("{}1{} == 1", "[".repeat(400), "]".repeat(400)),
        ] {
            assert!(Condition::parse(&deep).is_err(), "{deep}");
        }
    }

    #[test]
    fn what_cannot_be_said_is_an_error_and_no_panic() {
        let facts_of = job();
        let facts = Facts::of(&facts_of);
        for source in [
            "int(job.labels.env) > 1",
            "1 / job.step_index > 0",
            "job.risk_tags[5] == 'x'",
            "9223372036854775807 + 1 > 0",
        ] {
            let said = Condition::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"));
            assert!(said.holds(&facts).is_err(), "{source}");
        }
    }
}
