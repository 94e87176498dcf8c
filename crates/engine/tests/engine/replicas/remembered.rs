//! Results of jobs that a server remembers, and that another has changed since.

use super::*;
use reveille_bus::{Ack, BusError, Delivery, DeliveryReport, Listener, Message, MessageKey, Subscription};
use reveille_test_kit::packet;
use reveille_wire::cap::bus_packet::Payload;
use reveille_wire::cap::{DispatchIdentity, JobResult, JobStatus};
use reveille_wire::subject;
use tokio::sync::mpsc;

/// A bus of one server's own, so that it hears no words of the other, whose results count as kept.
#[derive(Clone)]
struct Apart(LocalBus, &'static str);

#[async_trait::async_trait]
impl Bus for Apart {
    async fn publish(&self, message: Message) -> Result<DeliveryReport, BusError> {
        self.0.publish(message).await
    }

    async fn subscribe(&self, subject: &str, queue: Option<&str>) -> Result<Subscription, BusError> {
        let mut inner = self.0.subscribe(subject, queue).await?;
        if subject != subject::JOB_RESULT {
            return Ok(inner);
        }
        let ((deliveries, subscription), stream) = (mpsc::channel(1), self.1);
        tokio::spawn(async move {
            for seq in 1.. {
                let Some(Delivery { message, .. }) = inner.recv().await else { return };
                let (stream, durable) = (stream.into(), "results".into());
                let from = Some(MessageKey { stream, durable, kept_at: 0, seq, delivered: 1 });
                deliveries.send(Delivery { message, ack: Ack::new(|_| ()), from }).await.unwrap();
            }
        });
        Ok(Subscription::new(subscription))
    }

    fn shows_listeners(&self) -> bool {
        self.0.shows_listeners()
    }

    async fn listeners_changed(&self) -> Vec<Listener> {
        self.0.listeners_changed().await
    }
}

/// A worker that is here and can do more.
fn beat(server: &Engine) {
    introduce(server, &tenant(), "w", &["job.echo"]);
    reveille_test_kit::beat(server, &tenant(), "w", idle(CAN_DO));
}

async fn say(bus: &LocalBus, attempt: u64, status: JobStatus) {
    let dispatch = Some(DispatchIdentity { attempt, ..DispatchIdentity::default() });
    let result = JobResult { worker_id: "w".to_owned(), status: status as i32, dispatch, ..succeeded("j") };
    let said = packet("w", Payload::JobResult(result));
    bus.publish(Message::new(subject::JOB_RESULT, said)).await.unwrap();
}

/// The first attempt is known to one server, the second was begun by the other, and its result comes to the first.
#[tokio::test(start_paused = true)]
async fn what_is_remembered_does_not_turn_a_later_attempts_result_away() {
    let world = World::new();
    let (a, b) = (Apart(LocalBus::default(), "A"), Apart(LocalBus::default(), "B"));
    let first = world.server_on("a", Arc::new(a.clone())).await;
    let second = world.server_on("bb", Arc::new(b.clone())).await;
    sleep(5_000).await;
    // It takes what it is sent at both servers.
    let _at_first = a.0.subscribe("worker.w.jobs", None).await.unwrap();
    let _at_second = b.0.subscribe("worker.w.jobs", None).await.unwrap();
    beat(&first);
    beat(&second);
    submit(&first, "j").await.unwrap();
    sleep(10).await;
    assert_eq!(world.job("j").await.state(), State::Dispatched);
    say(&b.0, 1, JobStatus::FailedRetryable).await;
    let began = Instant::now();
    while world.job("j").await.attempt().is_none_or(|attempt| attempt.number < 2) {
        sleep(50).await;
        beat(&second);
        assert!(began.elapsed() < Duration::from_mins(1), "there is no second attempt");
    }
    say(&a.0, 2, JobStatus::Succeeded).await;
    sleep(1_000).await;
    assert_eq!(world.job("j").await.state(), State::Succeeded);
    // And one that has ended meanwhile stays as it is.
    say(&a.0, 1, JobStatus::FailedFatal).await;
    sleep(1_000).await;
    assert_eq!(world.job("j").await.state(), State::Succeeded);
}

/// A message that is handed out twice is dealt with once, whoever gets it the second time, and nobody is told that it
/// was refused.
#[tokio::test(start_paused = true)]
async fn a_result_that_comes_again_elsewhere_is_known() {
    let world = World::new();
    let (a, b) = (Apart(LocalBus::default(), "S"), Apart(LocalBus::default(), "S"));
    let first = world.server_on("a", Arc::new(a.clone())).await;
    let second = world.server_on("bb", Arc::new(b.clone())).await;
    sleep(5_000).await;
    let _at_first = a.0.subscribe("worker.w.jobs", None).await.unwrap();
    beat(&first);
    submit(&first, "j").await.unwrap();
    sleep(10).await;
    for bus in [&a.0, &b.0] {
        say(bus, 1, JobStatus::Succeeded).await;
        sleep(1_000).await;
        assert_eq!(world.job("j").await.state(), State::Succeeded);
    }
    for server in [first, second] {
        let page = server.metrics_page();
        assert!(page.contains("cordum_scheduler_validation_rejections_total 0\n"), "{page}");
    }
}
