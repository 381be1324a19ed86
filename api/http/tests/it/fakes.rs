//! Fakes of the ports: rows to read, answers to give, and a memory of what was asked.

use async_trait::async_trait;
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::*;
use cairn_domain::lcm_op_occ::VnfLcmOpOcc;
use cairn_domain::merge_patch::merge_members;
use cairn_domain::ports::*;
use cairn_domain::problem::Problem;
use cairn_domain::secret::SealedSecret;
use cairn_domain::subscription::{CallbackAuth, LccnSubscription, Verbosity};
use cairn_domain::testing::{OpStory, op};
use cairn_domain::time::Timestamp;
use cairn_domain::vim::{VimChange, VimConnectionInfo};
use cairn_domain::vnf_instance::VnfInstance;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What the commands do.
#[derive(Default)]
pub enum Mood {
    /// Answer from the queue, or as usual.
    #[default]
    Willing,
    /// Panic.
    Panicking,
    /// Never answer.
    Silent,
}

#[derive(Default)]
pub struct Fakes {
    pub mood: Mood,
    pub answers: Mutex<VecDeque<Result<Accepted, CommandError>>>,
    pub asked: Mutex<Vec<(Caller, Request)>>,
    pub instances: Mutex<Vec<Row<VnfInstance>>>,
    pub op_occs: Mutex<Vec<Row<VnfLcmOpOcc>>>,
    pub subscriptions: Mutex<Vec<Row<LccnSubscription>>>,
    pub history: Mutex<Vec<Envelope>>,
    pub moments: Mutex<Vec<Moment>>,
    pub packages: Mutex<Vec<PackageRecord>>,
    pub vims: Mutex<Vec<(VimId, VimConnectionInfo)>>,
    pub sealed: Mutex<Vec<SealedSecret>>,
    pub deliveries: Mutex<Vec<Delivery>>,
    pub owner: Mutex<Option<Owner>>,
    pub faults_enabled: bool,
    pub faults: Mutex<Vec<Fault>>,
    pub down: bool,
    pub answered: Mutex<Vec<u16>>,
    pub drawn: AtomicU64,
}

impl Fakes {
    /// An instance and its operation as a story left them, with their history.
    pub fn telling(story: &OpStory) -> Self {
        let fakes = Self::default();
        let instance = story.world.instance().clone();
        let op = story.op().clone();
        let events = story
            .history()
            .into_iter()
            .zip(1u64..)
            .map(|(event, sequence)| Envelope {
                position: sequence,
                recorded_at: event.at(),
                stream: StreamId::VnfLcmOpOcc(op.id.clone()),
                sequence,
                vnf_instance_id: Some(instance.id.clone()),
                body: EventBody::VnfLcmOpOcc(event),
            });
        fakes.history.lock().unwrap().extend(events);
        fakes.instances.lock().unwrap().push(Row {
            state: Arc::new(instance),
            version: 5,
            position: 41,
        });
        fakes.op_occs.lock().unwrap().push(Row {
            state: Arc::new(op),
            version: 9,
            position: 41,
        });
        fakes
    }

    /// An instance that runs, and the operation that made it so.
    pub fn running() -> Self {
        Self::telling(&op().instantiate().completed())
    }

    pub fn answering(self, answer: Result<Accepted, CommandError>) -> Self {
        self.answers.lock().unwrap().push_back(answer);
        self
    }

    pub fn subscribed(self) -> Self {
        self.subscriptions.lock().unwrap().push(Row {
            state: Arc::new(LccnSubscription {
                id: SubscriptionId::parse("s-1").unwrap(),
                tenant: Tenant::default_tenant(),
                created_at: Timestamp::from_millis(0),
                callback_uri: "https://nfvo.example/cb".into(),
                filter: Some(json!({"operationTypes": ["SCALE"]})),
                verbosity: Verbosity::Short,
                auth: CallbackAuth::Basic {
                    user_name: "listener".into(),
                    password: cairn_domain::secret::SecretRef("ref-1".into()),
                },
                deleted: false,
            }),
            version: 1,
            position: 2,
        });
        self
    }

    pub fn instance_id(&self) -> String {
        self.instances.lock().unwrap()[0].state.id.to_string()
    }

    pub fn op_id(&self) -> String {
        self.op_occs.lock().unwrap()[0].state.id.to_string()
    }

    /// The one request that reached the commands.
    #[track_caller]
    pub fn only_request(&self) -> (Caller, Request) {
        let asked = self.asked.lock().unwrap();
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked[0].clone()
    }

