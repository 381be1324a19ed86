//! Puts the parts together: which implementation stands behind which port.

use crate::configured::{DEFAULT_VIM, WithConfigured};
use crate::edge::{BuiltInNfvo, RandomIds};
use crate::metrics::Counters;
use crate::package_port::StoredPackages;
use crate::settings::{Settings, Store};
use anyhow::Context;
use cairn_api_types::PublicUrl;
use cairn_db::{Database, DbOptions, Dialect, OwnerLock};
use cairn_domain::clocks::Clocks;
use cairn_domain::ids::{NodeId, Tenant, VimId};
use cairn_domain::ports::{
    Callbacks, Clock, ContainerPlatform, EventLog, Faults, Ids, Metrics, Packages, Vims,
};
use cairn_domain::secret::Secret;
use cairn_engine::faults::FaultBoard;
use cairn_engine::supervised::spawn;
use cairn_engine::target::Targets;
use cairn_engine::{Executor, Runner, executor, observer, runner};
use cairn_event_store::{KeyFile, Stores};
use cairn_http::{App, HttpSettings};
use cairn_kubernetes::{ConfiguredCluster, KubernetesPlatform};
use cairn_projections::Projections;
use cairn_simcluster::{SimCluster, SimOptions};
use cairn_webhooks::{AddressRules, Dispatcher, DispatcherPorts, HttpCallbacks, SolRenderer};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Operations that one process works on at once.
const CONCURRENCY: usize = 2048;

/// The database with what lies in it, and the lock of its owner.
pub struct Opened {
    /// The database.
    pub database: Database,
    /// What lies in it.
    pub stores: Stores,
    /// Held while this process owns a SQLite file.
    pub lock: OwnerLock,
}

/// Opens the database as its owner.
///
/// # Errors
///
/// What is absent, wrong or taken, with what to do.
pub async fn open(store: &Store) -> anyhow::Result<Opened> {
    if store.database.starts_with("sqlite:") || store.key_file.is_none() {
        std::fs::create_dir_all(&store.data)
            .with_context(|| format!("--data {}", store.data.display()))?;
    }
    let database = Database::connect(&store.database, DbOptions::default())
        .await
        .with_context(|| "--database".to_owned())?;
    let lock = database.lock_owner().context("--database")?;
    let key = KeyFile::load_or_create(&key_path(store, &database)?, &database)
        .await
        .context("--key-file")?;
    let stores = Stores::open(database.clone(), &key)
        .await
        .context("--key-file")?;
    Ok(Opened {
        database,
        stores,
        lock,
    })
}

fn key_path(store: &Store, database: &Database) -> anyhow::Result<PathBuf> {
    match (&store.key_file, database.dialect()) {
        (Some(path), _) => Ok(path.clone()),
        (None, Dialect::Sqlite) => Ok(store.data.join("cairn.key")),
        (None, Dialect::Postgres) => anyhow::bail!(
            "--key-file is needed with PostgreSQL, the same file for every replica: 32 random bytes in base64"
        ),
    }
}

/// The default VIM: a cluster by kubeconfig, or a simulated one in this process.
pub struct DefaultVim {
    /// How the adapter reaches it.
    pub cluster: ConfiguredCluster,
    /// Keeps a simulated cluster alive.
    pub simulated: Option<SimCluster>,
}

/// Makes the default VIM that the settings ask for.
#[must_use]
pub fn default_vim(settings: &Settings) -> Option<DefaultVim> {
    if settings.simulated {
        let token = RandomIds.fresh();
        let options = SimOptions {
            bearer_token: Some(token.clone()),
            ..SimOptions::default()
        };
        let simulated = SimCluster::new(options);
        let cluster = ConfiguredCluster::in_process(simulated.router(), Some(Secret::new(token)));
        return Some(DefaultVim {
            cluster,
            simulated: Some(simulated),
        });
    }
    let file = settings.kubeconfig.as_ref()?;
    Some(DefaultVim {
        cluster: ConfiguredCluster::kubeconfig(file),
        simulated: None,
    })
}

/// All parts, ready to serve.
pub struct Parts {
    app: App,
    runner: Arc<Runner>,
    reads: Arc<Projections>,
    stores: Stores,
    dispatcher: Dispatcher,
    _lock: OwnerLock,
    _simulated: Option<SimCluster>,
}

