//! PostgreSQL. It refuses to run as root, so there it runs as the user that its package made.

use crate::server::{Recipe, Server, free_port, program};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// Debian keeps each version apart.
const VERSIONS: &str = "/usr/lib/postgresql";
const USER: &str = "postgres";

/// What a careful server asks for: TLS with this certificate, and a password.
pub struct Guard<'g> {
    pub certificate: &'g str,
    pub key: &'g str,
    pub password: &'g str,
}

pub struct Postgres {
    server: Server,
    port: u16,
    binaries: PathBuf,
    password: String,
    databases: AtomicU32,
    _folder: TempDir,
}

impl Postgres {
    pub fn start() -> Self {
        Self::make(None)
    }

    /// One that takes nobody without TLS and the password.
    pub fn start_guarded(guard: &Guard) -> Self {
        Self::make(Some(guard))
    }

    fn make(guard: Option<&Guard>) -> Self {
        let (binaries, port) = (binaries(), free_port());
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        give(folder.path());
        let mut initdb = unprivileged(binaries.join("initdb"));
        initdb.args(["--no-sync", "--auth", "trust", "--username", USER, "--encoding", "UTF8"]);
        if let Some(guard) = guard {
            let file = folder.path().join("password");
            own(&file, guard.password);
            initdb.arg("--pwfile").arg(file);
        }
        let made = initdb.arg("--pgdata").arg(&data).status().unwrap();
        assert!(made.success(), "initdb ended with {made}");
        if let Some(guard) = guard {
            own(&data.join("server.crt"), guard.certificate);
            own(&data.join("server.key"), guard.key);
            own(&data.join("pg_hba.conf"), "hostssl all all 127.0.0.1/32 scram-sha-256\n");
        }
        let ssl = if guard.is_some() { "ssl=on" } else { "ssl=off" };
        let (binary, sockets) = (binaries.join("postgres"), folder.path().to_owned());
        let command = move || {
            let mut command = unprivileged(binary.clone());
            command.arg("-D").arg(&data).arg("-k").arg(&sockets).arg("-p").arg(port.to_string());
            command.args(["-h", "127.0.0.1", "-c", "max_connections=200", "-c", ssl]);
            // One that was killed brings its files to the disk first: all at once, not a thousand by turns.
            command.args(["-c", "recovery_init_sync_method=syncfs"]);
            command
        };
        let asks = binaries.join("pg_isready");
        let answers = move || {
            let mut ask = Command::new(&asks);
            ask.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()])
                .status()
                .is_ok_and(|status| status.success())
        };
        let server = Server::start(Recipe { command: Box::new(command), answers: Box::new(answers) });
        let password = guard.map(|guard| guard.password.to_owned()).unwrap_or_default();
        Self { server, port, binaries, password, databases: AtomicU32::new(0), _folder: folder }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of a new, empty database, without a password.
    pub fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::SeqCst));
        let made = Command::new(self.binaries.join("createdb"))
            .args(["-h", "127.0.0.1", "-U", USER, "-p", &self.port.to_string(), &name])
            .env("PGPASSWORD", &self.password)
            .status()
            .unwrap();
        assert!(made.success(), "createdb ended with {made}");
        format!("postgres://{USER}@127.0.0.1:{}/{name}", self.port)
    }

    pub fn server(&mut self) -> &mut Server {
        &mut self.server
    }
}

fn binaries() -> PathBuf {
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let newest =
        versions.map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").is_file()).max();
    newest.unwrap_or_else(|| {
        program("initdb", "postgresql").parent().expect("a file is in a folder").to_owned()
    })
}

/// The command dies with the thread that starts it. The signal is asked for last: a change of user clears it.
fn unprivileged(binary: PathBuf) -> Command {
    let mut command = Command::new(program("setpriv", "util-linux"));
    if is_root() {
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
    }
    command.arg("--pdeathsig=KILL").arg(binary);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// A file that nobody but the server may read.
fn own(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    give(path);
}

fn give(path: &Path) {
    if !is_root() {
        return;
    }
    let done = Command::new("chown").arg(USER).arg(path).status().unwrap();
    assert!(done.success(), "chown {USER} {}", path.display());
}