    fn reachable(&self) -> PortResult<()> {
        if self.down {
            Err(PortError::Unavailable("the database is down".into()))
        } else {
            Ok(())
        }
    }
}

fn found<S: Clone>(rows: &Mutex<Vec<Row<S>>>, is: impl Fn(&S) -> bool) -> Option<Row<S>> {
    rows.lock()
        .unwrap()
        .iter()
        .find(|row| is(&row.state))
        .cloned()
}

fn absent() -> PortError {
    PortError::Refused(Problem::new(404, "there is no such thing"))
}

#[async_trait]
impl Commands for Fakes {
    async fn execute(&self, caller: Caller, request: Request) -> Result<Accepted, CommandError> {
        let usual = match request {
            Request::StartOperation { .. } => {
                Accepted::Operation(VnfLcmOpOccId::parse("o-1").unwrap())
            }
            _ => Accepted::Done,
        };
        self.asked.lock().unwrap().push((caller, request));
        match self.mood {
            Mood::Willing => self
                .answers
                .lock()
                .unwrap()
                .pop_front()
                .unwrap_or(Ok(usual)),
            Mood::Panicking => panic!("a defect with a secret inside: hunter2"),
            Mood::Silent => std::future::pending().await,
        }
    }
}

/// Each row at the place of its number.
fn part<S: Clone>(rows: &Mutex<Vec<Row<S>>>, page: Page) -> Vec<Listed<S>> {
    let rows = rows.lock().unwrap();
    let placed = (1..).zip(rows.iter()).map(|(place, row)| Listed {
        place,
        row: row.clone(),
    });
    placed
        .filter(|listed| listed.place > page.after)
        .take(page.limit as usize)
        .collect()
}

#[async_trait]
impl ReadModels for Fakes {
    async fn instance(
        &self,
        _: &Tenant,
        id: &VnfInstanceId,
    ) -> PortResult<Option<Row<VnfInstance>>> {
        self.reachable()?;
        Ok(found(&self.instances, |i| i.id == *id))
    }
    async fn instances(&self, _: &Tenant, page: Page) -> PortResult<Vec<Listed<VnfInstance>>> {
        self.reachable()?;
        Ok(part(&self.instances, page))
    }
    async fn halted(&self, _: &Tenant) -> PortResult<Vec<VnfLcmOpOccId>> {
        Ok(Vec::new())
    }
    async fn packages_in_use(&self, _: &Tenant) -> PortResult<BTreeSet<VnfPkgId>> {
        let instances = self.instances.lock().unwrap();
        let used = instances.iter().flat_map(|row| row.state.packages());
        Ok(used.cloned().collect())
    }
    async fn op_occ(&self, _: &Tenant, id: &VnfLcmOpOccId) -> PortResult<Option<Row<VnfLcmOpOcc>>> {
        Ok(found(&self.op_occs, |o| o.id == *id))
    }
    async fn op_occs(&self, _: &Tenant, page: Page) -> PortResult<Vec<Listed<VnfLcmOpOcc>>> {
        Ok(part(&self.op_occs, page))
    }
    async fn subscription(
        &self,
        _: &Tenant,
        id: &SubscriptionId,
    ) -> PortResult<Option<Row<LccnSubscription>>> {
        Ok(found(&self.subscriptions, |s| s.id == *id))
    }
    async fn subscriptions(
        &self,
        _: &Tenant,
        page: Page,
    ) -> PortResult<Vec<Listed<LccnSubscription>>> {
        Ok(part(&self.subscriptions, page))
    }
    async fn history(&self, _: &Tenant, id: &VnfInstanceId) -> PortResult<Vec<Envelope>> {
        let all = self.history.lock().unwrap();
        Ok(all
            .iter()
            .filter(|e| e.vnf_instance_id.as_ref() == Some(id))
            .cloned()
            .collect())
    }
    async fn catch_up(&self, _: u64) -> PortResult<()> {
        Ok(())
    }
}

#[async_trait]
impl Replay for Fakes {
    async fn instance_at(
        &self,
        _: &Tenant,
        id: &VnfInstanceId,
        moment: Moment,
    ) -> PortResult<Option<Row<VnfInstance>>> {
        self.moments.lock().unwrap().push(moment);
        Ok(found(&self.instances, |i| i.id == *id))
    }
}

