//! One unit of work (key, fence, two streams, state rows) and the read models after it, by 8 tasks on PostgreSQL,
//! against the same statements sent as bare SQL with bodies of the same size.

use crate::report::{Good, Report};
use anyhow::Context;
use cairn_db::{Database, DbOptions};
use cairn_domain::history::{EventBody, StreamId};
use cairn_domain::ids::{NodeId, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::{self, VnfLcmOpOcc, VnfLcmOpOccEvent};
use cairn_domain::ports::{
    Append, EventLog, Fence, KeyedAnswer, ReadModels, StateAfter, Unit, WorkChange, WorkQueue,
};
use cairn_domain::testing::{instance, op};
use cairn_domain::vnf_instance::{self, VnfInstance, VnfInstanceEvent};
use cairn_event_store::{KeyFile, Stores};
use cairn_projections::Projections;
use futures::future::try_join_all;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{Connection, PgConnection, Row};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Mutex;

const TASKS: usize = 8;
const UNITS: u64 = 60;
const ROUNDS: usize = 3;

/// Measures both in turns, each on a database of its own.
pub async fn measure() -> anyhow::Result<Report> {
    let admin = std::env::var("CAIRN_TEST_POSTGRES")
        .context("CAIRN_TEST_POSTGRES: tests/postgres/up prints it")?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(on_fresh(&admin, Kind::Ours).await?);
        theirs.push(on_fresh(&admin, Kind::Bare).await?);
    }
    let (ours, theirs) = (crate::read::median(ours), crate::read::median(theirs));
    Ok(Report {
        name: "unit of work, PostgreSQL, 8 tasks",
        figures: format!("{ours:.0}/s against {theirs:.0}/s bare"),
        ratio: ours / theirs,
        limit: 0.6,
        good: Good::AtLeast,
    })
}

#[derive(Clone, Copy)]
enum Kind {
    Ours,
    Bare,
}

async fn on_fresh(admin: &str, kind: Kind) -> anyhow::Result<f64> {
    let name = format!("cairn_bench_{}", uuid::Uuid::now_v7().simple());
    let mut server = PgConnection::connect(admin).await?;
    sqlx::query(&format!("CREATE DATABASE {name}"))
        .execute(&mut server)
        .await?;
    let (base, _) = admin
        .rsplit_once('/')
        .context("CAIRN_TEST_POSTGRES names no database")?;
    let url = format!("{base}/{name}");
    let seconds = match kind {
        Kind::Ours => run_ours(&url).await,
        Kind::Bare => run_bare(&url).await,
    };
    sqlx::query(&format!("DROP DATABASE {name} WITH (FORCE)"))
        .execute(&mut server)
        .await?;
    let units = u32::try_from(UNITS * TASKS as u64)?;
    Ok(f64::from(units) / seconds?)
}

/// A stream of an instance and one of an operation at work, as they are appended to.
struct Pair {
    op: VnfLcmOpOcc,
    op_version: u64,
    instance: VnfInstance,
    instance_version: u64,
    fence: u64,
}

async fn run_ours(url: &str) -> anyhow::Result<f64> {
    let database = Database::connect(url, DbOptions::default()).await?;
    let stores = Stores::open(database.clone(), &KeyFile::from_bytes([7; 32])).await?;
    let projections = Arc::new(Projections::open(database.clone(), stores.events.clone()).await?);
    let mut pairs = Vec::new();
    for n in 0..TASKS {
        pairs.push(begin(&*stores.events, n).await?);
    }
    let node = NodeId::parse("bench")?;
    for lease in stores.work.claim(&node, TASKS).await? {
        if let Some(pair) = pairs.iter_mut().find(|pair| pair.op.id == lease.op) {
            pair.fence = lease.fence;
        }
    }
    let began = Instant::now();
    let tasks = pairs
        .into_iter()
        .map(|pair| ours(stores.events.clone(), projections.clone(), pair));
    try_join_all(tasks).await?;
    let seconds = began.elapsed().as_secs_f64();
    database.close().await;
    Ok(seconds)
}

