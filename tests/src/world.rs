//! A whole Cairn in this process, on a database and a cluster that outlive it.

use crate::client::{Client, Door};
use crate::place::Place;
use crate::until::until;
use axum::Router;
use cairn::edge::SystemClock;
use cairn::settings::{Settings, Store};
use cairn::wiring::{Before, DefaultVim, Options, Parts, open};
use cairn_api_types::PublicUrl;
use cairn_db::testing::TestDatabase;
use cairn_db::{Arg, Database};
use cairn_domain::clocks::Clocks;
use cairn_domain::ports::Clock;
use cairn_domain::secret::Secret;
use cairn_kubernetes::ConfiguredCluster;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Base of all links in the tests.
pub const PUBLIC_URL: &str = "http://cairn.test";

/// What outlives a process: a database with its key, and a cluster.
pub struct Ground {
    /// The cluster.
    pub place: Place,
    /// The database.
    pub database: TestDatabase,
    data: TempDir,
    /// Leads to the default VIM, where it is not the place itself.
    kubeconfig: Option<PathBuf>,
}

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file of its own.
    Sqlite,
    /// A PostgreSQL database of its own.
    Postgres,
}

impl Ground {
    /// A fresh database of this kind beside a cluster; `None` only where PostgreSQL is left out on purpose.
    pub async fn new(kind: Kind, place: Place) -> Option<Arc<Self>> {
        let database = match kind {
            Kind::Sqlite => TestDatabase::sqlite(),
            Kind::Postgres => TestDatabase::postgres().await?,
        };
        Some(Self::with_database(place, database))
    }

    /// This database beside a cluster.
    #[must_use]
    pub fn with_database(place: Place, database: TestDatabase) -> Arc<Self> {
        let data = TempDir::new().expect("a temporary folder");
        if database.url().starts_with("postgres") {
            use base64::Engine as _;
            let key = base64::engine::general_purpose::STANDARD.encode([7_u8; 32]);
            std::fs::write(data.path().join("cairn.key"), key).expect("a key file");
        }
        Arc::new(Self {
            place,
            database,
            data,
            kubeconfig: None,
        })
    }

    /// A SQLite file beside a cluster that is reached by another kubeconfig than the place's own.
    pub async fn by_kubeconfig(place: Place, kubeconfig: PathBuf) -> Arc<Self> {
        let ground = Self::new(Kind::Sqlite, place).await;
        let ground = Arc::into_inner(ground.expect("SQLite is always there"));
        Arc::new(Self {
            kubeconfig: Some(kubeconfig),
            ..ground.expect("nobody else holds it")
        })
    }

    /// A SQLite file and a simulated cluster.
    pub async fn simple() -> Arc<Self> {
        let place = Place::simulated().await;
        Self::new(Kind::Sqlite, place)
            .await
            .expect("SQLite is always there")
    }

    /// Keeps this ground as it is now, to begin many others with it. No world stands on it any more.
    ///
    /// # Panics
    /// When it is not a SQLite file beside a simulated cluster.
    pub async fn keep(&self) -> Template {
        let folder = TempDir::new().expect("a temporary folder");
        let file = folder.path().join("kept.db");
        self.database.copy_to(&file).await;
        let key = self.store().key_file.expect("a key file");
        let key = std::fs::read(key).expect("the key can be read");
        Template {
            place: self.place.fork(),
            file,
            key,
            _folder: folder,
        }
    }

    /// Where the database and its key lie.
    #[must_use]
    pub fn store(&self) -> Store {
        let data = self.data.path().to_owned();
        Store {
            database: self.database.url().to_owned(),
            key_file: Some(data.join("cairn.key")),
            data,
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            store: self.store(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            kubeconfig: None,
            simulated: false,
            public_url: Some(PUBLIC_URL.to_owned()),
            enable_faults: true,
            allow_private_callbacks: true,
            lenient: false,
            clocks: Clocks::default(),
        }
    }

    fn vim(&self, around: Option<AroundRoutes>) -> DefaultVim {
        let cluster = match (&self.kubeconfig, &self.place.sim) {
            (Some(other), _) => ConfiguredCluster::kubeconfig(other),
            (None, Some(sim)) => ConfiguredCluster::in_process(
                match around {
                    Some(around) => around(sim.router()),
                    None => sim.router(),
                },
                self.place.kube.token.clone().map(Secret::new),
            ),
            (None, None) => ConfiguredCluster::kubeconfig(self.place.kubeconfig()),
        };
        DefaultVim {
            cluster,
            simulated: None,
        }
    }
}

/// A ground that was kept, and grounds that begin with it.
pub struct Template {
    place: Place,
    file: PathBuf,
    key: Vec<u8>,
    _folder: TempDir,
}

impl Template {
    /// A ground of its own, just like the one that was kept.
    #[must_use]
    pub fn ground(&self) -> Arc<Ground> {
        let data = TempDir::new().expect("a temporary folder");
        std::fs::write(data.path().join("cairn.key"), &self.key).expect("a key file");
        Arc::new(Ground {
            place: self.place.fork(),
            database: TestDatabase::copy_of(&self.file),
            kubeconfig: None,
            data,
        })
    }
}

/// Puts something around the API of the simulated cluster, as one world sees it.
pub type AroundRoutes = Box<dyn FnOnce(Router) -> Router + Send>;

/// Under which conditions a world works; by default those of the program.
pub struct Conditions {
    /// The time of events and waits.
    pub clock: Arc<dyn Clock>,
    /// What stands before the ports.
    pub before: Before,
    /// What stands before the simulated cluster.
    pub cluster: Option<AroundRoutes>,
    /// Limits of calls to clusters.
    pub calls: cairn_kubernetes::Settings,
    /// Threads of the world.
    pub threads: usize,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            before: Before::default(),
            cluster: None,
            calls: cairn_kubernetes::Settings::default(),
            threads: 2,
        }
    }
}

