//! Read models come out the same, whoever makes them, in whatever pieces, and after a crash.

use super::log::*;
use super::{dump, opened};
use crate::model::{self, Target};
use crate::{Projections, error};
use cairn_db::args;
use cairn_db::testing::databases;
use cairn_domain::history::Envelope;
use cairn_domain::ids::Tenant;
use cairn_domain::ports::{EventLog, Page, PortError, ReadModels};
use std::sync::Arc;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_gives_the_same_bytes() {
    for test in databases().await {
        let database = opened(&test).await;
        let log = Arc::new(MemoryLog::default());
        let rows = Projections::open(database.clone(), log.clone())
            .await
            .unwrap();
        // Live, in pieces as small as they come.
        for event in recorded().read_after(0, 1000).await.unwrap() {
            let Envelope {
                stream,
                vnf_instance_id,
                body,
                position,
                ..
            } = event;
            let instance = vnf_instance_id
                .as_ref()
                .map(cairn_domain::ids::VnfInstanceId::as_str);
            log.append(instance, &stream, vec![body]);
            rows.catch_up(position).await.unwrap();
        }
        let live = dump(&database).await;
        assert_eq!(live.len(), 4 + 4 + 2 + 57, "{live:#?}");
        for batch in [3, 1000] {
            let reached = rows.rebuild_in_batches(&model::all(), batch).await.unwrap();
            assert_eq!(reached, log.head().await.unwrap());
            assert_eq!(dump(&database).await, live);
        }
        let names = "SELECT name FROM checkpoints ORDER BY name";
        let names = database.fetch_all(names, args![]).await.unwrap();
        assert_eq!(names.len(), 4, "the new tables have become the old ones");
        log.of_instance("i0", vec![observed(8)]);
        let i0 = rows
            .instance(&Tenant::default_tenant(), &instance_id("i0"))
            .await
            .unwrap();
        assert_eq!(
            i0.unwrap().state.changed_at,
            at(8),
            "what was swapped in goes on"
        );
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_in_the_middle_of_a_batch_loses_and_repeats_nothing() {
    for test in databases().await {
        let database = opened(&test).await;
        let log = Arc::new(recorded());
        let rows = Projections::open(database.clone(), log.clone())
            .await
            .unwrap();
        rows.bring(&model::live(), 0, 10, 10).await.unwrap();
        let events = log.read_after(10, 20).await.unwrap();
        let events: Vec<&Envelope> = events.iter().collect();
        let mut tx = database.begin().await.unwrap();
        for Target { model, table } in model::live() {
            model.apply(&mut tx, &table, &events).await.unwrap();
        }
        // The process ends here: nothing of it was committed, and the checkpoints stand where they stood.
        drop(tx);
        assert_eq!(rows.checkpoints(&model::live()).await.unwrap(), [10; 4]);
        rows.catch_up(log.head().await.unwrap()).await.unwrap();
        let after = dump(&database).await;
        rows.rebuild().await.unwrap();
        assert_eq!(dump(&database).await, after);
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_replicas_catch_up_together() {
    for test in databases().await {
        let database = opened(&test).await;
        let log = Arc::new(recorded());
        let mut replicas = JoinSet::new();
        for _ in 0..3 {
            let (database, log) = (opened(&test).await, log.clone());
            replicas.spawn(async move {
                let rows = Projections::open(database, log.clone()).await.unwrap();
                rows.bring(&model::live(), 0, log.head().await.unwrap(), 5)
                    .await
                    .unwrap();
            });
        }
        replicas.join_all().await;
        let together = dump(&database).await;
        let rows = Projections::open(database.clone(), log).await.unwrap();
        rows.rebuild().await.unwrap();
        assert_eq!(dump(&database).await, together);
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_go_on_while_read_models_are_made_anew() {
    for test in databases().await {
        let log = Arc::new(recorded());
        let rows = Arc::new(
            Projections::open(opened(&test).await, log.clone())
                .await
                .unwrap(),
        );
        let other = Projections::open(opened(&test).await, log.clone())
            .await
            .unwrap();
        let mine = Tenant::default_tenant();
        let mut rebuilding = JoinSet::new();
        {
            let rows = rows.clone();
            rebuilding.spawn(async move {
                for _ in 0..5 {
                    rows.rebuild_in_batches(&model::all(), 4).await.unwrap();
                }
            });
        }
        let mut n = 100;
        while rebuilding.try_join_next().is_none() {
            let id = format!("i{n}");
            log.of_instance(&id, vec![created(&id, &mine)]);
            let found = other.instance(&mine, &instance_id(&id)).await.unwrap();
            assert!(found.is_some(), "{id} was there, or would be");
            n += 1;
        }
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_another_shape_is_made_anew_when_opened() {
    for test in databases().await {
        let database = opened(&test).await;
        let log = Arc::new(recorded());
        let old = Projections::open(database.clone(), log.clone())
            .await
            .unwrap();
        old.rebuild().await.unwrap();
        let right = dump(&database).await;
        for sql in [
            "DROP TABLE subscriptions",
            "CREATE TABLE subscriptions (id TEXT PRIMARY KEY)",
            "UPDATE checkpoints SET shape = 99 WHERE name = 'subscriptions'",
        ] {
            database.execute(sql, args![]).await.unwrap();
        }
        let refused = old
            .subscriptions(&Tenant::default_tenant(), Page::ALL)
            .await;
        assert!(
            matches!(refused, Err(PortError::Unavailable(_))),
            "the shape is another's"
        );
        Projections::open(database.clone(), log.clone())
            .await
            .unwrap();
        assert_eq!(dump(&database).await, right);
        test.remove().await;
    }
}

#[test]
fn errors_of_the_database_are_those_of_the_port() {
    let contended = cairn_db::DbError::Contended(String::new());
    assert!(matches!(error::port(contended), PortError::Conflict(_)));
}
