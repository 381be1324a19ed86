//! What queries see.

use super::log::*;
use super::opened;
use crate::{Projections, model};
use cairn_db::args;
use cairn_db::testing::databases;
use cairn_domain::ids::{Tenant, VnfPkgId};
use cairn_domain::operation::Operation;
use cairn_domain::ports::{EventLog, Page, PortError, ReadModels};
use cairn_domain::vnf_instance::VnfInstanceEvent;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn reads_show_the_log_without_what_is_deleted() {
    for test in databases().await {
        let log = Arc::new(recorded());
        let rows = Projections::open(opened(&test).await, log.clone())
            .await
            .unwrap();
        let mine = Tenant::default_tenant();

        let instances = rows.instances(&mine, Page::ALL).await.unwrap();
        let ids = instances.iter().map(|one| one.row.state.id.as_str());
        assert_eq!(ids.collect::<Vec<_>>(), ["i0", "i2"]);
        let first = &instances[0].row;
        assert_eq!((first.version, first.state.changed_at), (4, at(4)));
        let ops = rows.op_occs(&mine, Page::ALL).await.unwrap();
        let ids: Vec<_> = ops.iter().map(|one| one.row.state.id.as_str()).collect();
        assert_eq!(ids, ["o0", "o1", "o2"], "operations outlive their instance");
        assert_eq!(ops[0].row.version, 10);
        let subscriptions = rows.subscriptions(&mine, Page::ALL).await.unwrap();
        assert_eq!(subscriptions.len(), 1);
        assert_eq!(subscriptions[0].row.state.id, subscription_id("s1"));
        let used = rows.packages_in_use(&mine).await.unwrap();
        assert_eq!(
            used.iter().map(VnfPkgId::as_str).collect::<Vec<_>>(),
            ["pkg-1"]
        );
        assert_eq!(rows.halted(&mine).await.unwrap(), []);

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
        let rows = Projections::open(opened(&test).await, log.clone())
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
        let rows = Projections::open(opened(&test).await, log.clone())
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
        let (mut after, mut places) = (0, Vec::new());
        loop {
            let page = Page { after, limit: 30 };
            let rows = rows.instances(&mine, page).await.unwrap();
            let Some(last) = rows.last() else { break };
            after = last.place;
            places.extend(rows.iter().map(|one| one.place));
        }
        assert_eq!(places, (1..=100).collect::<Vec<u64>>(), "page by page");
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
        let rows = Projections::open(opened(&test).await, log.clone())
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
        let database = opened(&test).await;
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
                // What was read before would still be known.
                let rows = Projections::open(database.clone(), log.clone())
                    .await
                    .unwrap();
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

/// What a read by id knows without asking the log stands in the statement that reads the row.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_by_id_asks_the_log_only_when_it_is_behind() {
    for test in databases().await {
        let database = opened(&test).await;
        let log = Arc::new(recorded());
        let rows = Projections::open(database.clone(), log.clone())
            .await
            .unwrap();
        let mine = Tenant::default_tenant();
        let head = log.head().await.unwrap();
        rows.catch_up(head).await.unwrap();
        let sql = "INSERT INTO log_position (id, position) VALUES (1, $1)";
        database.execute(sql, args![head]).await.unwrap();
        log.go_down();
        let there = rows.instance(&mine, &instance_id("i0")).await.unwrap();
        assert_eq!(there.unwrap().version, 4);
        let absent = rows.instance(&mine, &instance_id("x")).await.unwrap();
        assert!(absent.is_none());
        let sql = "UPDATE log_position SET position = position + 1";
        database.execute(sql, args![]).await.unwrap();
        for id in ["i0", "x"] {
            let behind = rows.instance(&mine, &instance_id(id)).await;
            assert!(
                matches!(behind, Err(PortError::Unavailable(_))),
                "{behind:?}"
            );
        }
        test.remove().await;
    }
}

/// A row is not decoded again while it is the one that was read before, and is whenever it is another.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_was_read_before_is_known_until_it_changes() {
    for test in databases().await {
        let database = opened(&test).await;
        let log = Arc::new(MemoryLog::default());
        let mine = Tenant::default_tenant();
        let open = async || {
            Projections::open(database.clone(), log.clone())
                .await
                .unwrap()
        };
        let (here, elsewhere) = (open().await, open().await);
        let read = async || here.instance(&mine, &instance_id("i")).await.unwrap();
        log.of_instance("i", vec![created("i", &mine), observed(1)]);
        let sql = "INSERT INTO log_position (id, position) VALUES (1, 2)";
        database.execute(sql, args![]).await.unwrap();
        here.catch_up(2).await.unwrap();
        let (first, again) = (read().await.unwrap(), read().await.unwrap());
        assert!(Arc::ptr_eq(&first.state, &again.state));
        assert_eq!((again.version, again.state.changed_at), (2, at(1)));
        // Another replica writes on, and this one is behind for a while.
        log.of_instance("i", vec![observed(2)]);
        let sql = "UPDATE log_position SET position = 3";
        database.execute(sql, args![]).await.unwrap();
        let behind = read().await.unwrap();
        assert_eq!((behind.version, behind.state.changed_at), (3, at(2)));
        elsewhere.catch_up(3).await.unwrap();
        let caught_up = read().await.unwrap();
        assert_eq!(caught_up, behind);
        assert!(Arc::ptr_eq(&caught_up.state, &read().await.unwrap().state));
        log.of_instance("i", vec![deleted(&mine)]);
        elsewhere.catch_up(4).await.unwrap();
        assert!(read().await.is_none());
        test.remove().await;
    }
}

