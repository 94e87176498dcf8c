//! Where spans go: to the collector that the settings name, or nowhere.

use crate::config::TracingSection;
use anyhow::Result;
use reveille_a2a::{AddressRules, HttpA2aClient};
use reveille_traces::{Nowhere, Otlp, Traces};
use std::sync::Arc;

pub fn start(settings: &TracingSection) -> Result<Arc<dyn Traces>> {
    let Some(collector) = settings.collector()? else { return Ok(Arc::new(Nowhere)) };
    // The operator wrote the address, so it may be any; collectors are mostly next door.
    let courier = Arc::new(HttpA2aClient::new(AddressRules::anywhere()));
    tracing::info!(url = collector.url, service = collector.service_name, "spans of ended jobs are exported");
    Ok(Arc::new(Otlp::start(collector, courier)))
}
