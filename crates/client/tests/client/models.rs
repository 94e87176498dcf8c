//! The models against `docs/openapi.json`: whatever a server may answer can be read, and nothing is read that no server
//! answers.

use reveille_api_types as shape;
use reveille_client::models;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::fmt::Debug;

/// How much of a schema an answer has: what it must have, or all that it can.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Shortest,
    Fullest,
}

struct Document(Value);

impl Document {
    fn new() -> Self {
        Self(serde_json::from_str(include_str!("../../../../docs/openapi.json")).unwrap())
    }

    fn example(&self, name: &str, answer: Answer) -> Value {
        let schema = &self.0["components"]["schemas"][name];
        assert!(!schema.is_null(), "the document has no {name}");
        self.example_of(schema, answer)
    }

    fn example_of(&self, schema: &Value, answer: Answer) -> Value {
        if let Some(reference) = schema["$ref"].as_str() {
            return self.example_of(self.0.pointer(&reference[1..]).unwrap(), answer);
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let parts = parts.iter().map(|part| self.example_of(part, answer));
            return parts.flat_map(|part| part.as_object().unwrap().clone()).collect();
        }
        if let Some(ways) = schema["oneOf"].as_array() {
            let is_null = |way: &&Value| way["type"] == "null";
            return match ways.iter().find(is_null) {
                Some(_) if answer == Answer::Shortest => Value::Null,
                _ => self.example_of(ways.iter().find(|way| !is_null(way)).unwrap(), answer),
            };
        }
        let kind = &schema["type"];
        if kind.as_array().is_some_and(|kinds| answer == Answer::Shortest && kinds.contains(&json!("null"))) {
            return Value::Null;
        }
        match kind.as_str().or_else(|| kind[0].as_str()) {
            Some("string") => schema["enum"].get(0).cloned().unwrap_or(json!("text")),
            Some("integer") => json!(1),
            Some("number") => json!(0.5),
            Some("boolean") => json!(true),
            Some("array") if answer == Answer::Shortest => json!([]),
            Some("array") => json!([self.example_of(&schema["items"], answer)]),
            Some("object") => Value::Object(self.members(schema, answer)),
            // Anything may be there.
            _ => json!("anything"),
        }
    }

    fn members(&self, schema: &Value, answer: Answer) -> Map<String, Value> {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let is_there = |name: &str| answer == Answer::Fullest || required.contains(&json!(name));
        let properties = schema["properties"].as_object().into_iter().flatten();
        let mut members: Map<String, Value> = properties
            .filter(|(name, _)| is_there(name))
            .map(|(name, schema)| (name.clone(), self.example_of(schema, answer)))
            .collect();
        if answer == Answer::Fullest && schema["additionalProperties"].is_object() {
            members.insert("name".to_owned(), self.example_of(&schema["additionalProperties"], answer));
        }
        members
    }

    fn is_read_as<T: DeserializeOwned + Debug>(&self) {
        let name = std::any::type_name::<T>().rsplit("::").next().unwrap().trim_end_matches("<'_>");
        for answer in [Answer::Shortest, Answer::Fullest] {
            let example = self.example(name, answer);
            let read: T = serde_json::from_value(example.clone())
                .unwrap_or_else(|error| panic!("{name}: {error} in {example}"));
            let read = format!("{read:?}");
            assert!(answer == Answer::Shortest || !read.contains("None"), "no answer fills all of {read}");
        }
    }
}

#[test]
fn every_model_reads_what_the_document_says() {
    let document = Document::new();
    document.is_read_as::<models::Approval>();
    document.is_read_as::<models::Approved>();
    document.is_read_as::<models::Rejected>();
    document.is_read_as::<models::Cancelled>();
    document.is_read_as::<models::Decision>();
    document.is_read_as::<models::Explained>();
    document.is_read_as::<models::JobDetail>();
    document.is_read_as::<models::JobRecord>();
    document.is_read_as::<models::OutputSafety>();
    document.is_read_as::<models::Progress>();
    document.is_read_as::<models::SubmitReply>();
    document.is_read_as::<models::TimelineEntry>();
    document.is_read_as::<models::Refused>();
    document.is_read_as::<models::Taken>();
    document.is_read_as::<models::Rounds>();
    document.is_read_as::<models::RunDetail>();
    document.is_read_as::<models::RunRecord>();
    document.is_read_as::<models::StartedReply>();
    document.is_read_as::<models::StepRecord>();
    document.is_read_as::<models::Drained>();
    document.is_read_as::<models::Undrained>();
    document.is_read_as::<models::Worker>();
}

/// What has no call of its own here is read by whoever asks for it with [`reveille_client::Client::get`] and the like.
#[test]
fn every_other_answer_can_be_read_in_the_shape_that_the_server_gives_it() {
    let document = Document::new();
    document.is_read_as::<shape::approval::ApprovalContext>();
    document.is_read_as::<shape::approval::ApprovalPage>();
    document.is_read_as::<shape::audit::TrailPage>();
    document.is_read_as::<shape::audit::Verified>();
    document.is_read_as::<shape::dead_letter::DeadLetterPage>();
    document.is_read_as::<shape::dead_letter::DeadLetterStats>();
    document.is_read_as::<shape::dead_letter::RetriedMany>();
    document.is_read_as::<shape::dead_packet::DeadPacketPage>();
    document.is_read_as::<shape::error::Error>();
    document.is_read_as::<shape::event::Fleet>();
    document.is_read_as::<shape::event::JobNews<'_>>();
    document.is_read_as::<shape::event::RunNews<'_>>();
    document.is_read_as::<shape::event::WorkerNews<'_>>();
    document.is_read_as::<shape::event::WorkspaceNews<'_>>();
    document.is_read_as::<shape::graph::GraphDetail>();
    document.is_read_as::<shape::job::JobPage>();
    document.is_read_as::<shape::key::CreatedKey>();
    document.is_read_as::<shape::key::KeyList>();
    document.is_read_as::<shape::overview::Overview>();
    document.is_read_as::<shape::policy::DecisionRecord>();
    document.is_read_as::<shape::policy::PolicyAnswer>();
    document.is_read_as::<shape::policy::ReplayReply>();
    document.is_read_as::<shape::quarantine::HeldPage>();
    document.is_read_as::<shape::quarantine::ResolvedReply>();
    document.is_read_as::<shape::run::RunPage>();
    document.is_read_as::<shape::run::TimelineLine>();
    document.is_read_as::<shape::system::System>();
    document.is_read_as::<shape::worker::PoolList>();
    document.is_read_as::<shape::worker::WorkerPage>();
    document.is_read_as::<shape::workflow::SavedReply>();
}
