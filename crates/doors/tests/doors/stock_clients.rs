//! The clients that people already have: `async-nats` and `redis`.

use crate::memory_blobs::MemoryBlobs;
use crate::support::{Door, Locked};
use futures_util::StreamExt;
use futures_util::future::join_all;
use redis::AsyncCommands;
use reveille_bus::{Bus, Message};
use reveille_doors::nats::NatsLimits;
use reveille_doors::resp::RespLimits;

async fn nats(door: &Door, name: &str) -> async_nats::Client {
    async_nats::ConnectOptions::new().name(name).connect(door.address.to_string()).await.unwrap()
}

#[tokio::test]
async fn async_nats_publishes_and_subscribes() {
    let door = Door::open_nats().await;
    let client = nats(&door, "worker-1").await;
    let mut jobs = client.subscribe("worker.worker-1.jobs").await.unwrap();
    let mut heartbeats = door.bus.subscribe("sys.heartbeat", None).await.unwrap();
    client.publish("sys.heartbeat", "alive".into()).await.unwrap();
    assert_eq!(heartbeats.recv().await.unwrap().message.payload, "alive");

    let heard = door.bus.publish(Message::new("worker.worker-1.jobs", "job")).await.unwrap();
    let reveille_bus::DeliveryReport::Somebody { by: Some(by) } = heard else { panic!("{heard:?}") };
    assert_eq!(by.name.as_deref(), Some("worker-1"));
    assert_eq!(jobs.next().await.unwrap().payload, "job");
}

#[tokio::test]
async fn async_nats_requests_and_learns_that_nobody_answers() {
    let door = Door::open_nats().await;
    let (asker, service) = (nats(&door, "asker").await, nats(&door, "service").await);
    let mut requests = service.queue_subscribe("svc.*", "q".into()).await.unwrap();
    service.flush().await.unwrap();
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let answer = [b"re: ".as_slice(), &request.payload].concat();
            service.publish(request.reply.unwrap(), answer.into()).await.unwrap();
        }
    });
    let answers = join_all((0..100).map(|number| asker.request("svc.echo", number.to_string().into()))).await;
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap().payload, format!("re: {number}"));
    }
    let error = asker.request("svc.none.here", "x".into()).await.unwrap_err();
    assert_eq!(error.kind(), async_nats::RequestErrorKind::NoResponders);
}

#[tokio::test]
async fn async_nats_sends_and_receives_headers() {
    let door = Door::open_nats().await;
    let client = nats(&door, "one").await;
    let mut messages = client.subscribe("a").await.unwrap();
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("traceparent", "00-1-2-01");
    client.publish_with_headers("a", headers, "x".into()).await.unwrap();
    let message = messages.next().await.unwrap();
    assert_eq!(message.headers.unwrap().get("traceparent").unwrap().as_str(), "00-1-2-01");
}

#[tokio::test]
async fn async_nats_shows_its_secret() {
    let door = Door::nats(Locked, NatsLimits::default()).await;
    let address = door.address.to_string();
    let options = async_nats::ConnectOptions::new;
    assert!(options().connect(&address).await.is_err());
    assert!(options().token("wrong".into()).connect(&address).await.is_err());
    assert!(options().token("right".into()).connect(&address).await.is_ok());
    assert!(options().user_and_password("any".into(), "right".into()).connect(&address).await.is_ok());
}

#[tokio::test]
async fn redis_sets_and_gets_in_both_versions() {
    let door = Door::open_resp().await;
    for version in ["", "?protocol=resp3"] {
        let client = redis::Client::open(format!("redis://{}/0{version}", door.address)).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let (): () = connection.set("ctx:1", "hello").await.unwrap();
        let (): () = connection.set_ex("res:1", "world", 60).await.unwrap();
        assert_eq!(connection.get::<_, Option<String>>("ctx:1").await.unwrap().as_deref(), Some("hello"));
        assert_eq!(connection.get::<_, Option<String>>("ctx:none").await.unwrap(), None);
        assert_eq!(connection.ttl::<_, i64>("res:1").await.unwrap(), 60);
        let only_new = redis::SetOptions::default().conditional_set(redis::ExistenceCheck::NX);
        assert!(!connection.set_options::<_, _, bool>("res:1", "x", only_new).await.unwrap());
        assert!(connection.exists::<_, bool>("res:1").await.unwrap());
        assert_eq!(connection.del::<_, i64>(&["ctx:1", "res:1"]).await.unwrap(), 2);
        let error = connection.get::<_, Option<String>>("job:meta:1").await.unwrap_err();
        assert!(error.to_string().contains("ctx:, res: or art:"), "{error}");
    }
}

#[tokio::test]
async fn redis_callers_on_one_connection_share_a_commit() {
    let door =
        Door::resp(crate::support::open(), MemoryBlobs::committing_together(32), RespLimits::default()).await;
    let client = redis::Client::open(format!("redis://{}", door.address)).unwrap();
    let connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut pipeline = redis::pipe();
    for number in 0..32 {
        pipeline.set(format!("res:{number}"), number).ignore();
    }
    let (): () = pipeline.query_async(&mut connection.clone()).await.unwrap();
    let gets = (0..32).map(|number| {
        let mut connection = connection.clone();
        async move { connection.get::<_, i64>(format!("res:{number}")).await.unwrap() }
    });
    assert_eq!(join_all(gets).await, (0..32).collect::<Vec<i64>>());
}

#[tokio::test]
async fn redis_shows_its_secret() {
    let door = Door::resp(Locked, MemoryBlobs::default(), RespLimits::default()).await;
    for (userinfo, welcome) in [("", false), (":wrong@", false), (":right@", true), ("any:right@", true)] {
        for version in ["", "?protocol=resp3"] {
            let client = redis::Client::open(format!("redis://{userinfo}{}{version}", door.address)).unwrap();
            let outcome = match client.get_multiplexed_async_connection().await {
                Ok(mut connection) => connection.get::<_, Option<String>>("ctx:1").await,
                Err(error) => Err(error),
            };
            assert_eq!(outcome.is_ok(), welcome, "{userinfo}{version}: {outcome:?}");
        }
    }
}
