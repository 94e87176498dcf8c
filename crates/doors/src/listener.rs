//! Where a door listens: a TCP address, or a Unix socket that its owner alone can open.
//!
//! A Unix socket is for one machine on which others log in: the file system says who may connect, and no web page can
//! reach it. It speaks no TLS, which would protect it from nobody.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Its owner may connect; nobody else.
const SOCKET_MODE: u32 = 0o600;

pub enum DoorListener {
    Tcp(TcpListener),
    Unix(UnixDoor),
}

/// A Unix socket; its file goes when this goes.
pub struct UnixDoor {
    listener: UnixListener,
    path: PathBuf,
}

impl UnixDoor {
    /// Listens there. A file that a server left behind when it was killed is replaced; one that somebody answers at, or
    /// that is no socket, is left alone and is an error.
    pub async fn bind(path: &Path) -> io::Result<Self> {
        match tokio::fs::symlink_metadata(path).await {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "there is a file that is no socket",
                ));
            }
            Ok(_) if UnixStream::connect(path).await.is_ok() => {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "somebody listens there"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // It gets its name when nobody else can open it any more; that also replaces what was left behind.
        let mut unnamed = path.as_os_str().to_owned();
        unnamed.push(format!(".{}", std::process::id()));
        let unnamed = PathBuf::from(unnamed);
        let _ = tokio::fs::remove_file(&unnamed).await;
        let listener = UnixListener::bind(&unnamed)?;
        tokio::fs::set_permissions(&unnamed, std::fs::Permissions::from_mode(SOCKET_MODE)).await?;
        tokio::fs::rename(&unnamed, path).await?;
        Ok(Self { listener, path: path.to_owned() })
    }
}

impl Drop for UnixDoor {
    fn drop(&mut self) {
        // Whoever comes later finds out that nobody listens there, too.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl From<TcpListener> for DoorListener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl From<UnixDoor> for DoorListener {
    fn from(door: UnixDoor) -> Self {
        Self::Unix(door)
    }
}

impl DoorListener {
    /// Nothing for a Unix socket.
    pub fn tcp(&self) -> Option<&TcpListener> {
        match self {
            Self::Tcp(listener) => Some(listener),
            Self::Unix(_) => None,
        }
    }

    /// How clients write where they connect to, behind a scheme.
    pub fn location(&self, scheme: &str) -> io::Result<String> {
        match self {
            Self::Tcp(listener) => Ok(format!("{scheme}://{}", listener.local_addr()?)),
            Self::Unix(door) => Ok(format!("unix:{}", door.path.display())),
        }
    }

    pub(crate) async fn accept(&self) -> io::Result<(DoorSocket, DoorPeer)> {
        match self {
            Self::Tcp(listener) => {
                let (socket, peer) = listener.accept().await?;
                // Small messages must not wait for more to come.
                let _ = socket.set_nodelay(true);
                Ok((DoorSocket::Tcp(socket), DoorPeer::Address(peer)))
            }
            Self::Unix(door) => {
                let (socket, _) = door.listener.accept().await?;
                let user = socket.peer_cred().ok().map(|peer| peer.uid());
                Ok((DoorSocket::Unix(socket), DoorPeer::User(user)))
            }
        }
    }
}

pub(crate) enum DoorSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl DoorSocket {
    /// Writes as much as fits without waiting.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.try_write(bytes),
            Self::Unix(socket) => socket.try_write(bytes),
        }
    }
}

/// Who is at the far end, for logs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DoorPeer {
    Address(SocketAddr),
    /// A user of this machine, if the system says which.
    User(Option<u32>),
}

impl fmt::Display for DoorPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::User(Some(user)) => write!(f, "user {user}"),
            Self::User(None) => f.write_str("a user of this machine"),
        }
    }
}
