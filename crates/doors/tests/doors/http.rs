//! Web pages at the doors: a browser can be made to write to any port, so whoever speaks HTTP is cut off at once.

use crate::memory_blobs::MemoryBlobs;
use crate::support::{Door, Locked, Raw, open};
use reveille_bus::Bus;
use reveille_doors::nats::NatsLimits;
use reveille_doors::resp::RespLimits;

const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

#[tokio::test]
async fn a_web_page_cannot_write_through_the_resp_door() {
    let door = Door::open_resp().await;
    let mut requests: Vec<String> =
        METHODS.iter().map(|method| format!("{method} / HTTP/1.1\r\nHost: localhost:6379\r\n\r\n")).collect();
    requests.extend(
        ["post /\r\n", "Host: localhost\r\n", "host:\r\n", "get /x http/1.0\r\n", "*1\r\n$4\r\nPOST\r\n"]
            .map(str::to_owned),
    );
    for request in requests {
        let mut page = Raw::connect(&door).await;
        page.send(format!("{request}SET ctx:forged x\r\n")).await;
        assert_eq!(page.rest().await, "", "{request}");
        let mut client = Raw::connect(&door).await;
        client.ask("EXISTS ctx:forged\r\n", ":0\r\n").await;
    }
}

#[tokio::test]
async fn a_web_page_is_cut_off_before_it_has_shown_a_key_too() {
    let door = Door::resp(Locked, MemoryBlobs::default(), RespLimits::default()).await;
    let mut page = Raw::connect(&door).await;
    page.send("POST / HTTP/1.1\r\nAUTH right\r\nSET ctx:forged x\r\n").await;
    assert_eq!(page.rest().await, "");
}

#[tokio::test]
async fn what_only_mentions_http_is_a_command_like_any_other() {
    let door = Door::open_resp().await;
    let mut client = Raw::connect(&door).await;
    client.ask("*3\r\n$3\r\nSET\r\n$5\r\nctx:1\r\n$8\r\nHTTP/1.1\r\n", "+OK\r\n").await;
    client.ask("SET ctx:2 POST\r\n", "+OK\r\n").await;
    client.ask("GET ctx:1\r\n", "$8\r\nHTTP/1.1\r\n").await;
}

#[tokio::test]
async fn a_web_page_cannot_publish_through_the_nats_door() {
    for door in [Door::open_nats().await, Door::nats(Locked, NatsLimits::default()).await] {
        let mut ours = door.bus.subscribe("sys.job.submit", None).await.unwrap();
        for method in METHODS {
            let mut page = Raw::connect(&door).await;
            page.line().await;
            page.send(format!("{method} / HTTP/1.1\r\nCONNECT {{}}\r\nPUB sys.job.submit 1\r\nx\r\n")).await;
            assert_eq!(page.rest().await, "-ERR 'Unknown Protocol Operation'\r\n", "{method}");
        }
        assert!(ours.try_recv().is_none());
    }
}

#[tokio::test]
async fn those_who_came_before_a_web_page_stay() {
    let door = Door::resp(open(), MemoryBlobs::default(), RespLimits::default()).await;
    let mut client = Raw::connect(&door).await;
    client.ask("SET ctx:1 x\r\n", "+OK\r\n").await;
    let mut page = Raw::connect(&door).await;
    page.send("POST / HTTP/1.1\r\n").await;
    assert_eq!(page.rest().await, "");
    client.ask("GET ctx:1\r\n", "$1\r\nx\r\n").await;
}
