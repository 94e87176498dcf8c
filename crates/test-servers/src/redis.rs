//! redis-server.

use crate::server::{Recipe, Server, free_port, mortal, program, says};
use tempfile::TempDir;

/// What an answered write survives: the end of the process, or of the machine too.
#[derive(Debug, Clone, Copy)]
pub enum Fsync {
    EverySecond,
    Always,
}

pub struct Redis {
    server: Server,
    port: u16,
    _folder: TempDir,
}

impl Redis {
    pub fn start() -> Self {
        Self::start_with(Fsync::EverySecond, &[])
    }

    /// With more arguments of redis-server, such as `--requirepass`.
    pub fn start_with(fsync: Fsync, arguments: &[&str]) -> Self {
        let (binary, port) = (program("redis-server", "redis-server"), free_port());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let appendfsync = match fsync {
            Fsync::EverySecond => "everysec",
            Fsync::Always => "always",
        };
        let command = move || {
            let mut command = mortal(binary.clone());
            command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]);
            command.args(["--appendfsync", appendfsync, "--port", &port.to_string()]);
            command.arg("--dir").arg(&path).args(&arguments);
            command
        };
        // One with a password says that it wants one; one that is still reading its file does not.
        let answers = move || says(port, "PING\r\n", "+PONG") || says(port, "PING\r\n", "-NOAUTH");
        let recipe = Recipe { command: Box::new(command), answers: Box::new(answers) };
        Self { server: Server::start(recipe), port, _folder: folder }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Each database number is a world of its own.
    pub fn url(&self, database: u8) -> String {
        format!("redis://127.0.0.1:{}/{database}", self.port)
    }

    pub fn server(&mut self) -> &mut Server {
        &mut self.server
    }
}
