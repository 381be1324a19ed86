//! The stock crates read what Cairn writes, and `cqrs-es`'s framework runs on it.

use super::fixture::*;
use crate::{CqrsStore, Stored};
use cairn_db::Database;
use cairn_db::testing::databases;
use cairn_domain::history::StreamId;
use cairn_domain::lcm_op_occ::{VnfLcmOpOcc, VnfLcmOpOccEvent};
use cairn_domain::ports::EventLog;
use cairn_domain::root::Root;
use cairn_domain::subscription::{
    CallbackAuth, LccnSubscription, LccnSubscriptionCommand, Verbosity,
};
use cairn_domain::vnf_instance::VnfInstance;
use cqrs_es::persist::{PersistedEventRepository, PersistedEventStore, SerializedEvent};
use cqrs_es::{AggregateError, CqrsFramework, EventEnvelope, EventStore as _};
use postgres_es::PostgresEventRepository;
use sqlite_es::SqliteEventRepository;

/// Events as the stock event store of the stock repository gives them.
async fn stock<S: Stored>(database: &Database, id: &str) -> Vec<EventEnvelope<Root<S>>> {
    match (database.postgres(), database.sqlite()) {
        (Some(pool), _) => {
            let repository = PostgresEventRepository::new(pool.clone());
            PersistedEventStore::<_, Root<S>>::new_event_store(repository)
                .load_events(id)
                .await
        }
        (None, Some(pool)) => {
            let repository = SqliteEventRepository::new(pool.clone());
            PersistedEventStore::<_, Root<S>>::new_event_store(repository)
                .load_events(id)
                .await
        }
        (None, None) => unreachable!("it is one of the two"),
    }
    .unwrap()
}

async fn stock_rows(database: &Database, id: &str) -> Vec<SerializedEvent> {
    match (database.postgres(), database.sqlite()) {
        (Some(pool), _) => {
            PostgresEventRepository::new(pool.clone())
                .get_events::<Root<VnfInstance>>(id)
                .await
        }
        (None, Some(pool)) => {
            SqliteEventRepository::new(pool.clone())
                .get_events::<Root<VnfInstance>>(id)
                .await
        }
        (None, None) => unreachable!("it is one of the two"),
    }
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stock_repositories_read_our_streams() {
    for test in databases().await {
        let database = test.open().await;
        let log = stores(&test).await.events;
        let instance = of_instance(&log, "i", vec![created("i"), observed(1)]).await;
        let steps = vec![
            started("o", "i"),
            VnfLcmOpOccEvent::GrantRequested { at: at(2) },
        ];
        let op = of_op(&log, "o", steps.clone()).await;
        append(&log, vec![instance, op, of_subscription("s")])
            .await
            .unwrap();

        let instance = stock::<VnfInstance>(&database, "i").await;
        let events: Vec<_> = instance.into_iter().map(|event| event.payload).collect();
        assert_eq!(events, [created("i"), observed(1)]);
        let op = stock::<VnfLcmOpOcc>(&database, "o").await;
        assert_eq!(
            op.iter().map(|event| event.sequence).collect::<Vec<_>>(),
            [1, 2]
        );
        assert_eq!(
            op.into_iter()
                .map(|event| event.payload)
                .collect::<Vec<_>>(),
            steps
        );
        assert_eq!(stock::<LccnSubscription>(&database, "s").await.len(), 1);

        let rows = stock_rows(&database, "i").await;
        assert_eq!(rows[1].event_type, "VnfcsObserved");
        assert_eq!(rows[1].event_version, "1.0");
        assert_eq!(rows[1].metadata, serde_json::json!({}));
        test.remove().await;
    }
}

fn subscribe(id: &str) -> LccnSubscriptionCommand {
    LccnSubscriptionCommand::Create {
        at: at(0),
        id: cairn_domain::ids::SubscriptionId::parse(id).unwrap(),
        by: "anonymous".into(),
        tenant: cairn_domain::ids::Tenant::default_tenant(),
        callback_uri: "https://nfvo.example/callback".into(),
        filter: None,
        verbosity: Verbosity::Full,
        auth: CallbackAuth::None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_framework_of_cqrs_es_runs_on_the_unit_of_work() {
    for test in databases().await {
        let log = stores(&test).await.events;
        let store = CqrsStore::<LccnSubscription>::new(log.clone());
        let framework = CqrsFramework::new(store, Vec::new(), ());
        framework.execute("s", subscribe("s")).await.unwrap();
        let refused = framework.execute("s", subscribe("s")).await;
        assert!(
            matches!(refused, Err(AggregateError::UserError(_))),
            "{refused:?}"
        );
        let delete = LccnSubscriptionCommand::Delete {
            at: at(1),
            by: "anonymous".into(),
            tenant: cairn_domain::ids::Tenant::default_tenant(),
        };
        framework.execute("s", delete).await.unwrap();

        let id = cairn_domain::ids::SubscriptionId::parse("s").unwrap();
        let (state, version) = log.subscription(&id).await.unwrap().unwrap();
        assert!(state.deleted);
        assert_eq!(version, 2);
        let history = log.load(&StreamId::LccnSubscription(id)).await.unwrap();
        assert_eq!(
            history
                .iter()
                .map(|event| event.position)
                .collect::<Vec<_>>(),
            [1, 2]
        );
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_framework_is_told_of_conflicts() {
    for test in databases().await {
        let log = stores(&test).await.events;
        let store = CqrsStore::<VnfInstance>::new(log.clone());
        let stale = store.load_aggregate("i").await.unwrap();
        let first = of_instance(&log, "i", vec![created("i")]).await;
        append(&log, vec![first]).await.unwrap();
        let refused = store
            .commit(vec![created("i")], stale, std::collections::HashMap::new())
            .await;
        assert!(matches!(refused, Err(AggregateError::AggregateConflict)));
        let fresh = store.load_aggregate("i").await.unwrap();
        let written = store
            .commit(vec![observed(1)], fresh, std::collections::HashMap::new())
            .await;
        assert_eq!(written.unwrap()[0].sequence, 2);
        test.remove().await;
    }
}
