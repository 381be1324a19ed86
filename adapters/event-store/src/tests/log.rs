//! The unit of work: order, conflicts, keys, state rows, unreadable rows.

use super::fixture::*;
use crate::EventStore;
use cairn_db::testing::{TestDatabase, databases};
use cairn_db::{Database, args};
use cairn_domain::history::StreamId;
use cairn_domain::lcm_op_occ::VnfLcmOpOccEvent;
use cairn_domain::ports::{Appended, EventLog, KeyedAnswer, PortError, Unit, WorkChange};
use cairn_domain::root::replay;
use cairn_domain::vnf_instance::VnfInstance;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_appended_is_read_in_order() {
    for test in databases().await {
        let log = stores(&test).await.events;
        let created = of_instance(&log, "i", vec![created("i"), observed(1)]).await;
        let op = of_op(&log, "o", vec![started("o", "i")]).await;
        let positions = append(&log, vec![created, op, of_subscription("s")])
            .await
            .unwrap();
        assert_eq!(positions, [1, 2, 3, 4]);
        assert_eq!(log.head().await.unwrap(), 4);

        let all = log.read_after(0, 10).await.unwrap();
        let names: Vec<_> = all.iter().map(|event| event.body.name()).collect();
        assert_eq!(
            names,
            [
                "VnfIdentifierCreated",
                "VnfcsObserved",
                "OperationStarted",
                "SubscriptionCreated"
            ]
        );
        assert_eq!(all[1].sequence, 2);
        assert_eq!(all[1].recorded_at, at(1));
        assert_eq!(log.read_after(1, 1).await.unwrap(), all[1..2]);
        assert_eq!(log.read_after(4, 10).await.unwrap(), []);
        assert_eq!(log.of_instance(&instance_id("i")).await.unwrap(), all[..3]);
        assert_eq!(
            log.load(&StreamId::VnfInstance(instance_id("i")))
                .await
                .unwrap(),
            all[..2]
        );
        assert_eq!(
            log.load(&StreamId::VnfInstance(instance_id("x")))
                .await
                .unwrap(),
            []
        );
        assert_eq!(log.instance(&instance_id("x")).await.unwrap(), None);
        assert_eq!(log.of_subscriptions(4).await.unwrap(), all[3..]);
        assert_eq!(log.of_subscriptions(3).await.unwrap(), []);
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_fifty_at_once_one_wins_each_version() {
    for test in databases().await {
        let log = stores(&test).await.events;
        let first = of_instance(&log, "i", vec![created("i")]).await;
        append(&log, vec![first]).await.unwrap();
        let mut rivals = JoinSet::new();
        for _ in 0..50 {
            let log = log.clone();
            rivals.spawn(async move {
                let next = of_instance(&log, "i", vec![observed(1)]).await;
                let version = next.expected_version + 1;
                append(&log, vec![next])
                    .await
                    .map(|positions| (version, positions))
            });
        }
        let mut won = Vec::new();
        for outcome in rivals.join_all().await {
            match outcome {
                Ok((version, positions)) => won.push((version, positions[0])),
                Err(PortError::Conflict(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        won.sort_unstable();
        let history = log
            .load(&StreamId::VnfInstance(instance_id("i")))
            .await
            .unwrap();
        let stored: Vec<_> = history[1..]
            .iter()
            .map(|event| (event.sequence, event.position))
            .collect();
        assert!(!won.is_empty());
        assert_eq!(
            won, stored,
            "each version was won by one, and each win is stored"
        );
        assert_gapless(&log).await;
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_with_a_cursor_loses_nothing_under_concurrent_writers() {
    for test in databases().await {
        let log = stores(&test).await.events;
        let mut writers = JoinSet::new();
        for writer in 0..8 {
            let log = log.clone();
            writers.spawn(async move {
                let id = format!("i{writer}");
                let first = of_instance(&log, &id, vec![created(&id)]).await;
                append(&log, vec![first]).await.unwrap();
                for second in 0..24 {
                    let next = of_instance(&log, &id, vec![observed(second)]).await;
                    append(&log, vec![next]).await.unwrap();
                }
            });
        }
        let reader = {
            let log = log.clone();
            async move {
                let mut seen = Vec::new();
                while seen.len() < 200 {
                    let after = seen.last().copied().unwrap_or(0);
                    let page = log.read_after(after, 7).await.unwrap();
                    seen.extend(page.iter().map(|event| event.position));
                }
                seen
            }
        };
        let seen = tokio::time::timeout(Duration::from_mins(1), reader)
            .await
            .unwrap();
        writers.join_all().await;
        assert_eq!(seen, (1..=200).collect::<Vec<u64>>());
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_append_leaves_no_gap() {
    for test in databases().await {
        let log = stores(&test).await.events;
        let first = of_instance(&log, "i", vec![created("i")]).await;
        append(&log, vec![first.clone()]).await.unwrap();
        for _ in 0..3 {
            let other = of_instance(&log, "j", vec![created("j")]).await;
            let refused = append(&log, vec![other, first.clone()]).await;
            assert!(
                matches!(refused, Err(PortError::Conflict(_))),
                "{refused:?}"
            );
        }
        let mut ahead = of_instance(&log, "i", vec![observed(3)]).await;
        ahead.expected_version = 7;
        assert!(matches!(
            append(&log, vec![ahead]).await,
            Err(PortError::Conflict(_))
        ));
        let next = of_instance(&log, "i", vec![observed(1)]).await;
        assert_eq!(append(&log, vec![next]).await.unwrap(), [2]);
        assert_eq!(log.instance(&instance_id("j")).await.unwrap(), None);
        assert_gapless(&log).await;
        test.remove().await;
    }
}

/// Two interleaved transactions: the one that took the counter later waits, and commits later.
#[tokio::test(flavor = "multi_thread")]
async fn an_append_waits_for_the_transaction_that_holds_the_counter() {
    for test in databases().await {
        let database = test.open().await;
        let log = stores(&test).await.events;
        let mut held = database.begin().await.unwrap();
        held.execute("UPDATE log_position SET position = position + 1", args![])
            .await
            .unwrap();
        let mut waiting = JoinSet::new();
        {
            let log = log.clone();
            waiting.spawn(async move {
                let next = of_instance(&log, "i", vec![created("i")]).await;
                append(&log, vec![next]).await
            });
        }
        // What a reader sees meanwhile: nothing, neither of the one nor of the other.
        let early = tokio::time::timeout(Duration::from_millis(200), waiting.join_next()).await;
        assert!(early.is_err(), "the append must wait for the counter");
        assert_eq!(log.head().await.unwrap(), 0);
        held.rollback().await.unwrap();
        let positions = waiting.join_next().await.unwrap().unwrap().unwrap();
        assert_eq!(positions, [1], "what was rolled back left no gap");
        test.remove().await;
    }
}

/// What waits for the writer is written together, and refused one by one.
#[tokio::test(flavor = "multi_thread")]
async fn of_units_that_wait_together_each_is_judged_alone() {
    for test in databases().await {
        let database = test.open().await;
        let log = stores(&test).await.events;
        let mut held = database.begin().await.unwrap();
        held.execute("UPDATE log_position SET position = position + 1", args![])
            .await
            .unwrap();
        let mut waiting = JoinSet::new();
        for n in 0..20_u64 {
            let log = log.clone();
            waiting.spawn(async move {
                let id = format!("i{n}");
                let mut next = of_instance(&log, &id, vec![created(&id), observed(1)]).await;
                // Every fourth has decided on a version that is not there.
                next.expected_version = u64::from(n % 4 == 0);
                (n, append(&log, vec![next]).await)
            });
        }
        // PostgreSQL refuses before the counter is waited for; whatever is written waits.
        let early = tokio::time::timeout(Duration::from_millis(200), waiting.join_next()).await;
        let mut outcomes: Vec<_> = early.into_iter().flatten().map(Result::unwrap).collect();
        assert!(outcomes.iter().all(|(_, outcome)| outcome.is_err()));
        held.rollback().await.unwrap();
        outcomes.extend(waiting.join_all().await);
        let mut positions = Vec::new();
        for (n, outcome) in outcomes {
            match outcome {
                Ok(written) if n % 4 != 0 => positions.extend(written),
                Err(PortError::Conflict(_)) if n % 4 == 0 => {
                    let id = instance_id(&format!("i{n}"));
                    assert_eq!(log.instance(&id).await.unwrap(), None);
                }
                other => panic!("{n}: {other:?}"),
            }
        }
        positions.sort_unstable();
        assert_eq!(positions, (1..=30).collect::<Vec<u64>>());
        assert_gapless(&log).await;
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_is_answered_as_before_and_writes_nothing() {
    for test in databases().await {
        let log = stores(&test).await.events;
        let keyed = |answer: &str| KeyedAnswer {
            key: "default:k".into(),
            request_digest: "d".into(),
            answer: answer.into(),
        };
        assert_eq!(log.answered("default:k").await.unwrap(), None);
        let mut outcomes = JoinSet::new();
        for n in 0..10 {
            let (log, key) = (log.clone(), keyed(&format!("i{n}")));
            outcomes.spawn(async move {
                let id = format!("i{n}");
                let next = of_instance(&log, &id, vec![created(&id)]).await;
                log.append(Unit {
                    key: Some(key),
                    ..unit(vec![next])
                })
                .await
                .unwrap()
            });
        }
        let outcomes = outcomes.join_all().await;
        let written = outcomes
            .iter()
            .filter(|o| matches!(o, Appended::Written(_)))
            .count();
        assert_eq!(written, 1);
        let kept = log.answered("default:k").await.unwrap().unwrap();
        for outcome in &outcomes {
            if let Appended::Repeated(answer) = outcome {
                assert_eq!(*answer, kept);
            }
        }
        assert_eq!(log.head().await.unwrap(), 1);
        assert!(
            log.instance(&instance_id(&kept.answer))
                .await
                .unwrap()
                .is_some()
        );
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_keys_are_forgotten() {
    for test in databases().await {
        let database = test.open().await;
        let log = stores(&test).await.events;
        let keyed = |key: &str| Unit {
            key: Some(KeyedAnswer {
                key: key.into(),
                request_digest: "d".into(),
                answer: "a".into(),
            }),
            ..Unit::default()
        };
        database
            .execute(
                "INSERT INTO keyed_answers VALUES ('old', 'd', 'a', 1)",
                args![],
            )
            .await
            .unwrap();
        assert_eq!(
            log.append(keyed("new")).await.unwrap(),
            Appended::Written(Vec::new())
        );
        assert_eq!(log.answered("old").await.unwrap(), None);
        assert!(log.answered("new").await.unwrap().is_some());
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_row_equals_the_replay_and_is_ignored_when_unreadable() {
    for test in databases().await {
        let database = test.open().await;
        let log = stores(&test).await.events;
        for events in [
            vec![created("i")],
            vec![observed(1), observed(2)],
            vec![observed(3)],
        ] {
            let next = of_instance(&log, "i", events).await;
            append(&log, vec![next]).await.unwrap();
        }
        let replayed = replayed(&log).await;
        let kept: VnfInstance = serde_json::from_str(&state_row(&database).await).unwrap();
        assert_eq!(kept, replayed.0);
        for garbage in [
            "UPDATE states SET state = '{\"id\": 7}'",
            "UPDATE states SET state = 'garbage'",
            "UPDATE states SET schema_version = 99",
            "DELETE FROM states",
        ] {
            database.execute(garbage, args![]).await.unwrap();
            assert_eq!(
                log.instance(&instance_id("i")).await.unwrap(),
                Some(replayed.clone())
            );
        }
        let next = of_instance(&log, "i", vec![observed(4)]).await;
        append(&log, vec![next]).await.unwrap();
        let kept: VnfInstance = serde_json::from_str(&state_row(&database).await).unwrap();
        assert_eq!(kept.changed_at, at(4));
        test.remove().await;
    }
}

async fn state_row(database: &Database) -> String {
    database
        .fetch_optional("SELECT state FROM states", args![])
        .await
        .unwrap()
        .unwrap()
        .text(0)
        .unwrap()
}

async fn replayed(log: &EventStore) -> (VnfInstance, u64) {
    let history = log
        .load(&StreamId::VnfInstance(instance_id("i")))
        .await
        .unwrap();
    let events = history.iter().filter_map(|event| match &event.body {
        cairn_domain::history::EventBody::VnfInstance(event) => Some(event),
        _ => None,
    });
    (replay(events).unwrap(), history.last().unwrap().sequence)
}

/// What a newer Cairn wrote stops its own stream, and none of fifty others.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_event_makes_one_stream_corrupt() {
    for test in databases().await {
        let database = test.open().await;
        let log = stores(&test).await.events;
        for n in 0..50 {
            let id = format!("i{n}");
            let next = of_instance(&log, &id, vec![created(&id), observed(1)]).await;
            append(&log, vec![next]).await.unwrap();
        }
        for (id, change) in [
            ("i3", "payload = '7'"),
            ("i4", "payload = '{\"nonsense\": {}}'"),
            ("i5", "payload = '{\"VnfcsObserved\": {}}'"),
        ] {
            let sql =
                format!("UPDATE events SET {change} WHERE aggregate_id = $1 AND sequence = 2");
            database.execute(&sql, args![id]).await.unwrap();
            database
                .execute(
                    "UPDATE states SET schema_version = 99 WHERE aggregate_id = $1",
                    args![id],
                )
                .await
                .unwrap();
            let loaded = log.instance(&instance_id(id)).await;
            assert!(
                matches!(loaded, Err(PortError::Corrupt(_))),
                "{id}: {loaded:?}"
            );
        }
        assert!(log.instance(&instance_id("i6")).await.unwrap().is_some());
        assert_eq!(log.read_after(0, 1000).await.unwrap().len(), 97);
        assert_eq!(log.unreadable(), 3);
        assert_eq!(
            log.read_after(7, 1).await.unwrap()[0].position,
            9,
            "passed over, not ended"
        );
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_stop_before_what_a_newer_cairn_wrote() {
    for change in [
        "event_type = 'VnfTeleported', payload = '{\"VnfTeleported\": {}}'",
        "event_version = '7.0'",
        "aggregate_type = 'VnfTelepath'",
    ] {
        for test in databases().await {
            let database = test.open().await;
            let log = stores(&test).await.events;
            for id in ["i1", "i2", "i3"] {
                let next = of_instance(&log, id, vec![created(id), observed(1)]).await;
                append(&log, vec![next]).await.unwrap();
            }
            let sql = format!("UPDATE events SET {change} WHERE position = 4");
            database.execute(&sql, args![]).await.unwrap();
            log.health().unwrap();
            assert_eq!(log.read_after(0, 1000).await.unwrap().len(), 3);
            let stopped = log.read_after(3, 1000).await;
            assert!(
                matches!(&stopped, Err(PortError::Unavailable(why)) if why.contains("position 4")),
                "{change}: {stopped:?}"
            );
            assert!(log.health().is_err());
            assert_eq!(log.unreadable(), 0);
            test.remove().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_ends_with_an_append_of_this_or_another_process() {
    for test in databases().await {
        let log = stores(&test).await.events;
        let other = stores(&test).await.events;
        let mut tasks = JoinSet::new();
        {
            let log = log.clone();
            tasks.spawn(async move { log.listen().await });
        }
        let writer = if cairn_db::Database::dialect(&test.open().await) == cairn_db::Dialect::Sqlite
        {
            log.clone()
        } else {
            other
        };
        let seen = async {
            loop {
                log.changed(60_000).await;
                if log.head().await.unwrap() > 0 {
                    break;
                }
            }
        };
        let written = async {
            let next = of_instance(&writer, "i", vec![created("i")]).await;
            append(&writer, vec![next]).await.unwrap();
        };
        let both = async { tokio::join!(seen, written) };
        tokio::time::timeout(Duration::from_secs(20), both)
            .await
            .unwrap();
        tasks.abort_all();
        test.remove().await;
    }
}

/// The server ends the connection under an append: nobody can say here what became of it, and the next one works.
#[tokio::test(flavor = "multi_thread")]
async fn an_append_whose_connection_is_lost_is_unavailable() {
    let Some(test) = TestDatabase::postgres().await else {
        return;
    };
    let database = test.open().await;
    let log = stores(&test).await.events;
    let mut held = database.begin().await.unwrap();
    held.execute("UPDATE log_position SET position = position + 0", args![])
        .await
        .unwrap();
    let mut waiting = JoinSet::new();
    {
        let log = log.clone();
        waiting.spawn(async move {
            let next = of_instance(&log, "i", vec![created("i")]).await;
            append(&log, vec![next]).await
        });
    }
    let kill = "SELECT pg_terminate_backend(pid)::int FROM pg_stat_activity \
         WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let killed = async { while database.fetch_all(kill, args![]).await.unwrap().is_empty() {} };
    tokio::time::timeout(Duration::from_secs(20), killed)
        .await
        .unwrap();
    let lost = waiting.join_next().await.unwrap().unwrap();
    assert!(matches!(lost, Err(PortError::Unavailable(_))), "{lost:?}");
    held.rollback().await.unwrap();
    let next = of_instance(&log, "i", vec![created("i")]).await;
    assert_eq!(append(&log, vec![next]).await.unwrap(), [1]);
    test.remove().await;
}

/// Units on the same streams in opposite order do not wait for each other for ever.
#[tokio::test(flavor = "multi_thread")]
async fn units_on_the_same_streams_do_not_lock_each_other_out() {
    for test in databases().await {
        let log = stores(&test).await.events;
        let mut writers = JoinSet::new();
        for writer in 0..4 {
            let log = log.clone();
            writers.spawn(async move {
                let mut won = 0;
                while won < 10 {
                    let event = |id: &str, new: bool| if new { created(id) } else { observed(1) };
                    let new = log.instance(&instance_id("a")).await.unwrap().is_none();
                    let a = of_instance(&log, "a", vec![event("a", new)]).await;
                    let b = of_instance(&log, "b", vec![event("b", new)]).await;
                    let both = if writer % 2 == 0 {
                        vec![a, b]
                    } else {
                        vec![b, a]
                    };
                    let work = vec![
                        WorkChange::Needed(op_id(if writer % 2 == 0 { "x" } else { "y" })),
                        WorkChange::Needed(op_id(if writer % 2 == 0 { "y" } else { "x" })),
                    ];
                    match log.append(Unit { work, ..unit(both) }).await {
                        Ok(_) => won += 1,
                        Err(PortError::Conflict(why)) => {
                            assert!(!why.contains("deadlock"), "{why}");
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
        writers.join_all().await;
        assert_eq!(log.head().await.unwrap(), 80);
        assert_gapless(&log).await;
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_unit_is_written_whole() {
    for test in databases().await {
        let log = stores(&test).await.events;
        let started = of_op(&log, "o", vec![started("o", "i")]).await;
        append(&log, vec![started]).await.unwrap();
        let many = (0..230)
            .map(|step| VnfLcmOpOccEvent::StepStarted { at: at(2), step })
            .collect();
        let steps = of_op(&log, "o", many).await;
        assert_eq!(
            append(&log, vec![steps]).await.unwrap(),
            (2..=231).collect::<Vec<u64>>()
        );
        assert_gapless(&log).await;
        test.remove().await;
    }
}

async fn assert_gapless(log: &Arc<EventStore>) {
    let all = log.read_after(0, 10_000).await.unwrap();
    let positions: Vec<_> = all.iter().map(|event| event.position).collect();
    assert_eq!(
        positions,
        (1..=log.head().await.unwrap()).collect::<Vec<_>>()
    );
}
