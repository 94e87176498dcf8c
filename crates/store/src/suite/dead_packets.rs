//! Packets that nobody could deal with: kept once, listed newest first, and never too many.

use super::ManualClock;
use crate::{AboutPacket, DEAD_PACKET_KEEP_MS, DEAD_PACKETS_MAX, DeadPacket, Store};
use bytes::Bytes;

pub async fn run(store: &dyn Store, clock: &ManualClock) {
    a_packet_is_kept_as_it_came(store, clock).await;
    one_that_is_buried_again_is_still_one(store, clock).await;
    pages_neither_skip_nor_repeat(store, clock).await;
    of_too_many_the_oldest_go(store, clock).await;
    they_go_when_their_time_is_over(store, clock).await;
}

pub async fn a_packet_is_kept_as_it_came(store: &dyn Store, clock: &ManualClock) {
    let content: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    let packet = packet("STREAM:1", &content.into(), clock);
    store.bury(packet.clone()).await.unwrap();
    assert_eq!(store.buried(None, 1).await.unwrap().items, [packet]);
}

pub async fn one_that_is_buried_again_is_still_one(store: &dyn Store, clock: &ManualClock) {
    let first = packet("STREAM:2", &Bytes::from_static(b"a"), clock);
    let mut second = first.clone();
    second.about.deliveries += 1;
    store.bury(first).await.unwrap();
    store.bury(packet("STREAM:3", &Bytes::new(), clock)).await.unwrap();
    store.bury(second.clone()).await.unwrap();
    let items = store.buried(None, 100).await.unwrap().items;
    assert_eq!(items[0], second, "what was said last comes first");
    assert_eq!(items.iter().filter(|packet| packet.key == "STREAM:2").count(), 1);
}

pub async fn pages_neither_skip_nor_repeat(store: &dyn Store, clock: &ManualClock) {
    for number in 10..17 {
        store.bury(packet(&format!("STREAM:{number}"), &Bytes::new(), clock)).await.unwrap();
    }
    let all = store.buried(None, 100).await.unwrap();
    assert_eq!((all.items[0].key.as_str(), all.next), ("STREAM:16", None));
    let (mut cursor, mut paged) = (None, Vec::new());
    loop {
        let page = store.buried(cursor, 2).await.unwrap();
        paged.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(paged, all.items);
}

pub async fn of_too_many_the_oldest_go(store: &dyn Store, clock: &ManualClock) {
    for number in 0..DEAD_PACKETS_MAX + 3 {
        store.bury(packet(&format!("MANY:{number}"), &Bytes::new(), clock)).await.unwrap();
    }
    let (mut cursor, mut keys) = (None, Vec::new());
    loop {
        let page = store.buried(cursor, 500).await.unwrap();
        keys.extend(page.items.into_iter().map(|packet| packet.key));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let newest: Vec<String> =
        (3..DEAD_PACKETS_MAX + 3).rev().map(|number| format!("MANY:{number}")).collect();
    assert_eq!(keys, newest);
}

pub async fn they_go_when_their_time_is_over(store: &dyn Store, clock: &ManualClock) {
    clock.advance(DEAD_PACKET_KEEP_MS - 1);
    assert!(!store.buried(None, 1).await.unwrap().items.is_empty());
    clock.advance(1);
    assert!(store.buried(None, 1).await.unwrap().items.is_empty());
    store.bury(packet("STREAM:4", &Bytes::new(), clock)).await.unwrap();
    assert_eq!(store.buried(None, 100).await.unwrap().items.len(), 1);
}

fn packet(key: &str, content: &Bytes, clock: &ManualClock) -> DeadPacket {
    let about = AboutPacket {
        subject: "sys.job.submit".to_owned(),
        reason: "it is not a packet".to_owned(),
        deliveries: 4,
        len: 0,
        buried_at: clock.now(),
    };
    DeadPacket::new(key, about, content)
}
