//! What queries see.

use super::log::*;
use crate::Projections;
use cairn_db::args;
use cairn_db::testing::databases;
use cairn_domain::ids::Tenant;
use cairn_domain::ports::{EventLog, ReadModels};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn reads_show_the_log_without_what_is_deleted() {
    for test in databases().await {
        let log = Arc::new(recorded());
        let rows = Projections::open(test.open().await, log.clone())
            .await
            .unwrap();
        let mine = Tenant::default_tenant();

        let instances = rows.instances(&mine).await.unwrap();
        let ids: Vec<_> = instances.iter().map(|row| row.state.id.as_str()).collect();
        assert_eq!(ids, ["i0", "i2"]);
        assert_eq!(
            (instances[0].version, instances[0].state.changed_at),
            (4, at(4))
        );
        let ops = rows.op_occs(&mine).await.unwrap();
        let ids: Vec<_> = ops.iter().map(|row| row.state.id.as_str()).collect();
        assert_eq!(ids, ["o0", "o1", "o2"], "operations outlive their instance");
        assert_eq!(ops[0].version, 10);
        let subscriptions = rows.subscriptions(&mine).await.unwrap();
        assert_eq!(subscriptions.len(), 1);
        assert_eq!(subscriptions[0].state.id, subscription_id("s1"));

        assert!(
            rows.instance(&mine, &instance_id("i1"))
                .await
                .unwrap()
                .is_none(),
            "deleted"
        );
        assert!(
            rows.instance(&mine, &instance_id("i3"))
                .await
                .unwrap()
                .is_none(),
            "another's"
        );
        assert!(
            rows.op_occ(&mine, &op_id("o3")).await.unwrap().is_none(),
            "another's"
        );
        assert!(
            rows.subscription(&mine, &subscription_id("s0"))
                .await
                .unwrap()
                .is_none()
        );
        let theirs = Tenant::parse("other").unwrap();
        assert!(
            rows.instance(&theirs, &instance_id("i3"))
                .await
                .unwrap()
                .is_some()
        );
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_an_instance_is_that_of_the_log_also_after_its_deletion() {
    for test in databases().await {
        let log = Arc::new(recorded());
        let rows = Projections::open(test.open().await, log.clone())
            .await
            .unwrap();
        let mine = Tenant::default_tenant();
        for (id, length) in [("i0", 14), ("i1", 15)] {
            let history = rows.history(&mine, &instance_id(id)).await.unwrap();
            let all = log.read_after(0, 1000).await.unwrap();
            let of_it: Vec<_> = all
                .into_iter()
                .filter(|event| event.vnf_instance_id == Some(instance_id(id)))
                .collect();
            assert_eq!(history, of_it);
            assert_eq!(history.len(), length);
        }
        assert!(
            rows.history(&mine, &instance_id("i3"))
                .await
                .unwrap()
                .is_empty(),
            "another's"
        );
        assert!(
            rows.history(&mine, &instance_id("x"))
                .await
                .unwrap()
                .is_empty()
        );
        test.remove().await;
    }
}

/// The 202's `Location` answers 200 although nothing has brought the read models up in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_right_after_a_write_sees_it() {
    for test in databases().await {
        let log = Arc::new(MemoryLog::default());
        let rows = Projections::open(test.open().await, log.clone())
            .await
            .unwrap();
        let mine = Tenant::default_tenant();
        for n in 0..100 {
            let id = format!("i{n}");
            log.of_instance(&id, vec![created(&id, &mine)]);
            assert!(
                rows.instance(&mine, &instance_id(&id))
                    .await
                    .unwrap()
                    .is_some()
            );
        }
        assert_eq!(rows.instances(&mine).await.unwrap().len(), 100);
        test.remove().await;
    }
}

/// Steps after an event that cannot be read are not applied: the row stays at the last state that is known.
#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_event_freezes_its_row_and_no_other() {
    for test in databases().await {
        let log = Arc::new(MemoryLog::default());
        let mine = Tenant::default_tenant();
        log.of_instance(
            "i",
            vec![created("i", &mine), observed(1), observed(2), observed(3)],
        );
        log.of_instance("j", vec![created("j", &mine), observed(1)]);
        log.lose(3);
        log.lose(6);
        let rows = Projections::open(test.open().await, log.clone())
            .await
            .unwrap();
        let i = rows
            .instance(&mine, &instance_id("i"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!((i.version, i.state.changed_at), (2, at(1)));
        let j = rows
            .instance(&mine, &instance_id("j"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(j.version, 1);
        log.of_instance("k", vec![created("k", &mine)]);
        assert!(
            rows.instance(&mine, &instance_id("k"))
                .await
                .unwrap()
                .is_some()
        );
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_is_made_anew() {
    for test in databases().await {
        let database = test.open().await;
        let log = Arc::new(recorded());
        let mine = Tenant::default_tenant();
        for breaks_at in ["read", "apply"] {
            let rows = Projections::open(database.clone(), log.clone())
                .await
                .unwrap();
            let before = rows
                .instance(&mine, &instance_id("i0"))
                .await
                .unwrap()
                .unwrap();
            let garbage = "UPDATE vnf_instances SET state = '{\"id\": \"i0\"}'";
            database.execute(garbage, args![]).await.unwrap();
            if breaks_at == "apply" {
                log.of_instance("i0", vec![observed(7)]);
                let after = rows
                    .instance(&mine, &instance_id("i0"))
                    .await
                    .unwrap()
                    .unwrap();
                assert_eq!(
                    (after.version, after.state.changed_at),
                    (before.version + 1, at(7))
                );
            } else {
                let after = rows
                    .instance(&mine, &instance_id("i0"))
                    .await
                    .unwrap()
                    .unwrap();
                assert_eq!(after, before);
            }
        }
        test.remove().await;
    }
}
