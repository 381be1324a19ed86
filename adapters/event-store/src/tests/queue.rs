//! Deliveries: owed once, in order for each subscription and instance, leased, sent again by hand.

use super::fixture::*;
use cairn_db::testing::databases;
use cairn_db::{Database, args};
use cairn_domain::ids::{DeliveryId, SubscriptionId};
use cairn_domain::operation::OperationState;
use cairn_domain::ports::{Deliveries, Delivery, DeliveryState};
use cairn_domain::time::Timestamp;
use tokio::task::JoinSet;

fn owed(subscription: &str, position: u64, instance: &str) -> Delivery {
    Delivery {
        id: DeliveryId::parse(format!("d-{subscription}-{position}")).unwrap(),
        subscription: SubscriptionId::parse(subscription).unwrap(),
        position,
        notification_id: format!("n{position}"),
        instance: instance_id(instance),
        op: Some(op_id("o")),
        operation_state: Some(OperationState::RollingBack),
        state: DeliveryState::Pending,
        tries: 0,
        created_at: at(0),
        last_tried_at: None,
        last_answer: None,
        next_try_at: Some(at(0)),
    }
}

/// Times that no clock of a database shows.
const LONG_AGO_MS: i64 = 0;
const FAR_AHEAD_MS: i64 = 10_000_000_000_000;

/// The time of all deliveries has come.
async fn come(database: &Database) {
    let sql = "UPDATE deliveries SET next_try_at = 1";
    database.execute(sql, args![]).await.unwrap();
}