/// A whole Cairn. Its tasks run in a runtime of their own, so that they can end as a process ends.
pub struct World {
    /// What it stands on.
    pub ground: Arc<Ground>,
    client: Client,
    runtime: Option<Runtime>,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<Option<()>>>,
    crashed: watch::Receiver<bool>,
}

impl Deref for World {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl World {
    /// A fresh one on SQLite and a simulated cluster.
    pub async fn simple() -> Self {
        Self::on(Ground::simple().await).await
    }

    /// One on this ground, where another may have ended before.
    ///
    /// # Panics
    /// When it cannot be set up.
    pub async fn on(ground: Arc<Ground>) -> Self {
        Self::with(ground, |_| {}).await
    }

    /// One on this ground with settings of its own.
    ///
    /// # Panics
    /// When it cannot be set up.
    pub async fn with(ground: Arc<Ground>, change: impl FnOnce(&mut Settings)) -> Self {
        Self::under(ground, Conditions::default(), change).await
    }

    /// One on this ground whose calls to clusters have these limits, with settings of its own.
    ///
    /// # Panics
    /// When it cannot be set up.
    pub async fn calling(
        ground: Arc<Ground>,
        calls: cairn_kubernetes::Settings,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let conditions = Conditions {
            calls,
            ..Conditions::default()
        };
        Self::under(ground, conditions, change).await
    }

    /// One on this ground, under these conditions and with settings of its own.
    ///
    /// # Panics
    /// When it cannot be set up.
    pub async fn under(
        ground: Arc<Ground>,
        conditions: Conditions,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let mut settings = ground.settings();
        change(&mut settings);
        let runtime = Builder::new_multi_thread()
            .worker_threads(conditions.threads)
            .thread_name("world")
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let (crash, crashed) = watch::channel(false);
        let stop = CancellationToken::new();
        let (ends, vim) = (stop.clone(), ground.vim(conditions.cluster));
        let wiring = runtime.spawn(async move {
            // The one before gives its lock up as its last task is dropped.
            let opened = until(
                Duration::from_secs(10),
                "the database to be free",
                || async { open(&settings.store).await },
            )
            .await;
            let options = Options {
                public_url: PublicUrl::parse(PUBLIC_URL).expect("a URL"),
                crash: Box::new(move || die(&crash)),
                calls: conditions.calls,
                clock: conditions.clock,
                before: conditions.before,
            };
            let parts = Parts::wire(&settings, opened, Some(vim), options)
                .await
                .expect("it is wired");
            (parts.router(), parts.start(&ends))
        });
        let (router, tasks) = wiring.await.expect("it is set up");
        let client = Client::new(Door::InProcess(router, runtime.handle().clone()));
        Self {
            ground,
            client,
            runtime: Some(runtime),
            stop,
            tasks,
            crashed,
        }
    }

    /// The cluster.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.ground.place
    }

    /// Awaits that a crash fault strikes.
    ///
    /// # Panics
    /// When none does.
    pub async fn crash(&mut self) {
        let struck = self.crashed.wait_for(|crashed| *crashed);
        tokio::time::timeout(crate::client::SOON, struck)
            .await
            .expect("the crash fault strikes in time")
            .expect("the world is alive");
    }

    /// Whether a crash fault has struck.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        *self.crashed.borrow()
    }

    /// Ends everything at once, handing nothing over, as `kill -9` does; the ground stays.
    #[must_use]
    pub fn kill(mut self) -> Arc<Ground> {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        self.ground.clone()
    }

    /// Ends as on SIGTERM.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn end(mut self) -> Arc<Ground> {
        self.stop.cancel();
        let tasks = futures::future::join_all(std::mem::take(&mut self.tasks));
        tokio::time::timeout(Duration::from_secs(5), tasks)
            .await
            .expect("it ends within 5 s");
        self.kill()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs one statement on a database behind Cairn's back, as an accident would.
///
/// # Panics
/// When the database refuses it.
pub async fn execute(database: &Database, sql: &str, argument: &str) {
    let mut transaction = database.begin().await.expect("a transaction");
    let arguments = vec![Arg::Text(Some(argument.to_owned()))];
    transaction
        .execute(sql, arguments)
        .await
        .expect("the statement is right");
    transaction.commit().await.expect("it is written");
}

/// What a crash fault does here: this task goes no further, ever, and the world is told to end.
fn die(crash: &watch::Sender<bool>) {
    crash.send_replace(true);
    loop {
        std::thread::park();
    }
}