/// While others write, a read by id folds what its row lacks on top of it, and leaves the tables as they are.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_by_id_that_is_behind_waits_for_nobody() {
    for test in databases().await {
        let database = opened(&test).await;
        let log = Arc::new(MemoryLog::default());
        let rows = Projections::open(database.clone(), log.clone())
            .await
            .unwrap();
        let mine = Tenant::default_tenant();
        log.of_instance("i", vec![created("i", &mine), observed(1)]);
        log.of_instance("gone", vec![created("gone", &mine)]);
        rows.catch_up(3).await.unwrap();
        log.of_instance("i", vec![observed(2), observed(3)]);
        log.of_instance("new", vec![created("new", &mine)]);
        log.of_instance("gone", vec![deleted(&mine)]);
        let sql = "INSERT INTO log_position (id, position) VALUES (1, 7)";
        database.execute(sql, args![]).await.unwrap();
        // Whoever holds the tables keeps no reader waiting.
        let mut held = database.begin().await.unwrap();
        held.execute("UPDATE checkpoints SET position = position", args![])
            .await
            .unwrap();
        let read = async |id: &str| rows.instance(&mine, &instance_id(id)).await.unwrap();
        let i = read("i").await.unwrap();
        assert_eq!((i.version, i.position, i.state.changed_at), (4, 5, at(3)));
        assert_eq!(read("new").await.unwrap().version, 1);
        assert!(read("gone").await.is_none());
        assert!(read("x").await.is_none());
        let theirs = Tenant::parse("other").unwrap();
        let foreign = rows.instance(&theirs, &instance_id("i")).await.unwrap();
        assert!(foreign.is_none());
        held.rollback().await.unwrap();
        assert_eq!(rows.checkpoints(&model::live()).await.unwrap(), [3; 4]);
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn halted_operations_are_found_while_they_are_halted() {
    for test in databases().await {
        let log = Arc::new(MemoryLog::default());
        let rows = Projections::open(opened(&test).await, log.clone())
            .await
            .unwrap();
        let mine = Tenant::default_tenant();
        let claimed = VnfInstanceEvent::OperationClaimed {
            at: at(1),
            op: op_id("o"),
            operation: Operation::Heal,
            overlay: serde_json::Map::new(),
            vnf_pkg_id: None,
        };
        let (halted, resumed) = (
            VnfInstanceEvent::OperationHalted {
                at: at(2),
                op: op_id("o"),
            },
            VnfInstanceEvent::OperationResumed {
                at: at(3),
                op: op_id("o"),
                rolling_back: true,
            },
        );
        for (event, found) in [
            (created("i", &mine), vec![]),
            (claimed, vec![]),
            (halted, vec![op_id("o")]),
            (resumed, vec![]),
        ] {
            log.of_instance("i", vec![event]);
            assert_eq!(rows.halted(&mine).await.unwrap(), found);
        }
        test.remove().await;
    }
}