fn ids(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries
        .iter()
        .map(|delivery| delivery.id.as_str())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_owed_once_and_the_cursor_moves_with_them() {
    for test in databases().await {
        let queue = stores(&test).await.deliveries;
        assert_eq!(queue.cursor().await.unwrap(), 0);
        let mut replicas = JoinSet::new();
        for _ in 0..5 {
            let queue = queue.clone();
            replicas.spawn(async move {
                queue
                    .enqueue(vec![owed("s", 1, "i"), owed("s", 2, "i")], 0, 2)
                    .await
                    .unwrap();
            });
        }
        replicas.join_all().await;
        assert_eq!(queue.cursor().await.unwrap(), 2);
        queue
            .enqueue(vec![owed("s", 2, "i"), owed("s", 3, "i")], 2, 3)
            .await
            .unwrap();
        queue.enqueue(vec![owed("s", 9, "i")], 0, 9).await.unwrap();
        let subscription = SubscriptionId::parse("s").unwrap();
        let all = queue.of_subscription(&subscription).await.unwrap();
        assert_eq!(
            all,
            [owed("s", 1, "i"), owed("s", 2, "i"), owed("s", 3, "i")]
        );
        assert_eq!(queue.cursor().await.unwrap(), 3);
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_settled_long_ago_is_forgotten() {
    for test in databases().await {
        let queue = stores(&test).await.deliveries;
        let (old, waiting) = (owed("s", 1, "i"), owed("s", 2, "j"));
        queue
            .enqueue(vec![old.clone(), waiting.clone()], 0, 2)
            .await
            .unwrap();
        let delivered = Delivery {
            state: DeliveryState::Delivered,
            ..old
        };
        queue.record(&delivered).await.unwrap();
        // Another process begins its count anew. All of these were owed months ago.
        let queue = stores(&test).await.deliveries;
        let new = owed("s", 3, "k");
        queue.enqueue(vec![new.clone()], 2, 3).await.unwrap();
        let subscription = SubscriptionId::parse("s").unwrap();
        let left = queue.of_subscription(&subscription).await.unwrap();
        assert_eq!(left, [waiting, new]);
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_one_waits_for_the_former_of_its_instance() {
    for test in databases().await {
        let database = test.open().await;
        let queue = stores(&test).await.deliveries;
        let all = vec![
            owed("s", 1, "i"),
            owed("s", 2, "i"),
            owed("s", 3, "j"),
            owed("t", 1, "i"),
        ];
        queue.enqueue(all, 0, 3).await.unwrap();
        let mut first = queue.due(10, 60_000).await.unwrap();
        first.sort_by(|a, b| a.id.cmp(&b.id));
        assert_eq!(ids(&first), ["d-s-1", "d-s-3", "d-t-1"]);
        assert_eq!(queue.due(10, 60_000).await.unwrap(), [], "leased");

        let failed = failed(&first[0], at(1));
        queue.record(&failed).await.unwrap();
        assert_eq!(
            queue.due(10, 60_000).await.unwrap(),
            [],
            "its time has not come"
        );
        let pause = "SELECT next_try_at - last_tried_at FROM deliveries WHERE id = 'd-s-1'";
        let pause = database.fetch_optional(pause, args![]).await.unwrap();
        let pause = pause.unwrap().int(0).unwrap();
        assert!((60_000..60_100).contains(&pause), "{pause}");
        come(&database).await;
        let again = queue.due(10, 60_000).await.unwrap();
        assert_eq!(ids(&again), ["d-s-1"]);
        assert_eq!((again[0].tries, again[0].last_answer), (1, Some(503)));
        queue
            .record(&Delivery {
                state: DeliveryState::GivenUp,
                ..failed
            })
            .await
            .unwrap();
        assert_eq!(ids(&queue.due(10, 60_000).await.unwrap()), ["d-s-2"]);

        // The sender died: its lease ends by the database's clock.
        database
            .execute("UPDATE deliveries SET leased_until = 1", args![])
            .await
            .unwrap();
        assert_eq!(queue.due(10, 60_000).await.unwrap().len(), 3);
        test.remove().await;
    }
}

/// What a replica records of a failed try, whose own clock says this.
fn failed(delivery: &Delivery, now: Timestamp) -> Delivery {
    Delivery {
        tries: delivery.tries + 1,
        last_tried_at: Some(now),
        last_answer: Some(503),
        next_try_at: Some(now.plus_millis(60_000)),
        ..delivery.clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_holds_for_replicas_whose_clocks_differ() {
    for test in databases().await {
        let database = test.open().await;
        let queue = stores(&test).await.deliveries;
        for (round, replicas_clock) in [(1, LONG_AGO_MS), (2, FAR_AHEAD_MS)] {
            let replicas_clock = Timestamp::from_millis(replicas_clock);
            let new = Delivery {
                created_at: replicas_clock,
                next_try_at: Some(replicas_clock),
                ..owed("s", round, &format!("i{round}"))
            };
            queue.enqueue(vec![new], round - 1, round).await.unwrap();
            let due = queue.due(10, 60_000).await.unwrap();
            assert_eq!(due.len(), 1, "a new one is due, whoever made it");
            queue
                .record(&failed(&due[0], replicas_clock))
                .await
                .unwrap();
            let none = queue.due(10, 60_000).await.unwrap();
            assert_eq!(none, [], "nobody sends it before its time");
            come(&database).await;
            assert_eq!(queue.due(10, 60_000).await.unwrap().len(), 1);
            queue
                .drop_pending(&SubscriptionId::parse("s").unwrap())
                .await
                .unwrap();
        }
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_of_the_database_that_was_set_back_holds_up_no_delivery() {
    for test in databases().await {
        let database = test.open().await;
        let queue = stores(&test).await.deliveries;
        queue.enqueue(vec![owed("s", 1, "i")], 0, 1).await.unwrap();
        let fresh = queue.due(10, 60_000).await.unwrap();
        queue.record(&failed(&fresh[0], at(1))).await.unwrap();
        assert_eq!(queue.due(10, 60_000).await.unwrap(), []);
        let hour = "UPDATE deliveries SET last_tried_at = last_tried_at + 3600000, \
                    next_try_at = next_try_at + 3600000";
        database.execute(hour, args![]).await.unwrap();
        let tried = queue.due(10, 60_000).await.unwrap();
        assert_eq!(ids(&tried), ["d-s-1"], "tried in what is now the future");
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_delivery_is_claimed_by_two() {
    for test in databases().await {
        let queue = stores(&test).await.deliveries;
        let all: Vec<_> = (1..=60).map(|n| owed("s", n, &format!("i{n}"))).collect();
        queue.enqueue(all, 0, 60).await.unwrap();
        let mut senders = JoinSet::new();
        for _ in 0..4 {
            let queue = queue.clone();
            senders.spawn(async move { queue.due(20, 60_000).await.unwrap() });
        }
        let mut claimed: Vec<_> = senders.join_all().await.into_iter().flatten().collect();
        claimed.extend(queue.due(60, 60_000).await.unwrap());
        let mut names = ids(&claimed);
        names.sort_unstable();
        names.dedup();
        assert_eq!((claimed.len(), names.len()), (60, 60));
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_sent_again_by_hand_and_dropped_with_its_subscription() {
    for test in databases().await {
        let queue = stores(&test).await.deliveries;
        queue
            .enqueue(vec![owed("s", 1, "i"), owed("s", 2, "i")], 0, 2)
            .await
            .unwrap();
        let done = Delivery {
            state: DeliveryState::Delivered,
            last_answer: Some(204),
            next_try_at: None,
            ..owed("s", 1, "i")
        };
        queue.record(&done).await.unwrap();
        let subscription = SubscriptionId::parse("s").unwrap();
        let other = SubscriptionId::parse("t").unwrap();
        assert!(!queue.resend(&other, &done.id).await.unwrap());
        assert!(queue.resend(&subscription, &done.id).await.unwrap());
        let again = queue.due(10, 60_000).await.unwrap();
        assert_eq!(ids(&again), ["d-s-1"], "the later one waits for it");
        queue.record(&done).await.unwrap();
        queue.record(&owed("s", 1, "i")).await.unwrap();
        queue.drop_pending(&subscription).await.unwrap();
        let left = queue.of_subscription(&subscription).await.unwrap();
        assert_eq!(left, [done]);
        test.remove().await;
    }
}
