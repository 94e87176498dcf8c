//! Workflows, in the reference's shapes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SavedReply {
    pub id: String,
    /// Counts the versions of this workflow.
    pub version: u32,
}

/// A workflow as it was saved: its document, and which version of it this is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkflowDetail {
    /// The fields of the document, `version` being the one the server counts.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub document: Value,
    pub saved_at: String,
    pub saved_by: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct WorkflowQuery {
    /// 50 unless told, at most 500.
    pub limit: Option<String>,
    /// The id that the page before ended with.
    pub after: Option<String>,
    /// Operators only.
    pub tenant: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct VersionQuery {
    /// The last one unless told.
    pub version: Option<u32>,
    /// Operators only.
    pub tenant: Option<String>,
}
