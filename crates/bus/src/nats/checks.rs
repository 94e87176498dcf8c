//! Checks of a NATS server that change nothing there.

use super::options::NatsOptions;
use super::{NatsOpenError, connect, streams::Streams};
use crate::nats::link::ConnectionLog;
use async_nats::jetstream;
use reveille_core::finding::Finding;
use std::sync::Arc;

/// Our largest packet, with room for its headers.
const PAYLOAD_MIN: usize = 1024 * 1024;

/// Checks version, limits, streams and their backlog.
pub async fn examine(options: &NatsOptions) -> Result<Vec<Finding>, NatsOpenError> {
    let client = connect(options, &Arc::new(ConnectionLog::default())).await?;
    let info = client.server_info();
    let mut found = vec![Finding::Good(format!("version {}", info.version))];
    let payload = format!("max_payload {}", info.max_payload);
    found.push(if info.max_payload >= PAYLOAD_MIN {
        Finding::Good(payload)
    } else {
        Finding::Risky(format!(
            "{payload}: jobs larger than that are refused; at least {PAYLOAD_MIN} is usual"
        ))
    });
    if !info.jetstream {
        found.push(Finding::Bad("JetStream is off; start it with --jetstream".to_owned()));
        return Ok(found);
    }
    let context = jetstream::new(client);
    for name in Streams::new(options).names() {
        found.push(match context.get_stream(name).await {
            Ok(stream) => {
                stream_words(name, &stream.cached_info().config, stream.cached_info().state.messages)
            }
            Err(_) => Finding::Good(format!("stream {name}: the first server makes it")),
        });
    }
    found.push(Finding::Risky(
        "JetStream writes to its disk now and then: a machine that dies may lose up to 2 minutes of what it kept, \
         unless sync_interval is `always` (2.10) or a stream has three copies"
            .to_owned(),
    ));
    Ok(found)
}

fn stream_words(name: &str, config: &jetstream::stream::Config, messages: u64) -> Finding {
    let words = format!("stream {name}: {messages} messages wait, {} of each", copies(config.num_replicas));
    if config.num_replicas < 2 { Finding::Risky(words) } else { Finding::Good(words) }
}

fn copies(count: usize) -> String {
    if count < 2 { "one copy".to_owned() } else { format!("{count} copies") }
}