async fn begin(log: &dyn EventLog, n: usize) -> anyhow::Result<Pair> {
    let op_id = VnfLcmOpOccId::parse(format!("op-{n}"))?;
    let instance_id = VnfInstanceId::parse(format!("instance-{n}"))?;
    let mut op_events = op().instantiate().begun().history();
    for event in &mut op_events {
        if let VnfLcmOpOccEvent::OperationStarted {
            id,
            vnf_instance_id,
            ..
        } = event
        {
            id.clone_from(&op_id);
            vnf_instance_id.clone_from(&instance_id);
        }
    }
    let mut instance_events = instance().instantiated().history();
    for event in &mut instance_events {
        if let VnfInstanceEvent::VnfIdentifierCreated { id, .. } = event {
            id.clone_from(&instance_id);
        }
    }
    let op = op_events
        .iter()
        .fold(None, lcm_op_occ::evolve)
        .context("no operation")?;
    let instance = instance_events
        .iter()
        .fold(None, vnf_instance::evolve)
        .context("no instance")?;
    let mut pair = Pair {
        op_version: u64::try_from(op_events.len())?,
        instance_version: u64::try_from(instance_events.len())?,
        op,
        instance,
        fence: 0,
    };
    let mut unit = Unit {
        work: vec![WorkChange::Needed(op_id)],
        ..Unit::default()
    };
    unit.appends = pair.appends(0, 0, op_events, instance_events);
    log.append(unit).await?;
    pair.fence = 0;
    Ok(pair)
}

impl Pair {
    fn appends(
        &self,
        op_version: u64,
        instance_version: u64,
        op_events: Vec<VnfLcmOpOccEvent>,
        instance_events: Vec<VnfInstanceEvent>,
    ) -> Vec<Append> {
        vec![
            Append {
                stream: StreamId::VnfLcmOpOcc(self.op.id.clone()),
                expected_version: op_version,
                vnf_instance_id: Some(self.instance.id.clone()),
                events: op_events.into_iter().map(EventBody::VnfLcmOpOcc).collect(),
                state: StateAfter::VnfLcmOpOcc(Box::new(self.op.clone())),
            },
            Append {
                stream: StreamId::VnfInstance(self.instance.id.clone()),
                expected_version: instance_version,
                vnf_instance_id: Some(self.instance.id.clone()),
                events: instance_events
                    .into_iter()
                    .map(EventBody::VnfInstance)
                    .collect(),
                state: StateAfter::VnfInstance(Box::new(self.instance.clone())),
            },
        ]
    }

    fn next(&mut self, n: u64) -> Unit {
        let at = self.op.start_time;
        let told = VnfLcmOpOccEvent::OutcomeUnknown {
            at,
            step: 0,
            why: format!("unit {n}"),
        };
        let seen = VnfInstanceEvent::VnfcsObserved {
            at,
            vnfcs: self.instance.vnfcs().to_vec(),
        };
        let appends = self.appends(
            self.op_version,
            self.instance_version,
            vec![told],
            vec![seen],
        );
        self.op_version += 1;
        self.instance_version += 1;
        Unit {
            key: Some(KeyedAnswer {
                key: format!("{}/{n}", self.op.id),
                request_digest: "digest".into(),
                answer: "done".into(),
            }),
            fence: Some(Fence {
                op: self.op.id.clone(),
                number: self.fence,
            }),
            appends,
            ..Unit::default()
        }
    }
}

async fn ours(
    log: Arc<cairn_event_store::EventStore>,
    projections: Arc<Projections>,
    mut pair: Pair,
) -> anyhow::Result<()> {
    for n in 0..UNITS {
        log.append(pair.next(n)).await?;
        projections.catch_up(log.head().await?).await?;
    }
    Ok(())
}

