//! A server of the binary under test, on a free port and a folder of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

pub struct Server {
    pub folder: TempDir,
    url: String,
    child: Child,
}

/// What a command left behind.
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Server {
    /// With settings from the environment.
    pub fn on(folder: TempDir, settings: &[(&str, &str)]) -> Self {
        let mut serve = reveille(folder.path());
        serve.args(["serve", "--http", "127.0.0.1:0", "--nats-door", "off", "--resp-door", "off", "--data"]);
        serve.arg(data(folder.path())).envs(settings.iter().copied());
        let mut child = serve.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let url = loop {
            let Some(Ok(line)) = lines.next() else { panic!("the server did not start: {said:?}") };
            if let Some(url) = line.strip_prefix("listening on ") {
                break url.to_owned();
            }
            said.push(line);
        };
        // A pipe that nobody reads would stop it one day.
        std::thread::spawn(move || lines.for_each(drop));
        Self { folder, url, child }
    }

    /// The server is killed, something is done to its folder, and it starts again.
    pub fn meanwhile(mut self, done: impl FnOnce(&Path)) -> Self {
        self.kill();
        done(&data(self.folder.path()));
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        Self::on(folder, &[])
    }

    /// A command, with the operator's key that the server left.
    pub fn run(&self, args: &[&str]) -> Ended {
        let mut command = reveille(self.folder.path());
        command.args(args).args(["--url", &self.url, "--data"]).arg(data(self.folder.path()));
        ended(&command.output().unwrap())
    }

    /// A command that goes well.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let Ended { code, out, err } = self.run(args);
        assert_eq!(code, 0, "{args:?}: {out}{err}");
        out
    }

    /// A file beside the server's data.
    pub fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Any other program, in a folder.
pub fn program(name: &str, folder: &Path, args: &[&str]) -> Ended {
    ended(&Command::new(name).args(args).current_dir(folder).output().unwrap())
}

fn reveille(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reveille"));
    command.env_clear().current_dir(folder);
    command
}

fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn ended(output: &Output) -> Ended {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
}
