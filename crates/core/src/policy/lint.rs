//! What a careful reader would remark on in a policy that can be used.

use super::Decision;
use super::rule::Rule;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// The second rule never decides: the first takes everything that it would take.
    Unreachable { rule: String, hidden_by: String },
    /// Whatever no rule speaks of runs.
    AllowsByDefault,
    /// There is no rule that lets anything run, and the default does not either.
    AllowsNothing,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { rule, hidden_by } => {
                write!(
                    f,
                    "rule {rule} never decides: {hidden_by}, which is asked before, takes all it would take"
                )
            }
            Self::AllowsByDefault => write!(f, "what no rule speaks of is allowed (default_decision)"),
            Self::AllowsNothing => {
                write!(f, "nothing is ever allowed: no rule does, and the default does not")
            }
        }
    }
}

/// `tenants_allow` says whether tenants' own lists of topics allow something.
pub fn remarks(rules: &[Rule], default_decision: Decision, tenants_allow: bool) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        if let Some(earlier) = rules[..index].iter().find(|earlier| earlier.hides(rule)) {
            remarks.push(Remark::Unreachable { rule: rule.id.clone(), hidden_by: earlier.id.clone() });
        }
    }
    if default_decision.lets_run() {
        remarks.push(Remark::AllowsByDefault);
    } else if !tenants_allow && rules.iter().all(|rule| rule.decision == Decision::Deny) {
        remarks.push(Remark::AllowsNothing);
    }
    remarks
}
