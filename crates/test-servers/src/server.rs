//! One server process: started so that it cannot outlive the test, killed, paused, started again.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

const STARTS_WITHIN: Duration = Duration::from_secs(20);
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
const LOOKS_EVERY: Duration = Duration::from_millis(10);
/// Debian keeps servers where an ordinary user's `PATH` does not look.
const DIRECTORIES: [&str; 4] = ["/usr/local/sbin", "/usr/sbin", "/usr/local/bin", "/usr/bin"];

/// How a server is started, the same way every time, and when it counts as started.
pub struct Recipe {
    pub command: Box<dyn Fn() -> Command + Send + Sync>,
    pub answers: Box<dyn Fn() -> bool + Send + Sync>,
}

pub struct Server {
    recipe: Recipe,
    child: Option<Child>,
}

impl Server {
    pub(crate) fn start(recipe: Recipe) -> Self {
        let mut server = Self { recipe, child: None };
        server.restart();
        server
    }

    /// Starts it again where it was, and waits until it answers. One that finds the remains of a killed one in
    /// its way ends at once and is started again.
    pub fn restart(&mut self) {
        self.kill();
        let began = Instant::now();
        loop {
            let ended = self.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)));
            if ended {
                self.child = Some(spawn((self.recipe.command)()));
            } else if (self.recipe.answers)() {
                return;
            }
            assert!(began.elapsed() < STARTS_WITHIN, "the server did not start");
            pause();
        }
    }

    /// The process that runs now.
    pub fn id(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// kill -9.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }

    pub fn stop(&self) {
        self.signal("-STOP");
    }

    pub fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let id = self.id();
        let done = Command::new("kill").args([signal, &id.to_string()]).status().unwrap();
        assert!(done.success(), "kill {signal} {id}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The path of a program; says how to get it if it is missing.
pub fn program(name: &str, package: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(DIRECTORIES.map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("{name} is missing: `cargo xtask test --only install` installs {package}"))
}

/// A port that is free now. Somebody may take it before the server does; that is a failed start, and seen.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Whether something answers a line on the port, and with these words in it.
pub fn says(port: u16, line: &str, words: &str) -> bool {
    answer(port, line).is_ok_and(|answer| answer.contains(words))
}

/// What Redis answers to a command, as it comes; nothing if it does not.
pub fn ask(port: u16, command: &str) -> String {
    answer(port, &format!("{command}\r\n")).unwrap_or_default()
}

fn answer(port: u16, line: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
    stream.write_all(line.as_bytes())?;
    let mut buffer = [0; 4096];
    let len = stream.read(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..len]).into_owned())
}

/// Looks until it is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < STARTS_WITHIN, "waited too long until {what}");
        pause();
    }
}

/// A command whose process dies with the thread that starts it.
pub fn mortal(program: PathBuf) -> Command {
    let mut command = Command::new(self::program("setpriv", "util-linux"));
    command.arg("--pdeathsig=KILL").arg(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[expect(clippy::disallowed_methods, reason = "servers are started by plain threads")]
fn pause() {
    thread::sleep(LOOKS_EVERY);
}

/// Starts a command on the one thread that lasts as long as the process: a death signal is the thread's, and
/// the threads of tests end before their servers do.
fn spawn(command: Command) -> Child {
    type Order = (Command, Sender<std::io::Result<Child>>);
    static STARTER: OnceLock<Sender<Order>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (orders, inbox): (Sender<Order>, Receiver<Order>) = channel();
        thread::spawn(move || {
            while let Ok((mut command, answer)) = inbox.recv() {
                answer.send(command.spawn()).ok();
            }
        });
        orders
    });
    let (answer, child) = channel();
    starter.send((command, answer)).unwrap();
    child.recv().unwrap().expect("a server starts")
}