#[async_trait]
impl Packages for Fakes {
    async fn create(
        &self,
        id: VnfPkgId,
        user_defined_data: Map<String, serde_json::Value>,
        at: Timestamp,
    ) -> PortResult<PackageRecord> {
        let record = PackageRecord {
            id,
            onboarding_state: OnboardingState::Created,
            enabled: false,
            vnfd: None,
            checksum: None,
            artifacts: Vec::new(),
            failure: None,
            user_defined_data,
            created_at: at,
        };
        self.packages.lock().unwrap().push(record.clone());
        Ok(record)
    }
    async fn upload(&self, id: &VnfPkgId, csar: Vec<u8>) -> PortResult<PackageRecord> {
        let mut all = self.packages.lock().unwrap();
        let record = all.iter_mut().find(|r| r.id == *id).ok_or_else(absent)?;
        if csar.starts_with(b"PK") {
            record.onboarding_state = OnboardingState::Onboarded;
            record.enabled = true;
            record.vnfd = Some(cairn_domain::testing::vnfd());
            record.checksum = Some("abc".into());
            record.artifacts = [
                "Definitions/vnfd.yaml",
                "Files/kubernetes/web.yaml",
                "TOSCA-Metadata/TOSCA.meta",
            ]
            .map(|path| PackageArtifact {
                path: path.into(),
                sha256: "def".into(),
                size: 3,
            })
            .to_vec();
        } else {
            record.onboarding_state = OnboardingState::Error;
            record.failure = Some(Problem::new(400, "not a zip"));
        }
        Ok(record.clone())
    }
    async fn list(&self) -> PortResult<Vec<PackageRecord>> {
        Ok(self.packages.lock().unwrap().clone())
    }
    async fn get(&self, id: &VnfPkgId) -> PortResult<Option<PackageRecord>> {
        Ok(self
            .packages
            .lock()
            .unwrap()
            .iter()
            .find(|r| r.id == *id)
            .cloned())
    }
    async fn by_vnfd(&self, _: &VnfdId) -> PortResult<Option<PackageRecord>> {
        Ok(None)
    }
    async fn modify(
        &self,
        id: &VnfPkgId,
        enabled: Option<bool>,
        user_defined_data: &Map<String, Value>,
    ) -> PortResult<()> {
        let mut all = self.packages.lock().unwrap();
        let record = all.iter_mut().find(|r| r.id == *id).ok_or_else(absent)?;
        record.enabled = enabled.unwrap_or(record.enabled);
        merge_members(&mut record.user_defined_data, user_defined_data);
        Ok(())
    }
    async fn delete(&self, id: &VnfPkgId) -> PortResult<()> {
        let mut all = self.packages.lock().unwrap();
        let record = all.iter().position(|r| r.id == *id).ok_or_else(absent)?;
        if all[record].enabled {
            return Err(PortError::Refused(Problem::new(
                409,
                "the package is ENABLED; disable it first",
            )));
        }
        all.remove(record);
        Ok(())
    }
    async fn content(&self, _: &VnfPkgId) -> PortResult<Vec<u8>> {
        Ok(b"PK-content".to_vec())
    }
    async fn artifact(&self, _: &VnfPkgId, path: &str) -> PortResult<Vec<u8>> {
        Ok(path.as_bytes().to_vec())
    }
    async fn vnfd_yaml(&self, _: &VnfPkgId) -> PortResult<String> {
        Ok("tosca_definitions_version: tosca_simple_yaml_1_2\n".into())
    }
    async fn manifests(&self, _: &VnfPkgId, _: Option<&[String]>) -> PortResult<Vec<Manifest>> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Vims for Fakes {
    async fn register(
        &self,
        id: VimId,
        info: VimConnectionInfo,
        secrets: Vec<SealedSecret>,
        _: Timestamp,
    ) -> PortResult<()> {
        self.sealed.lock().unwrap().extend(secrets);
        self.vims.lock().unwrap().push((id, info));
        Ok(())
    }
    async fn list(&self) -> PortResult<Vec<(VimId, VimConnectionInfo)>> {
        Ok(self.vims.lock().unwrap().clone())
    }
    async fn get(&self, id: &VimId) -> PortResult<Option<VimConnectionInfo>> {
        Ok(self
            .vims
            .lock()
            .unwrap()
            .iter()
            .find(|(v, _)| v == id)
            .map(|(_, info)| info.clone()))
    }
    async fn change(
        &self,
        id: &VimId,
        change: VimChange,
        secrets: Vec<SealedSecret>,
    ) -> PortResult<VimConnectionInfo> {
        let mut all = self.vims.lock().unwrap();
        let (_, kept) = all.iter_mut().find(|(v, _)| v == id).ok_or_else(absent)?;
        let changed = change
            .applied_to(kept.clone())
            .map_err(|why| PortError::Refused(Problem::new(422, why.to_string())))?;
        self.sealed.lock().unwrap().extend(secrets);
        *kept = changed.clone();
        Ok(changed)
    }
    async fn remove(&self, id: &VimId) -> PortResult<()> {
        let mut all = self.vims.lock().unwrap();
        let place = all.iter().position(|(v, _)| v == id).ok_or_else(absent)?;
        all.remove(place);
        Ok(())
    }
}

#[async_trait]
impl Deliveries for Fakes {
    async fn cursor(&self) -> PortResult<u64> {
        Ok(0)
    }
    async fn enqueue(&self, _: Vec<Delivery>, _: u64, _: u64) -> PortResult<()> {
        Ok(())
    }
    async fn due(&self, _: u32, _: u64) -> PortResult<Vec<Delivery>> {
        Ok(Vec::new())
    }
    async fn record(&self, _: &Delivery) -> PortResult<()> {
        Ok(())
    }
    async fn of_subscription(&self, id: &SubscriptionId) -> PortResult<Vec<Delivery>> {
        Ok(self
            .deliveries
            .lock()
            .unwrap()
            .iter()
            .filter(|d| d.subscription == *id)
            .cloned()
            .collect())
    }
    async fn resend(&self, _: &SubscriptionId, id: &DeliveryId) -> PortResult<bool> {
        Ok(self.deliveries.lock().unwrap().iter().any(|d| d.id == *id))
    }
    async fn drop_pending(&self, _: &SubscriptionId) -> PortResult<()> {
        Ok(())
    }
}

#[async_trait]
impl WorkQueue for Fakes {
    async fn claim(&self, _: &NodeId, _: usize) -> PortResult<Vec<Lease>> {
        Ok(Vec::new())
    }
    async fn heartbeat(&self, _: &NodeId, _: &[Lease]) -> PortResult<Vec<Lease>> {
        Ok(Vec::new())
    }
    async fn release(&self, _: &NodeId, _: &[Lease]) -> PortResult<()> {
        Ok(())
    }
    async fn quarantine(&self, _: &Lease, _: &str, _: u64) -> PortResult<()> {
        Ok(())
    }
    async fn owner(&self, _: &VnfLcmOpOccId) -> PortResult<Option<Owner>> {
        Ok(self.owner.lock().unwrap().clone())
    }
    async fn other_nodes(&self, _: &NodeId) -> PortResult<u32> {
        Ok(0)
    }
}

#[async_trait]
impl Faults for Fakes {
    fn list(&self) -> Vec<Fault> {
        self.faults.lock().unwrap().clone()
    }
    async fn replace(&self, faults: Vec<Fault>) -> PortResult<()> {
        *self.faults.lock().unwrap() = faults;
        Ok(())
    }
}

impl Metrics for Fakes {
    fn text(&self) -> String {
        "cairn_up 1\n".into()
    }
    fn unclassified_wait(&self, _: &str, _: &str) {}
    fn answered(&self, status: u16) {
        self.answered.lock().unwrap().push(status);
    }
}

#[async_trait]
impl EventLog for Fakes {
    async fn load(&self, _: &StreamId) -> PortResult<Vec<Envelope>> {
        panic!("the API never reads the log")
    }
    async fn op_occ(&self, _: &VnfLcmOpOccId) -> PortResult<Option<(VnfLcmOpOcc, u64)>> {
        panic!("the API never reads the log")
    }
    async fn instance(&self, _: &VnfInstanceId) -> PortResult<Option<(VnfInstance, u64)>> {
        panic!("the API never reads the log")
    }
    async fn subscription(
        &self,
        _: &SubscriptionId,
    ) -> PortResult<Option<(LccnSubscription, u64)>> {
        panic!("the API never reads the log")
    }
    async fn append(&self, _: Unit) -> PortResult<Appended> {
        panic!("the API never writes the log")
    }
    async fn answered(&self, _: &str) -> PortResult<Option<KeyedAnswer>> {
        panic!("the API never reads the log")
    }
    async fn read_after(&self, _: u64, _: u32) -> PortResult<Vec<Envelope>> {
        panic!("the API never reads the log")
    }
    async fn of_subscriptions(&self, _: u64) -> PortResult<Vec<Envelope>> {
        panic!("the API never reads the log")
    }
    async fn of_instance(&self, _: &VnfInstanceId) -> PortResult<Vec<Envelope>> {
        panic!("the API never reads the log")
    }
    async fn head(&self) -> PortResult<u64> {
        self.reachable()?;
        Ok(7)
    }
    async fn changed(&self, _: u64) {}
}

impl Clock for Fakes {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000)
    }
}

impl Ids for Fakes {
    fn fresh(&self) -> String {
        format!("id-{}", self.drawn.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
