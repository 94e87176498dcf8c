//! Sentences that try to divert a model from its task.
//!
//! These are common phrases, not proof: rewording evades them. Policy weighs them by confidence.

use super::Severity::{High, Medium};
use super::pattern::ScanPattern;

pub(super) fn patterns() -> Vec<ScanPattern> {
    let table: [(&str, _, u8, &str); 8] = [
        (
            "ignore_instructions",
            High,
            90,
            r"(?i)\b(?:ignore|disregard|forget|override|skip)\s+(?:all\s+|any\s+|every\s+)?(?:of\s+)?(?:the\s+|your\s+|my\s+|these\s+|those\s+)?(?:previous|prior|above|earlier|preceding|existing|original|system)\s+(?:instructions?|prompts?|rules|directions|guidelines|commands|context)\b",
        ),
        (
            "new_instructions",
            Medium,
            70,
            r"(?i)\b(?:your|here are (?:your|the)|follow (?:these|the))\s+new\s+(?:instructions|rules|task|system prompt)\b|\bnew\s+(?:system\s+)?instructions\s*:",
        ),
        (
            "role_override",
            Medium,
            75,
            r"(?i)\byou\s+are\s+(?:now|no\s+longer)\s+(?:an?\s+|the\s+|in\s+|bound\s+)|\bfrom\s+now\s+on,?\s+you\s+(?:are|will|must)\b|\b(?:pretend|act)\s+(?:to\s+be|as\s+if|like|as)\s+(?:you\s+(?:are|were|have)\s+)?(?:an?\s+)?(?:unrestricted|unfiltered|uncensored|evil|without\s+restrictions?)",
        ),
        (
            "reveal_prompt",
            High,
            85,
            r"(?i)\b(?:reveal|show|print|repeat|output|display|leak|tell\s+me)\s+(?:me\s+)?(?:all\s+)?(?:of\s+)?(?:the\s+|your\s+)(?:full\s+|entire\s+|exact\s+)?(?:(?:system|hidden|initial|secret|original)\s+(?:prompt|instructions?|message)|prompt\s+verbatim)\b",
        ),
        (
            "role_marker",
            High,
            85,
            r"(?i)<\|(?:im_start|im_end|system|endoftext|start_header_id|eot_id)\|>|\[/?INST\]|<</?SYS>>|(?m:^#{2,3}\s*system\s*:)",
        ),
        (
            "jailbreak",
            High,
            85,
            r"(?i)\bdo\s+anything\s+now\b|\bjailbreak(?:\s+mode|\s+prompt|\s+yourself)\b|\b(?:enable|enter|activate|switch\s+to)\s+(?:developer|debug|god|dan|jailbreak|unrestricted)\s+mode\b",
        ),
        (
            "disable_safety",
            High,
            80,
            r"(?i)\b(?:bypass|disable|turn\s+off|circumvent|without)\s+(?:all\s+|any\s+)?(?:of\s+)?(?:the\s+|your\s+)?(?:safety|content|security|ethical|moderation)\s+(?:filters?|guidelines|restrictions?|polic(?:y|ies)|checks?|rules|guardrails)\b",
        ),
        (
            "keep_from_user",
            High,
            80,
            r"(?i)\b(?:do\s+not|don'?t|never|without)\s+(?:tell|telling|inform|informing|mention|mentioning|alert|alerting|reveal|revealing)\s+(?:this\s+|it\s+|anything\s+)?(?:to\s+)?(?:the\s+)?(?:user|human|operator)s?\b",
        ),
    ];
    let built = table
        .map(|(name, severity, confidence, regex)| ScanPattern::built_in(name, severity, confidence, regex));
    built.into()
}
