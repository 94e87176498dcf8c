//! nats-server with JetStream on disk.

use crate::server::{Recipe, Server, free_port, mortal, program, says};
use std::fs;
use tempfile::TempDir;

pub struct Nats {
    server: Server,
    port: u16,
    _folder: TempDir,
}

impl Nats {
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// With more lines of its configuration file, such as an `authorization` block.
    pub fn start_with(configuration: &str) -> Self {
        let (binary, port) = (program("nats-server", "nats-server"), free_port());
        let folder = tempfile::tempdir().unwrap();
        let (data, file) = (folder.path().join("data"), folder.path().join("nats.conf"));
        fs::write(
            &file,
            format!(
                "host: \"127.0.0.1\"\nport: {port}\njetstream {{ store_dir: \"{}\" }}\n{configuration}\n",
                data.display()
            ),
        )
        .unwrap();
        let command = move || {
            let mut command = mortal(binary.clone());
            command.arg("-c").arg(&file);
            command
        };
        let answers = move || says(port, "", "INFO {");
        let recipe = Recipe { command: Box::new(command), answers: Box::new(answers) };
        Self { server: Server::start(recipe), port, _folder: folder }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub fn server(&mut self) -> &mut Server {
        &mut self.server
    }
}