async fn run_bare(url: &str) -> anyhow::Result<f64> {
    // The same tables, and rows of the same size, made by the same code.
    let database = Database::connect(url, DbOptions::default()).await?;
    let stores = Stores::open(database.clone(), &KeyFile::from_bytes([7; 32])).await?;
    let projections = Projections::open(database.clone(), stores.events.clone()).await?;
    let mut pairs = Vec::new();
    for n in 0..TASKS {
        pairs.push(begin(&*stores.events, n).await?);
    }
    stores.work.claim(&NodeId::parse("bench")?, TASKS).await?;
    projections.catch_up(stores.events.head().await?).await?;
    database.close().await;
    let pool = PgPoolOptions::new().max_connections(5).connect(url).await?;
    let catching_up = Mutex::new(());
    let began = Instant::now();
    try_join_all(
        pairs
            .into_iter()
            .map(|pair| bare(&pool, &catching_up, pair)),
    )
    .await?;
    Ok(began.elapsed().as_secs_f64())
}

async fn bare(pool: &PgPool, catching_up: &Mutex<()>, pair: Pair) -> anyhow::Result<()> {
    let op_state = serde_json::to_string(&pair.op)?;
    let instance_state = serde_json::to_string(&pair.instance)?;
    let bodies = [
        (
            "VnfLcmOpOcc",
            pair.op.id.as_str(),
            &op_state,
            pair.op_version,
        ),
        (
            "VnfInstance",
            pair.instance.id.as_str(),
            &instance_state,
            pair.instance_version,
        ),
    ];
    for n in 0..UNITS {
        let head = unit(pool, &pair, &bodies, n).await?;
        catch_up(pool, catching_up, &op_state, &instance_state, head).await?;
    }
    Ok(())
}

async fn unit(
    pool: &PgPool,
    pair: &Pair,
    bodies: &[(&str, &str, &String, u64); 2],
    n: u64,
) -> anyhow::Result<i64> {
    let mut tx = pool.begin().await?;
    sqlx::query(
        "INSERT INTO keyed_answers (key, request_digest, answer, created_at) VALUES ($1, $2, $3, 0) ON CONFLICT (key) DO NOTHING",
    )
    .bind(format!("{}/{n}", pair.op.id))
    .bind("digest")
    .bind("done")
    .execute(&mut *tx)
    .await?;
    sqlx::query("SELECT op_id FROM work WHERE op_id = $1 AND needed = 1 FOR SHARE")
        .bind(pair.op.id.as_str())
        .fetch_optional(&mut *tx)
        .await?;
    for (kind, id, _, _) in bodies {
        sqlx::query(
            "SELECT max(sequence) FROM events WHERE aggregate_type = $1 AND aggregate_id = $2",
        )
        .bind(kind)
        .bind(id)
        .fetch_one(&mut *tx)
        .await?;
    }
    let head: i64 = sqlx::query(
        "UPDATE log_position SET position = position + 2 WHERE id = 1 RETURNING position",
    )
    .fetch_one(&mut *tx)
    .await?
    .try_get(0)?;
    for (kind, id, state, version) in bodies {
        sqlx::query(
            "INSERT INTO states (aggregate_type, aggregate_id, version, schema_version, state) VALUES ($1, $2, $3, 1, $4) ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE SET version = excluded.version, state = excluded.state",
        )
        .bind(kind)
        .bind(id)
        .bind(i64::try_from(version + n)?)
        .bind(state.as_str())
        .execute(&mut *tx)
        .await?;
    }
    for (place, (kind, id, _, version)) in (0i64..).zip(bodies) {
        sqlx::query(
            "INSERT INTO events (aggregate_type, aggregate_id, sequence, event_type, event_version, payload, metadata, position, recorded_at, vnf_instance_id) VALUES ($1, $2, $3, 'Told', '1.0', $4::json, '{}'::json, $5, 0, $6)",
        )
        .bind(kind)
        .bind(id)
        .bind(i64::try_from(version + n + 1)?)
        .bind(PAYLOAD)
        .bind(head - 1 + place)
        .bind(pair.instance.id.as_str())
        .execute(&mut *tx)
        .await?;
    }
    sqlx::query("SELECT pg_notify('cairn', $1)")
        .bind(head.to_string())
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(head)
}

