//! An agent that reads one request to its end and says what the test wants, whatever that is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(super) struct Agent {
    pub(super) port: u16,
    met: Arc<AtomicUsize>,
    request: oneshot::Receiver<String>,
    task: JoinHandle<()>,
}

impl Agent {
    /// Answers with these bytes and closes the connection.
    pub(super) async fn answering(answer: impl Into<String>) -> Self {
        Self::start(Some(answer.into())).await
    }

    /// Reads and never answers.
    pub(super) async fn silent() -> Self {
        Self::start(None).await
    }

    async fn start(answer: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, request) = oneshot::channel();
        let met = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(serve(listener, answer, sender, Arc::clone(&met)));
        Self { port, met, request, task }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Waits until a request was read to its end.
    pub(super) async fn request(self) -> String {
        self.request.await.unwrap()
    }

    /// How many connections were made to it.
    pub(super) fn met(&self) -> usize {
        self.met.load(Ordering::SeqCst)
    }

    /// Stops listening, and returns the port that is now nobody's.
    pub(super) async fn hang_up(self) -> u16 {
        self.task.abort();
        let _ = self.task.await;
        self.port
    }
}

async fn serve(
    listener: TcpListener,
    answer: Option<String>,
    request: oneshot::Sender<String>,
    met: Arc<AtomicUsize>,
) {
    let (mut socket, _) = listener.accept().await.unwrap();
    met.fetch_add(1, Ordering::SeqCst);
    let text = read_request(&mut socket).await;
    let _ = request.send(text);
    match answer {
        Some(answer) => say(socket, &answer).await,
        None => std::future::pending().await,
    }
}

/// The client may hang up before it has heard everything.
async fn say(mut socket: TcpStream, answer: &str) {
    let _ = socket.write_all(answer.as_bytes()).await;
    let _ = socket.shutdown().await;
}

/// Reads a head, and the body that it announces.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut text = String::new();
    while !is_whole(&text) {
        text.push(char::from(stream.read_u8().await.unwrap()));
    }
    text
}

fn is_whole(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let announced = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= announced.map_or(0, |digits| digits.parse().unwrap())
}
