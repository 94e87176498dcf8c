//! A NATS server and a Redis server on free ports, which end with the value that started them.
//!
//! The only place that knows which servers the tests run against.

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use async_nats::{Client, ConnectOptions};
use reveille_worker::Connect;
use tempfile::TempDir;
use tokio::net::TcpStream;

/// How long a server may take to listen.
const START_MAX: Duration = Duration::from_secs(10);

pub struct Servers {
    pub nats: Server,
    pub redis: Server,
}

const HOST: &str = "127.0.0.1";
const USER: &str = "worker";
const PASSWORD: &str = "p@ss:word";
const PASSWORD_IN_URL: &str = "p%40ss%3Aword";

impl Servers {
    pub async fn start() -> Self {
        Self {
            nats: Server::start("nats-server", nats_arguments).await,
            redis: Server::start("redis-server", redis_arguments).await,
        }
    }

    pub fn connect(&self) -> Connect {
        Connect {
            nats_url: format!("nats://{USER}:{PASSWORD_IN_URL}@{HOST}:{}", self.nats.port),
            redis_url: format!("redis://default:{PASSWORD_IN_URL}@{HOST}:{}/0", self.redis.port),
        }
    }

    /// A client that is not the worker's.
    pub async fn nats_client(&self) -> Client {
        let options = ConnectOptions::with_user_and_password(USER.into(), PASSWORD.into());
        options.connect(format!("{HOST}:{}", self.nats.port)).await.unwrap()
    }
}

fn nats_arguments(port: &str, _: &TempDir) -> Vec<String> {
    owned(&["-a", HOST, "-p", port, "--user", USER, "--pass", PASSWORD])
}

/// With a log that is written through, so that a restart loses nothing.
fn redis_arguments(port: &str, folder: &TempDir) -> Vec<String> {
    let folder = folder.path().display().to_string();
    let log = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    let place = ["--bind", HOST, "--port", port, "--dir", &folder, "--requirepass", PASSWORD];
    owned(&[&place[..], &log[..]].concat())
}

fn owned(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|&argument| argument.to_owned()).collect()
}

pub struct Server {
    port: u16,
    program: &'static str,
    arguments: Vec<String>,
    process: Option<Child>,
    _folder: TempDir,
}

impl Server {
    async fn start(program: &'static str, arguments: fn(&str, &TempDir) -> Vec<String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let arguments = arguments(&port.to_string(), &folder);
        let mut server = Self { port, program, arguments, process: None, _folder: folder };
        server.up().await;
        server
    }

    /// Starts the process and waits until it listens.
    pub async fn up(&mut self) {
        let mut command = Command::new(self.program);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap_or_else(|error| {
            panic!("these tests need {} on the PATH (apt install {}): {error}", self.program, self.program)
        });
        self.process = Some(process);
        let listening = async {
            while TcpStream::connect((HOST, self.port)).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let in_time = tokio::time::timeout(START_MAX, listening).await;
        assert!(in_time.is_ok(), "{} does not listen on port {}", self.program, self.port);
    }

    /// Kills the process, as a crash would.
    pub fn down(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.down();
    }
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}
