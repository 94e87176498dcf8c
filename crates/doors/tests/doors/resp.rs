//! The RESP door, byte for byte.

use crate::memory_blobs::MemoryBlobs;
use crate::support::{Door, Locked, Raw, open};
use reveille_doors::resp::RespLimits;

#[tokio::test]
async fn blobs_are_set_read_counted_and_deleted() {
    let door = Door::open_resp().await;
    let mut client = Raw::connect(&door).await;
    for (command, answer) in [
        ("GET ctx:1\r\n", "$-1\r\n"),
        ("*3\r\n$3\r\nSET\r\n$5\r\nctx:1\r\n$4\r\na\r\nb\r\n", "+OK\r\n"),
        ("*2\r\n$3\r\nGET\r\n$5\r\nctx:1\r\n", "$4\r\na\r\nb\r\n"),
        ("SET ctx:1 other NX\r\n", "$-1\r\n"),
        ("TTL ctx:1\r\n", ":86400\r\n"),
        ("SET res:1 x PX 1499\r\n", "+OK\r\n"),
        ("TTL res:1\r\n", ":1\r\n"),
        ("PTTL res:1\r\n", ":1499\r\n"),
        ("PTTL res:2\r\n", ":-2\r\n"),
        ("EXISTS ctx:1 res:1 res:2 res:1\r\n", ":3\r\n"),
        ("DEL ctx:1 res:1 res:2\r\n", ":2\r\n"),
        ("EXISTS ctx:1\r\n", ":0\r\n"),
    ] {
        client.ask(command, answer).await;
    }
}

#[tokio::test]
async fn a_ttl_beyond_the_maximum_is_shortened() {
    let door = Door::open_resp().await;
    let mut client = Raw::connect(&door).await;
    for set in [
        "SET ctx:1 x EX 604801",
        "SET ctx:1 x EX 31536000",
        "SET ctx:1 x PX 9223372036854775807",
        "SETEX ctx:1 31536000 x",
        "PSETEX ctx:1 604800001 x",
    ] {
        client.ask(&format!("{set}\r\n"), "+OK\r\n").await;
        client.ask("PTTL ctx:1\r\n", ":604800000\r\n").await;
    }
    client.ask("SET ctx:1 x EX 604799\r\nTTL ctx:1\r\n", "+OK\r\n:604799\r\n").await;

    // A server that keeps blobs longer by itself lets clients ask for as long.
    let days_30 = RespLimits { blob_ttl_ms: 30 * 86_400_000, ..RespLimits::default() };
    let door = Door::resp(open(), MemoryBlobs::default(), days_30).await;
    let mut client = Raw::connect(&door).await;
    client.ask("SET ctx:1 x EX 31536000\r\nTTL ctx:1\r\n", "+OK\r\n:2592000\r\n").await;
}

#[tokio::test]
async fn a_command_may_come_byte_by_byte() {
    let door = Door::open_resp().await;
    let mut client = Raw::connect(&door).await;
    client.send_byte_by_byte("*3\r\n$3\r\nSET\r\n$5\r\nctx:1\r\n$5\r\nhello\r\nGET ctx:1\r\n").await;
    client.expect("+OK\r\n$5\r\nhello\r\n").await;
}

#[tokio::test]
async fn nothing_is_said_differently_in_each_version() {
    let door = Door::open_resp().await;
    let mut client = Raw::connect(&door).await;
    client.ask("GET ctx:1\r\n", "$-1\r\n").await;
    client.send("HELLO 3 SETNAME me\r\n").await;
    client
        .expect("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n$5\r\nproto\r\n:3\r\n")
        .await;
    client
        .expect("$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n")
        .await;
    client.expect("$7\r\nmodules\r\n*0\r\n").await;
    client.ask("GET ctx:1\r\n", "_\r\n").await;
    client.ask("CLIENT GETNAME\r\n", "$2\r\nme\r\n").await;
    client.ask("CLIENT ID\r\n", ":1\r\n").await;
    client.send("HELLO 2\r\n").await;
    client.expect("*14\r\n").await;
}

#[tokio::test]
async fn a_pipeline_is_answered_in_order_even_on_one_key() {
    let door = Door::open_resp().await;
    let mut client = Raw::connect(&door).await;
    client
        .ask(
            "GET ctx:1\r\nSET ctx:1 a\r\nGET ctx:1\r\nSET ctx:1 b\r\nSET ctx:2 c\r\nNOPE\r\nGET ctx:1\r\nGET ctx:2\r\n\
             DEL ctx:1 ctx:2\r\nGET ctx:2\r\nPING\r\n",
            "$-1\r\n+OK\r\n$1\r\na\r\n+OK\r\n+OK\r\n-ERR unknown command 'NOPE'; this door to the blobs of jobs knows \
             AUTH, CLIENT, DEL, ECHO, EXISTS, GET, HELLO, PING, PSETEX, PTTL, QUIT, SELECT, SET, SETEX, TTL\r\n$1\r\nb\r\n$1\r\nc\r\n\
             :2\r\n$-1\r\n+PONG\r\n",
        )
        .await;
}