/// An event of the size that is appended by the other side.
const PAYLOAD: &str =
    r#"{"OutcomeUnknown":{"at":"2026-01-01T00:00:00.000Z","step":0,"why":"unit 10"}}"#;

async fn catch_up(
    pool: &PgPool,
    catching_up: &Mutex<()>,
    op_state: &str,
    instance_state: &str,
    head: i64,
) -> anyhow::Result<()> {
    if checkpoint(pool).await? >= head {
        return Ok(());
    }
    let _one_at_a_time = catching_up.lock().await;
    let from = checkpoint(pool).await?;
    if from >= head {
        return Ok(());
    }
    sqlx::query("SELECT position FROM log_position")
        .fetch_one(pool)
        .await?;
    let events = sqlx::query(
        "SELECT position, aggregate_type, aggregate_id, sequence, payload::text, vnf_instance_id FROM events WHERE position > $1 ORDER BY position LIMIT 500",
    )
    .bind(from)
    .fetch_all(pool)
    .await?;
    let mut tx = pool.begin().await?;
    sqlx::query("SELECT name, position FROM checkpoints ORDER BY name FOR UPDATE")
        .fetch_all(&mut *tx)
        .await?;
    let mut last = from;
    let mut rows = std::collections::BTreeMap::new();
    for event in &events {
        last = event.try_get(0)?;
        let (kind, id): (String, String) = (event.try_get(1)?, event.try_get(2)?);
        rows.insert((kind.clone(), id.clone()), last);
        sqlx::query(
            "INSERT INTO timeline (vnf_instance_id, position, recorded_at, aggregate_type, aggregate_id, sequence, tenant, body) VALUES ($1, $2, 0, $3, $4, $5, NULL, $6)",
        )
        .bind(event.try_get::<String, _>(5)?)
        .bind(last)
        .bind(kind)
        .bind(id)
        .bind(event.try_get::<i64, _>(3)?)
        .bind(event.try_get::<String, _>(4)?)
        .execute(&mut *tx)
        .await?;
    }
    for (row, position) in rows {
        show(&mut tx, &row, position, [op_state, instance_state]).await?;
    }
    for name in [
        "subscriptions",
        "timeline",
        "vnf_instances",
        "vnf_lcm_op_occs",
    ] {
        sqlx::query("UPDATE checkpoints SET position = $2 WHERE name = $1")
            .bind(name)
            .bind(last)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    Ok(())
}

async fn checkpoint(pool: &PgPool) -> anyhow::Result<i64> {
    Ok(sqlx::query("SELECT min(position) FROM checkpoints")
        .fetch_one(pool)
        .await?
        .try_get(0)?)
}

/// One row of a read model: read, folded, written.
async fn show(
    tx: &mut PgConnection,
    (kind, id): &(String, String),
    position: i64,
    [op_state, instance_state]: [&str; 2],
) -> anyhow::Result<()> {
    let (table, state) = if kind == "VnfInstance" {
        ("vnf_instances", instance_state)
    } else {
        ("vnf_lcm_op_occs", op_state)
    };
    sqlx::query(&format!(
        "SELECT state, version, position FROM {table} WHERE id = $1"
    ))
    .bind(id)
    .fetch_optional(&mut *tx)
    .await?;
    sqlx::query(&format!(
        "UPDATE {table} SET position = $2, state = $3 WHERE id = $1"
    ))
    .bind(id)
    .bind(position)
    .bind(state)
    .execute(&mut *tx)
    .await?;
    Ok(())
}
