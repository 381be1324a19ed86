//! The line to PostgreSQL, which can be cut: between two calls, and at a COMMIT, before it or after it.

use crate::place::background;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The statement as PostgreSQL's simple query protocol carries it.
const COMMIT: &[u8] = b"COMMIT\0";

#[derive(Default)]
struct Plan {
    /// Whether nobody gets through.
    down: bool,
    /// Every so manieth COMMIT is struck; 0 for none.
    every: u64,
    seen: u64,
    struck: u64,
}

/// What happens to a COMMIT.
enum Fate {
    Passes,
    /// It never reaches the server.
    Unsent,
    /// The server carries it out; its answer never comes.
    Unanswered,
}

/// A line to a PostgreSQL.
#[derive(Clone)]
pub struct Wire {
    address: SocketAddr,
    server: String,
    plan: Arc<Mutex<Plan>>,
    cuts: watch::Sender<u64>,
}

impl Wire {
    /// A line to the server of this URL.
    ///
    /// # Panics
    /// When there is no port for it.
    pub async fn to(url: &str) -> Self {
        let (_, rest) = url.split_once('@').expect("a URL with a user");
        let (server, _) = rest.split_once('/').expect("a URL with a database");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a free port");
        let wire = Self {
            address: listener.local_addr().expect("an address"),
            server: server.to_owned(),
            plan: Arc::default(),
            cuts: watch::Sender::new(0),
        };
        let serving = wire.clone();
        background(async move {
            while let Ok((client, _)) = listener.accept().await {
                background(serving.clone().carry(client));
            }
        });
        wire
    }

    /// The same database by way of this line.
    #[must_use]
    pub fn url(&self, url: &str) -> String {
        url.replace(&self.server, &self.address.to_string())
    }

    fn locked(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every so manieth COMMIT is cut off, in turn before it reaches the server and before its answer comes back;
    /// 0 for none.
    pub fn strike_every(&self, commits: u64) {
        self.locked().every = commits;
    }

    /// How many COMMITs were struck.
    #[must_use]
    pub fn struck(&self) -> u64 {
        self.locked().struck
    }

    /// Cuts all lines, and lets nobody through while it is down.
    pub fn down(&self, down: bool) {
        self.locked().down = down;
        if down {
            self.cuts.send_modify(|cuts| *cuts += 1);
        }
    }

    fn fate(&self) -> Fate {
        let mut plan = self.locked();
        plan.seen += 1;
        if plan.every == 0 || !plan.seen.is_multiple_of(plan.every) {
            return Fate::Passes;
        }
        plan.struck += 1;
        if plan.struck.is_multiple_of(2) {
            Fate::Unsent
        } else {
            Fate::Unanswered
        }
    }

    /// One connection, until either side ends it or it is cut.
    async fn carry(self, mut client: TcpStream) {
        if self.locked().down {
            return;
        }
        let mut cuts = self.cuts.subscribe();
        let Ok(mut server) = TcpStream::connect(&self.server).await else {
            return;
        };
        let (mut asked, mut told) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
        loop {
            tokio::select! {
                _ = cuts.changed() => return,
                read = client.read(&mut asked) => {
                    let Ok(length @ 1..) = read else { return };
                    let bytes = &asked[..length];
                    let commits = bytes.windows(COMMIT.len()).any(|part| part == COMMIT);
                    let fate = if commits { self.fate() } else { Fate::Passes };
                    if matches!(fate, Fate::Unsent) || server.write_all(bytes).await.is_err() {
                        return;
                    }
                    if matches!(fate, Fate::Unanswered) {
                        // The answer tells that it was carried out; nobody hears it. Whether one came is all the same.
                        drop(server.read(&mut told).await);
                        return;
                    }
                }
                read = server.read(&mut told) => {
                    let Ok(length @ 1..) = read else { return };
                    if client.write_all(&told[..length]).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}