/// What differs between the program and its tests.
pub struct Options {
    /// Base of all links.
    pub public_url: PublicUrl,
    /// What a crash fault does; the program ends on the spot.
    pub crash: Box<dyn Fn() + Send + Sync>,
    /// Limits of calls to clusters.
    pub calls: cairn_kubernetes::Settings,
    /// The time of events and waits. Leases use the database's.
    pub clock: Arc<dyn Clock>,
    /// What stands before the ports: nothing in the program.
    pub before: Before,
}

/// Puts an implementation of a port before the program's own.
pub type Wrap<P> = Box<dyn FnOnce(Arc<P>) -> Arc<P> + Send>;

/// What tests put before ports, to count, to end and to lose what goes through them.
#[derive(Default)]
pub struct Before {
    /// Before the log.
    pub log: Option<Wrap<dyn EventLog>>,
    /// Before the clusters.
    pub platform: Option<Wrap<dyn ContainerPlatform>>,
    /// Instead of callbacks over HTTP.
    pub callbacks: Option<Arc<dyn Callbacks>>,
}

impl Parts {
    /// Wires everything.
    ///
    /// # Errors
    ///
    /// What cannot be set up.
    pub async fn wire(
        settings: &Settings,
        opened: Opened,
        vim: Option<DefaultVim>,
        options: Options,
    ) -> anyhow::Result<Self> {
        let node = NodeId::parse(RandomIds.fresh())?;
        tracing::info!(%node, "the name of this process, as `owner` of an operation tells it");
        let Opened {
            database,
            stores,
            lock,
        } = opened;
        if database.dialect() == Dialect::Sqlite {
            stores.work.take_over_all(&node).await?;
        }
        let configured = vim
            .as_ref()
            .map(|_| VimId::parse(DEFAULT_VIM))
            .transpose()?;
        let (platform, simulated) = platform(configured.clone(), vim, options.calls);
        let board = settings.enable_faults.then(|| {
            let work = stores.work.clone();
            Arc::new(FaultBoard::new(node.clone(), work, options.crash))
        });
        let before = options.before;
        let platform = match before.platform {
            Some(wrap) => wrap(platform),
            None => platform,
        };
        let log: Arc<dyn EventLog> = match before.log {
            Some(wrap) => wrap(stores.events.clone()),
            None => stores.events.clone(),
        };
        let shared = Shared {
            reads: Arc::new(Projections::open(database, log.clone()).await?),
            log,
            metrics: Arc::new(Counters::try_new()?),
            packages: Arc::new(StoredPackages::new(stores.packages.clone())),
            targets: Arc::new(Targets::new(
                stores.vims.clone(),
                stores.vault.clone(),
                configured.clone().into_iter().collect(),
            )),
            callbacks: match before.callbacks {
                Some(callbacks) => callbacks,
                None => Arc::new(HttpCallbacks::try_new(
                    stores.vault.clone(),
                    address_rules(settings),
                )?),
            },
            clock: options.clock,
            vims: Arc::new(WithConfigured::new(stores.vims.clone(), configured)),
            board,
            stores,
        };
        let executor = shared.executor();
        let http = HttpSettings::new(options.public_url.clone(), settings.lenient);
        Ok(Self {
            runner: shared.runner(platform, runner_settings(node, &settings.clocks)),
            dispatcher: shared.dispatcher(options.public_url),
            app: shared.app(executor, http),
            reads: shared.reads,
            stores: shared.stores,
            _lock: lock,
            _simulated: simulated,
        })
    }

    /// The HTTP routes.
    pub fn router(&self) -> axum::Router {
        cairn_http::router(self.app.clone())
    }

    /// Starts what works in the background; all of it ends when `stop` is cancelled.
    #[must_use]
    pub fn start(self, stop: &CancellationToken) -> Vec<JoinHandle<Option<()>>> {
        let Self {
            runner,
            reads,
            stores,
            dispatcher,
            _lock: lock,
            _simulated: simulated,
            app: _,
        } = self;
        let ends = stop.clone();
        let events = stores.events.clone();
        let listen = spawn("listen", async move {
            tokio::select! { () = ends.cancelled() => {}, () = events.listen() => {} }
        });
        let ends = stop.clone();
        let catching_up = reads.clone();
        let project = spawn("projections", async move {
            tokio::select! { () = ends.cancelled() => {}, () = catching_up.run() => {} }
        });
        let observing = observer::observe(
            runner.clone(),
            reads,
            Tenant::default_tenant(),
            stop.clone(),
        );
        let observe = spawn("observer", observing);
        let deliver = spawn("deliveries", dispatcher.run(stop.clone()));
        let ends = stop.clone();
        let run = spawn("runner", async move {
            runner.run(ends).await;
            // The owner's lock and the simulated cluster are given up last.
            drop((lock, simulated));
        });
        vec![listen, project, observe, deliver, run]
    }
}