#[tokio::test]
async fn pipelined_writes_share_one_commit() {
    let blobs = MemoryBlobs::committing_together(64);
    let door = Door::resp(open(), blobs, RespLimits::default()).await;
    let mut client = Raw::connect(&door).await;
    let pipeline: String = (0..64).map(|number| format!("SET res:{number} x\r\n")).collect();
    client.ask(&pipeline, &"+OK\r\n".repeat(64)).await;
}

#[tokio::test]
async fn many_large_answers_come_whole_and_in_order() {
    let door = Door::open_resp().await;
    let mut client = Raw::connect(&door).await;
    let value = "v".repeat(100_000);
    for number in 0..20 {
        let set = format!("*3\r\n$3\r\nSET\r\n$6\r\nart:{number:02}\r\n$100000\r\n{value}\r\n");
        client.ask(&set, "+OK\r\n").await;
    }
    let pipeline: String = (0..20).map(|number| format!("GET art:{number:02}\r\n")).collect();
    client.ask(&pipeline, &format!("$100000\r\n{value}\r\n").repeat(20)).await;
}

#[tokio::test]
async fn the_largest_blob_passes_and_one_byte_more_does_not() {
    let door = Door::open_resp().await;
    let mut client = Raw::connect(&door).await;
    let len = reveille_store::BLOB_LEN_MAX;
    let mut set = format!("*3\r\n$3\r\nSET\r\n$5\r\nart:1\r\n${len}\r\n").into_bytes();
    set.resize(set.len() + len, b'x');
    set.extend_from_slice(b"\r\n");
    client.send(set).await;
    client.expect("+OK\r\n").await;
    client.send(format!("*3\r\n$3\r\nSET\r\n$5\r\nart:1\r\n${}\r\n", len + 1)).await;
    client.send(vec![b'x'; len + 1]).await;
    let rest = client.rest().await;
    assert!(rest.starts_with("-ERR Protocol error: invalid bulk length"), "{rest}");
}

#[tokio::test]
async fn a_locked_door_needs_the_right_secret() {
    let door = Door::resp(Locked, MemoryBlobs::default(), RespLimits::default()).await;
    let mut client = Raw::connect(&door).await;
    client.ask("GET ctx:1\r\n", "-NOAUTH Authentication required.\r\n").await;
    client.ask("NOPE\r\n", "-NOAUTH Authentication required.\r\n").await;
    client.ask("PING\r\n", "-NOAUTH Authentication required.\r\n").await;
    client.send("HELLO 3\r\n").await;
    assert!(client.line().await.starts_with("-NOAUTH HELLO must be called"));
    client.send("HELLO 3 AUTH default wrong\r\n").await;
    assert!(client.line().await.starts_with("-WRONGPASS"));
    client.ask("AUTH default right\r\n", "+OK\r\n").await;
    client.ask("GET ctx:1\r\n", "$-1\r\n").await;

    let mut client = Raw::connect(&door).await;
    client.send("HELLO 3 AUTH default right\r\n").await;
    client.expect("%7\r\n").await;
}

#[tokio::test]
async fn who_is_not_let_in_cannot_send_much() {
    let door = Door::resp(Locked, MemoryBlobs::default(), RespLimits::default()).await;
    let mut client = Raw::connect(&door).await;
    client.send("*2\r\n$4\r\nAUTH\r\n$1000000\r\n").await;
    assert_eq!(client.rest().await, "-ERR Protocol error: the command is too large\r\n");
}

#[tokio::test]
async fn a_secret_that_is_not_known_is_refused_even_at_an_open_door() {
    let door = Door::open_resp().await;
    let mut client = Raw::connect(&door).await;
    client.send("AUTH mistyped\r\n").await;
    assert!(client.line().await.starts_with("-WRONGPASS"));
}

#[tokio::test]
async fn a_protocol_error_is_told_after_the_answers_before_it() {
    let door = Door::open_resp().await;
    let mut client = Raw::connect(&door).await;
    client.send("SET ctx:1 x\r\n*1\r\n:1\r\n").await;
    assert_eq!(client.rest().await, "+OK\r\n-ERR Protocol error: expected '$'\r\n");
}

#[tokio::test]
async fn quit_says_goodbye_and_connections_are_limited() {
    let door = Door::resp(
        open(),
        MemoryBlobs::default(),
        RespLimits { connections_max: 1, ..RespLimits::default() },
    )
    .await;
    let mut client = Raw::connect(&door).await;
    client.ask("PING hi\r\n", "$2\r\nhi\r\n").await;
    let mut second = Raw::connect(&door).await;
    assert_eq!(second.rest().await, "-ERR max number of clients reached\r\n");
    client.send("QUIT\r\nPING\r\n").await;
    assert_eq!(client.rest().await, "+OK\r\n");
    door.close().await;
}
