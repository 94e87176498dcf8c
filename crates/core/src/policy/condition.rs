//! Conditions: a CEL expression over a job's facts (`when:`), checked when the policy is loaded.
//!
//! The checker knows the type of every fact, so a rule that compares a label with a number, or asks for a
//! fact that does not exist, is refused at load and not at three in the morning. A label that a job does
//! not have reads as the empty text.

use super::facts::{Facts, NAMES};
use crate::cost::CostLimit;
use crate::expression::{Expression, ValueKind};

/// Characters of one condition.
pub const LEN_MAX: usize = 1024;

/// A condition that was found to be one: it says yes or no of every job, or that it cannot.
#[derive(Debug, Clone)]
pub struct Condition(Expression);

impl Condition {
    pub fn parse(source: &str) -> Result<Self, String> {
        let expression = Expression::parse(source, &*NAMES, LEN_MAX)?;
        expression.check_cost(CostLimit::VERDICT)?;
        match expression.kind() {
            ValueKind::Truth => Ok(Self(expression)),
            other => Err(format!("is {other}, not yes or no")),
        }
    }

    pub fn source(&self) -> &str {
        self.0.source()
    }

    /// How many steps it takes, at least.
    pub fn steps(&self) -> u64 {
        self.0.steps()
    }

    /// What it says, or why it cannot say: a division by zero, a text that is no number.
    pub fn holds(&self, facts: &Facts<'_>) -> Result<bool, String> {
        self.0.holds(&facts.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Meter;
    use crate::request::Request;

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
        let meter = Meter::new(CostLimit::VERDICT);
        let facts = Facts::of(&facts_of, &meter);
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
        let meter = Meter::new(CostLimit::VERDICT);
        let facts = Facts::of(&facts_of, &meter);
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
        let meter = Meter::new(CostLimit::VERDICT);
        let facts = Facts::of(&facts_of, &meter);
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

    #[test]
    fn a_condition_that_cannot_be_afforded_is_refused_at_load() {
        let mut nested = "true".to_owned();
        for level in 0..12 {
            nested = format!("[0,0,0,0].all(x{level}, {nested})");
        }
        let error = Condition::parse(&nested).expect_err("four to the twelfth steps");
        assert!(error.contains("too expensive"), "{error}");
    }

    #[test]
    fn a_condition_whose_cost_is_in_its_values_says_nothing() {
        let mut request = job();
        request.needs.risk_tags = vec!["x".to_owned(); 64];
        let meter = Meter::new(CostLimit::VERDICT);
        let facts = Facts::of(&request, &meter);
        let all = "job.risk_tags.all(a, job.risk_tags.all(b, job.risk_tags.all(c, a == b && b == c)))";
        let error = Condition::parse(all).unwrap().holds(&facts).expect_err("64 to the third");
        assert!(error.contains("too expensive"), "{error}");
        assert!(meter.exceeded().is_some());
    }

    #[test]
    fn nested_labels_do_not_grow_when_they_are_checked() {
        let (depth, request) = (30, job());
        let nested = format!("{}'env'{} == ''", "job.labels[".repeat(depth), "]".repeat(depth));
        let meter = Meter::new(CostLimit::VERDICT);
        let nested = Condition::parse(&nested).unwrap();
        assert_eq!(nested.holds(&Facts::of(&request, &meter)), Ok(true));
        assert!(meter.steps() < 200, "{}", meter.steps());
    }
}
