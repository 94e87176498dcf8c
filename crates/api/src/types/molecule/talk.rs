//! What workspaces say to whoever watches.

use crate::molecule::refusal::MoleculeRefusal;
use reveille_core::presence::workspace::Workspace;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

const MESSAGE_LEN_MAX: usize = 16 * 1024;
const ATTACHMENTS_MAX: usize = 20;
/// The longest name, type or address of an attachment.
const WORD_LEN_MAX: usize = 2_048;
/// What one activity may take, as JSON.
const ACTIVITY_LEN_MAX: usize = 16 * 1024;

#[derive(Deserialize, ToSchema)]
pub struct Notify {
    /// At most 16 KiB.
    #[schema(value_type = String, required = true)]
    message: Option<String>,
    /// At most 20.
    #[serde(default)]
    attachments: Option<Vec<Attachment>>,
}

#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Attachment {
    uri: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

impl Attachment {
    fn is_short(&self) -> bool {
        [&self.uri, &self.name].into_iter().chain(&self.mime_type).all(|word| word.len() <= WORD_LEN_MAX)
    }
}

impl Notify {
    pub fn payload(self, workspace: &Workspace) -> Result<Value, MoleculeRefusal> {
        let message = self.message.filter(|message| !message.is_empty());
        let message =
            message.ok_or_else(|| MoleculeRefusal::bad("message is required").with("field", "message"))?;
        if message.len() > MESSAGE_LEN_MAX {
            return Err(too_long("message", MESSAGE_LEN_MAX));
        }
        let attachments = self.attachments.unwrap_or_default();
        if attachments.len() > ATTACHMENTS_MAX || !attachments.iter().all(Attachment::is_short) {
            return Err(too_long("attachments", WORD_LEN_MAX));
        }
        let mut payload = json!({ "message": message, "workspace_id": workspace.id, "name": workspace.name });
        if !attachments.is_empty() {
            payload["attachments"] = json!(attachments);
        }
        Ok(payload)
    }
}

/// What a workspace did. Any other field is passed on.
#[derive(ToSchema)]
#[schema(as = Activity)]
#[expect(dead_code, reason = "it describes; Activity is what is read")]
pub struct ActivityBody {
    activity_type: String,
    /// The workspace itself, if it is given.
    source_id: Option<String>,
}

#[derive(Deserialize)]
pub struct Activity {
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl Activity {
    pub fn payload(self, workspace: &Workspace) -> Result<Value, MoleculeRefusal> {
        let text = |key: &str| self.fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        if text("activity_type").is_none() {
            return Err(MoleculeRefusal::bad("activity_type is required").with("field", "activity_type"));
        }
        if text("source_id").is_some_and(|source| source != workspace.id.as_str()) {
            return Err(MoleculeRefusal::forbidden("source_id does not match the workspace"));
        }
        let payload = Value::Object(self.fields);
        if payload.to_string().len() > ACTIVITY_LEN_MAX {
            return Err(too_long("activity", ACTIVITY_LEN_MAX));
        }
        Ok(payload)
    }
}

fn too_long(field: &str, len_max: usize) -> MoleculeRefusal {
    MoleculeRefusal::bad(format!("{field}: is longer than {len_max} bytes")).with("field", field)
}
