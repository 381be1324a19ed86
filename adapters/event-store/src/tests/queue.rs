//! Deliveries: owed once, in order for each subscription and instance, leased, sent again by hand.

use super::fixture::*;
use cairn_db::args;
use cairn_db::testing::databases;
use cairn_domain::ids::{DeliveryId, SubscriptionId};
use cairn_domain::operation::OperationState;
use cairn_domain::ports::{Deliveries, Delivery, DeliveryState};
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
        let mut first = queue.due(at(0), 10, 60_000).await.unwrap();
        first.sort_by(|a, b| a.id.cmp(&b.id));
        assert_eq!(ids(&first), ["d-s-1", "d-s-3", "d-t-1"]);
        assert_eq!(queue.due(at(0), 10, 60_000).await.unwrap(), [], "leased");

        let failed = Delivery {
            tries: 1,
            last_tried_at: Some(at(1)),
            last_answer: Some(503),
            next_try_at: Some(at(60)),
            ..first[0].clone()
        };
        queue.record(&failed).await.unwrap();
        assert_eq!(
            queue.due(at(59), 10, 60_000).await.unwrap(),
            [],
            "its time has not come"
        );
        assert_eq!(
            queue.due(at(60), 10, 60_000).await.unwrap(),
            std::slice::from_ref(&failed)
        );
        queue
            .record(&Delivery {
                state: DeliveryState::GivenUp,
                ..failed
            })
            .await
            .unwrap();
        assert_eq!(
            ids(&queue.due(at(60), 10, 60_000).await.unwrap()),
            ["d-s-2"]
        );

        // The sender died: its lease ends by the database's clock.
        database
            .execute("UPDATE deliveries SET leased_until = 1", args![])
            .await
            .unwrap();
        assert_eq!(queue.due(at(60), 10, 60_000).await.unwrap().len(), 3);
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_set_back_holds_up_no_delivery() {
    for test in databases().await {
        let queue = stores(&test).await.deliveries;
        queue.enqueue(vec![owed("s", 1, "i")], 0, 1).await.unwrap();
        let fresh = queue.due(at(-3600), 10, 60_000).await.unwrap();
        assert_eq!(ids(&fresh), ["d-s-1"], "made in what is now the future");
        let failed = Delivery {
            tries: 1,
            last_tried_at: Some(at(1)),
            last_answer: Some(503),
            next_try_at: Some(at(60)),
            ..fresh[0].clone()
        };
        queue.record(&failed).await.unwrap();
        let tried = queue.due(at(-3600), 10, 60_000).await.unwrap();
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
            senders.spawn(async move { queue.due(at(0), 20, 60_000).await.unwrap() });
        }
        let mut claimed: Vec<_> = senders.join_all().await.into_iter().flatten().collect();
        claimed.extend(queue.due(at(0), 60, 60_000).await.unwrap());
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
        assert!(!queue.resend(&other, &done.id, at(5)).await.unwrap());
        assert!(queue.resend(&subscription, &done.id, at(5)).await.unwrap());
        let again = queue.due(at(5), 10, 60_000).await.unwrap();
        assert_eq!(ids(&again), ["d-s-1"], "the later one waits for it");
        queue.record(&done).await.unwrap();
        queue.record(&owed("s", 1, "i")).await.unwrap();
        queue.drop_pending(&subscription).await.unwrap();
        let left = queue.of_subscription(&subscription).await.unwrap();
        assert_eq!(left, [done]);
        test.remove().await;
    }
}
