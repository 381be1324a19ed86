//! `cqrs-es`'s `EventStore` over the unit of work, so that its framework runs on Cairn's log. Streams are loaded
//! through the stock repositories of `postgres-es` and `sqlite-es`.

use crate::event_log::EventStore;
use crate::upcast::{UPCASTERS, upcast};
use cairn_domain::history::{EventBody, StreamId};
use cairn_domain::ids::{InvalidId, SubscriptionId, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::VnfLcmOpOcc;
use cairn_domain::ports::{Append, EventLog, PortError, StateAfter, Unit};
use cairn_domain::root::{Pure, Root};
use cairn_domain::subscription::LccnSubscription;
use cairn_domain::vnf_instance::VnfInstance;
use cqrs_es::persist::{PersistedEventRepository, SerializedEvent};
use cqrs_es::{Aggregate, AggregateContext, AggregateError, EventEnvelope};
use postgres_es::PostgresEventRepository;
use sqlite_es::SqliteEventRepository;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

/// An aggregate whose streams the log keeps.
pub trait Stored: Pure {
    /// The stream of an id.
    ///
    /// # Errors
    ///
    /// [`InvalidId`].
    fn stream(id: &str) -> Result<StreamId, InvalidId>;
    /// One of its events.
    fn body(event: Self::Event) -> EventBody;
    /// Its state.
    fn after(self) -> StateAfter;
    /// The instance that its events concern.
    fn concerns(&self) -> Option<VnfInstanceId>;
}

impl Stored for VnfInstance {
    fn stream(id: &str) -> Result<StreamId, InvalidId> {
        VnfInstanceId::parse(id).map(StreamId::VnfInstance)
    }

    fn body(event: Self::Event) -> EventBody {
        EventBody::VnfInstance(event)
    }

    fn after(self) -> StateAfter {
        StateAfter::VnfInstance(Box::new(self))
    }

    fn concerns(&self) -> Option<VnfInstanceId> {
        Some(self.id.clone())
    }
}

impl Stored for VnfLcmOpOcc {
    fn stream(id: &str) -> Result<StreamId, InvalidId> {
        VnfLcmOpOccId::parse(id).map(StreamId::VnfLcmOpOcc)
    }

    fn body(event: Self::Event) -> EventBody {
        EventBody::VnfLcmOpOcc(event)
    }

    fn after(self) -> StateAfter {
        StateAfter::VnfLcmOpOcc(Box::new(self))
    }

    fn concerns(&self) -> Option<VnfInstanceId> {
        Some(self.vnf_instance_id.clone())
    }
}

impl Stored for LccnSubscription {
    fn stream(id: &str) -> Result<StreamId, InvalidId> {
        SubscriptionId::parse(id).map(StreamId::LccnSubscription)
    }

    fn body(event: Self::Event) -> EventBody {
        EventBody::LccnSubscription(event)
    }

    fn after(self) -> StateAfter {
        StateAfter::LccnSubscription(Box::new(self))
    }

    fn concerns(&self) -> Option<VnfInstanceId> {
        None
    }
}

/// `cqrs_es::EventStore` for one kind of aggregate. Metadata is passed on to queries and not stored: Cairn's
/// events say themselves who asked, for whom and when.
pub struct CqrsStore<S> {
    store: Arc<EventStore>,
    aggregate: PhantomData<fn() -> S>,
}

impl<S> CqrsStore<S> {
    /// A view of the log for `cqrs-es`.
    #[must_use]
    pub fn new(store: Arc<EventStore>) -> Self {
        Self {
            store,
            aggregate: PhantomData,
        }
    }
}

/// An aggregate as it was loaded.
pub struct Loaded<S: Pure> {
    id: String,
    version: u64,
    before: Root<S>,
    /// What the framework works on: it applies the new events to it while it decides, so the state after them
    /// must be folded from `before`, or they would count twice.
    root: Root<S>,
}

impl<S: Pure> AggregateContext<Root<S>> for Loaded<S> {
    fn aggregate(&mut self) -> &mut Root<S> {
        &mut self.root
    }
}

type Outcome<T, S> = Result<T, AggregateError<<S as Pure>::Rejection>>;

impl<S: Stored> cqrs_es::EventStore<Root<S>> for CqrsStore<S> {
    type AC = Loaded<S>;

    async fn load_events(&self, aggregate_id: &str) -> Outcome<Vec<EventEnvelope<Root<S>>>, S> {
        let database = self.store.database();
        let found = match (database.postgres(), database.sqlite()) {
            (Some(pool), _) => {
                PostgresEventRepository::new(pool.clone())
                    .get_events::<Root<S>>(aggregate_id)
                    .await
            }
            (None, Some(pool)) => {
                SqliteEventRepository::new(pool.clone())
                    .get_events::<Root<S>>(aggregate_id)
                    .await
            }
            (None, None) => Ok(Vec::new()),
        }?;
        found.into_iter().map(present::<S>).collect()
    }

    async fn load_aggregate(&self, aggregate_id: &str) -> Outcome<Loaded<S>, S> {
        let mut version = 0;
        let mut root = Root::default();
        for event in self.load_events(aggregate_id).await? {
            version = u64::try_from(event.sequence).unwrap_or(u64::MAX);
            root.apply(event.payload);
        }
        Ok(Loaded {
            id: aggregate_id.to_owned(),
            version,
            before: root.clone(),
            root,
        })
    }

    async fn commit(
        &self,
        events: Vec<S::Event>,
        context: Loaded<S>,
        metadata: HashMap<String, String>,
    ) -> Outcome<Vec<EventEnvelope<Root<S>>>, S> {
        let Loaded {
            id,
            version,
            before,
            root: _,
        } = context;
        let after = events.iter().cloned().fold(before, |mut root, event| {
            root.apply(event);
            root
        });
        let Some(state) = after.0 else {
            return Ok(Vec::new());
        };
        let append = Append {
            stream: S::stream(&id)
                .map_err(|error| AggregateError::UnexpectedError(error.into()))?,
            expected_version: version,
            vnf_instance_id: state.concerns(),
            events: events.iter().cloned().map(S::body).collect(),
            state: state.after(),
        };
        let unit = Unit {
            appends: vec![append],
            ..Unit::default()
        };
        self.store.append(unit).await.map_err(failure)?;
        let first = usize::try_from(version)
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        Ok((first..)
            .zip(events)
            .map(|(sequence, payload)| EventEnvelope {
                aggregate_id: id.clone(),
                sequence,
                payload,
                metadata: metadata.clone(),
            })
            .collect())
    }
}

fn present<S: Stored>(event: SerializedEvent) -> Outcome<EventEnvelope<Root<S>>, S> {
    let SerializedEvent {
        aggregate_id,
        sequence,
        event_type,
        event_version,
        payload,
        ..
    } = event;
    let payload = upcast(UPCASTERS, &event_type, &event_version, payload).ok_or_else(|| {
        let why = format!("event {event_type:?} of version {event_version:?} is not known");
        AggregateError::DeserializationError(why.into())
    })?;
    let payload = serde_json::from_value(payload)
        .map_err(|error| AggregateError::DeserializationError(error.into()))?;
    Ok(EventEnvelope {
        aggregate_id,
        sequence,
        payload,
        metadata: HashMap::new(),
    })
}

fn failure<E: std::error::Error>(error: PortError) -> AggregateError<E> {
    match error {
        PortError::Conflict(_) => AggregateError::AggregateConflict,
        PortError::Unavailable(_) => AggregateError::DatabaseConnectionError(error.into()),
        PortError::Fenced | PortError::Refused(_) | PortError::Corrupt(_) => {
            AggregateError::UnexpectedError(error.into())
        }
    }
}
