//! A wire to PostgreSQL that a test can hold: nothing comes through it, or an answer is lost on it.

use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Open,
    /// Nothing goes either way.
    Hushed,
    /// Everything goes, except PostgreSQL's word that something is committed and all that comes after.
    Forgetful,
    /// It has lost such a word.
    Lost,
    /// Whoever waits for something is told that nothing comes.
    Cut,
}

pub struct Wire {
    port: u16,
    mood: Arc<watch::Sender<Mood>>,
}

impl Wire {
    pub async fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mood = Arc::new(watch::Sender::new(Mood::Open));
        tokio::spawn({
            let mood = Arc::clone(&mood);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await else {
                        continue;
                    };
                    let ((from_client, to_client), (from_server, to_server)) =
                        (client.into_split(), server.into_split());
                    tokio::spawn(carry(from_client, to_server, Arc::clone(&mood), Way::There));
                    tokio::spawn(carry(from_server, to_client, Arc::clone(&mood), Way::Back));
                }
            }
        });
        Self { port, mood }
    }

    /// The same database, through this wire.
    pub fn address_of(&self, url: &str) -> String {
        let (start, database) = url.rsplit_once('/').unwrap();
        let (start, _) = start.rsplit_once(':').unwrap();
        format!("{start}:{}/{database}", self.port)
    }

    pub fn hush(&self) {
        self.mood.send_replace(Mood::Hushed);
    }

    pub fn cut(&self) {
        self.mood.send_replace(Mood::Cut);
    }

    pub fn talk(&self) {
        self.mood.send_replace(Mood::Open);
    }

    /// The next word of a commit does not arrive.
    pub fn lose_a_commit(&self) {
        self.mood.send_replace(Mood::Forgetful);
    }

    /// Waits until a commit was made and its answer lost.
    pub async fn has_lost_it(&self) {
        self.mood.subscribe().wait_for(|mood| *mood == Mood::Lost).await.unwrap();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    There,
    Back,
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mood: Arc<watch::Sender<Mood>>, way: Way) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(len @ 1..) = from.read(&mut buffer).await {
        let bytes = &buffer[..len];
        // The tag of a command that is complete.
        let is_committed = way == Way::Back && bytes.windows(7).any(|window| window == b"COMMIT\0");
        mood.send_if_modified(|mood| {
            let loses = *mood == Mood::Forgetful && is_committed;
            if loses {
                *mood = Mood::Lost;
            }
            loses
        });
        let goes_on = |mood: &Mood| match mood {
            Mood::Open | Mood::Forgetful | Mood::Cut => true,
            Mood::Lost => way == Way::There,
            Mood::Hushed => false,
        };
        let now = mood.subscribe().wait_for(goes_on).await.map_or(Mood::Cut, |mood| *mood);
        if now == Mood::Cut || to.write_all(bytes).await.is_err() {
            return;
        }
    }
}
