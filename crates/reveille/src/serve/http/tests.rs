//! A real listener and raw sockets: clients that send slowly, never read, or ask for everything at once.

mod unauthenticated;

use super::*;
use axum::routing::{get, post};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const WITHIN: Duration = Duration::from_millis(400);
const LARGE: usize = 500_000;

struct Served {
    address: SocketAddr,
    large_answers: Arc<AtomicUsize>,
    /// Dropped with it, which stops the listener.
    _stop: watch::Sender<bool>,
}

async fn served(connections_max: usize) -> Served {
    let large_answers = Arc::new(AtomicUsize::new(0));
    let count = large_answers.clone();
    let large = move || {
        count.fetch_add(1, Ordering::Relaxed);
        async { "x".repeat(LARGE) }
    };
    let slow = || async {
        tokio::time::sleep(WITHIN * 3).await;
        "done"
    };
    let router = Router::new()
        .route("/hello", get(|| async { "hello" }))
        .route("/echo", post(|body: String| async { body }))
        .route("/large", get(large))
        .route("/slow", get(slow));
    let limits = HttpLimits { client_within: WITHIN, ..HttpLimits::new(connections_max) };
    Served { large_answers, ..served_with(router, limits).await }
}

async fn served_with(router: Router, limits: HttpLimits) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(serve(listener, router, None, limits, stopped));
    Served { address, large_answers: Arc::default(), _stop: stop }
}

impl Served {
    async fn open(&self, sent: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(sent.as_bytes()).await.unwrap();
        socket
    }

    /// All that is answered until the connection is closed.
    async fn ask(&self, request: &str) -> String {
        let mut socket = self.open(request).await;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

async fn is_closed_soon(socket: &mut TcpStream) -> bool {
    let mut byte = [0; 1];
    let read = tokio::time::timeout(WITHIN * 4, socket.read(&mut byte)).await;
    matches!(read, Ok(Ok(0) | Err(_)))
}

const HELLO: &str = "GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn a_body_that_comes_a_byte_at_a_time_is_not_waited_for() {
    let served = served(8).await;
    let mut slow = served.open("POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n").await;
    let dripped = async {
        while slow.write_all(b"x").await.is_ok() {
            tokio::time::sleep(WITHIN / 8).await;
        }
    };
    tokio::time::timeout(WITHIN * 4, dripped).await.expect("it is closed though it sends something");
}

#[tokio::test]
async fn slow_clients_that_take_every_place_make_room_for_others() {
    let served = served(4).await;
    let head = "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nx";
    let mut slow = Vec::new();
    for _ in 0..12 {
        slow.push(served.open(head).await);
    }
    let answer = tokio::time::timeout(WITHIN, served.ask(HELLO)).await.expect("at once");
    assert!(answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn a_client_that_asks_and_never_reads_costs_one_answer_and_is_closed() {
    let served = served(8).await;
    let requests = "GET /large HTTP/1.1\r\nhost: x\r\n\r\n".repeat(2000);
    let mut greedy = TcpStream::connect(served.address).await.unwrap();
    let _ = tokio::time::timeout(WITHIN / 2, greedy.write_all(requests.as_bytes())).await;
    tokio::time::sleep(WITHIN * 3).await;
    let answers = served.large_answers.load(Ordering::Relaxed);
    assert!(answers < 40, "{answers} answers were made; what the kernel takes is a few of them");
    let mut read = 0;
    let mut buffer = vec![0; 1 << 20];
    while let Ok(Ok(len @ 1..)) = tokio::time::timeout(WITHIN * 2, greedy.read(&mut buffer)).await {
        read += len;
    }
    assert!(read < 2000 * LARGE, "and then it was closed");
    assert_eq!(served.large_answers.load(Ordering::Relaxed), answers);
}

#[tokio::test]
async fn an_answer_that_takes_us_long_is_not_the_clients_fault() {
    let served = served(1).await;
    let answer = served.ask("GET /slow HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(answer.ends_with("done"), "{answer}");
}

#[tokio::test]
async fn a_connection_that_asks_nothing_is_closed() {
    let served = served(8).await;
    let mut idle = served.open("").await;
    assert!(is_closed_soon(&mut idle).await);
    let mut begun = served.open("GET /hel").await;
    assert!(is_closed_soon(&mut begun).await);
}

#[tokio::test]
async fn a_body_that_comes_in_time_is_answered() {
    let served = served(8).await;
    let head = "POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4\r\n\r\nab";
    let mut client = served.open(head).await;
    tokio::time::sleep(WITHIN / 4).await;
    client.write_all(b"cd").await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("abcd"), "{answer}");
}
