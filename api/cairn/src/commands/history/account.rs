//! What is printed, from wherever it was read.

use crate::cli::StoreFlags;
use crate::commands::client::Client;
use crate::settings::Store;
use anyhow::{Context, bail};
use cairn_api_types::PublicUrl;
use cairn_api_types::cairn::{CairnVnfInstance, HistoryDto};
use cairn_db::{Database, DbOptions};
use cairn_domain::history::{Envelope, EventBody};
use cairn_domain::ids::VnfInstanceId;
use cairn_domain::ports::{EventLog, Row};
use cairn_domain::root::Pure;
use cairn_domain::time::Timestamp;
use cairn_domain::vnf_instance::VnfInstance;
use cairn_event_store::EventStore;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// The events of an instance and, where a time was asked for, the instance as it was, as `/cairn/v1` answers them.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// The instance.
    pub id: String,
    /// Its events by rising position.
    pub events: Vec<Value>,
    /// The time that was asked for, and the instance then, without links: they lead to a server that may not run.
    pub then: Option<(Timestamp, Value)>,
}

impl Account {
    /// Reads the database, without a key and without a server.
    ///
    /// # Errors
    ///
    /// An absent database, an instance that never was or not yet.
    pub async fn from_database(
        flags: &StoreFlags,
        id: &VnfInstanceId,
        at: Option<Timestamp>,
    ) -> anyhow::Result<Self> {
        let store = Store::of(flags)?;
        let options = DbOptions {
            create: false,
            ..DbOptions::default()
        };
        let database = Database::connect(&store.database, options)
            .await
            .context("--database")?;
        let read = EventStore::without_key(database.clone())
            .of_instance(id)
            .await;
        database.close().await;
        let envelopes = read.context("the events cannot be read")?;
        let history = serde_json::to_value(HistoryDto::of(id, &envelopes))?;
        // Links are dropped below; any base serves.
        let base = PublicUrl::parse("http://127.0.0.1:8080")?;
        let then = at.and_then(|at| folded(&envelopes, at));
        let then = then.map(|row| serde_json::to_value(CairnVnfInstance::of(&row, &base)));
        Self::of(id, history, at, then.transpose()?)
    }

    /// Asks a server.
    ///
    /// # Errors
    ///
    /// An unreachable server, an instance that never was or not yet.
    pub async fn from_server(
        server: &str,
        id: &VnfInstanceId,
        at: Option<Timestamp>,
    ) -> anyhow::Result<Self> {
        let client = Client::of(server).context("--server")?;
        let history = client
            .get(
                &["cairn", "v1", "vnf_instances", id.as_str(), "history"],
                None,
            )
            .await?;
        if history.status == 404 {
            return Err(never_was(id));
        }
        let history = history.success()?.body;
        let Some(at) = at else {
            return Self::of(id, history, None, None);
        };
        let path = ["cairn", "v1", "vnf_instances", id.as_str()];
        let then = client.get(&path, Some(("at", &at.to_string()))).await?;
        let then = if then.status == 404 {
            None
        } else {
            Some(then.success()?.body)
        };
        Self::of(id, history, Some(at), then)
    }

    fn of(
        id: &VnfInstanceId,
        mut history: Value,
        at: Option<Timestamp>,
        then: Option<Value>,
    ) -> anyhow::Result<Self> {
        let Value::Array(mut events) = history["events"].take() else {
            bail!("the answer holds no events; is this a Cairn server?");
        };
        let Some(first) = events.first() else {
            return Err(never_was(id));
        };
        let created = first["recordedAt"].as_str().unwrap_or_default().to_owned();
        let Some(at) = at else {
            return Ok(Self {
                id: id.to_string(),
                events,
                then: None,
            });
        };
        events.retain(|event| recorded_at(event).is_none_or(|recorded| recorded <= at));
        let Some(mut then) = then else {
            bail!("VNF instance {id} did not exist at {at}; it was created at {created}");
        };
        if let Value::Object(members) = &mut then {
            members.remove("_links");
        }
        Ok(Self {
            id: id.to_string(),
            events,
            then: Some((at, then)),
        })
    }

    /// One JSON document: the events as `history` answers them, and `vnfInstance` where a time was asked for.
    ///
    /// # Errors
    ///
    /// Never in practice: JSON values are always JSON.
    pub fn json(&self) -> serde_json::Result<String> {
        let document = Document {
            vnf_instance_id: &self.id,
            events: &self.events,
            vnf_instance: self.then.as_ref().map(|(_, instance)| instance),
        };
        serde_json::to_string_pretty(&document).map(|text| text + "\n")
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    vnf_instance_id: &'a str,
    events: &'a [Value],
    #[serde(skip_serializing_if = "Option::is_none")]
    vnf_instance: Option<&'a Value>,
}

fn never_was(id: &VnfInstanceId) -> anyhow::Error {
    anyhow::anyhow!("there is no VNF instance {id}, and there never was")
}

pub(super) fn recorded_at(event: &Value) -> Option<Timestamp> {
    Timestamp::parse(event["recordedAt"].as_str()?).ok()
}

/// The instance up to and including a time, as the server folds it.
fn folded(envelopes: &[Envelope], at: Timestamp) -> Option<Row<VnfInstance>> {
    let mut row: Option<Row<VnfInstance>> = None;
    for envelope in envelopes
        .iter()
        .take_while(|envelope| envelope.recorded_at <= at)
    {
        if let EventBody::VnfInstance(event) = &envelope.body {
            let state = VnfInstance::evolve(row.map(|row| Arc::unwrap_or_clone(row.state)), event);
            row = state.map(|state| Row {
                state: Arc::new(state),
                version: envelope.sequence,
                position: envelope.position,
            });
        }
    }
    row
}