/// What several parts are built on.
struct Shared {
    stores: Stores,
    reads: Arc<Projections>,
    log: Arc<dyn EventLog>,
    metrics: Arc<dyn Metrics>,
    packages: Arc<dyn Packages>,
    targets: Arc<Targets>,
    callbacks: Arc<dyn Callbacks>,
    clock: Arc<dyn Clock>,
    vims: Arc<dyn Vims>,
    board: Option<Arc<FaultBoard>>,
}

impl Shared {
    fn executor(&self) -> Arc<Executor> {
        Arc::new(Executor::new(executor::Ports {
            log: self.log.clone(),
            reads: self.reads.clone(),
            packages: self.packages.clone(),
            blobs: self.stores.blobs.clone(),
            callbacks: self.callbacks.clone(),
            targets: self.targets.clone(),
            clock: self.clock.clone(),
            ids: Arc::new(RandomIds),
        }))
    }

    fn runner(
        &self,
        platform: Arc<dyn ContainerPlatform>,
        settings: runner::Settings,
    ) -> Arc<Runner> {
        let ports = runner::Ports {
            log: self.log.clone(),
            work: self.stores.work.clone(),
            blobs: self.stores.blobs.clone(),
            platform,
            packages: self.packages.clone(),
            nfvo: Arc::new(BuiltInNfvo),
            targets: self.targets.clone(),
            vims: self.vims.clone(),
            ids: Arc::new(RandomIds),
            clock: self.clock.clone(),
            faults: self.board.clone(),
            metrics: self.metrics.clone(),
        };
        Arc::new(Runner::new(ports, settings))
    }

    fn dispatcher(&self, public_url: PublicUrl) -> Dispatcher {
        Dispatcher::new(DispatcherPorts {
            log: self.log.clone(),
            deliveries: self.stores.deliveries.clone(),
            callbacks: self.callbacks.clone(),
            renderer: Arc::new(SolRenderer::new(self.log.clone(), public_url)),
            clock: self.clock.clone(),
            ids: Arc::new(RandomIds),
        })
    }

    fn app(&self, executor: Arc<Executor>, settings: HttpSettings) -> App {
        App {
            commands: executor.clone(),
            reads: self.reads.clone(),
            replay: executor,
            packages: self.packages.clone(),
            vims: self.vims.clone(),
            deliveries: self.stores.deliveries.clone(),
            work: self.stores.work.clone(),
            faults: self.board.clone().map(|board| board as Arc<dyn Faults>),
            metrics: self.metrics.clone(),
            log: self.log.clone(),
            clock: self.clock.clone(),
            ids: Arc::new(RandomIds),
            settings,
        }
    }
}

fn runner_settings(node: NodeId, clocks: &Clocks) -> runner::Settings {
    runner::Settings {
        node,
        clocks: clocks.clone(),
        concurrency: CONCURRENCY,
    }
}

/// Without authentication only loopback is listened on, so callbacks to loopback are no danger of their own.
fn address_rules(settings: &Settings) -> AddressRules {
    AddressRules {
        allow_private: settings.allow_private_callbacks,
        allow_loopback: settings.allow_private_callbacks || settings.listen.ip().is_loopback(),
    }
}

fn platform(
    configured: Option<VimId>,
    vim: Option<DefaultVim>,
    calls: cairn_kubernetes::Settings,
) -> (Arc<dyn ContainerPlatform>, Option<SimCluster>) {
    let platform = KubernetesPlatform::new(calls);
    match (configured, vim) {
        (Some(id), Some(vim)) => (
            Arc::new(platform.with_configured(id, vim.cluster)),
            vim.simulated,
        ),
        (Some(_) | None, None) | (None, Some(_)) => (Arc::new(platform), None),
    }
}
