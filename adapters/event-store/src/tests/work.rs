//! Leases: claimed once, fenced, taken over, released, set aside.

use super::fixture::*;
use crate::Stores;
use cairn_db::testing::databases;
use cairn_db::{Database, Dialect, args};
use cairn_domain::lcm_op_occ::VnfLcmOpOccEvent;
use cairn_domain::ports::{
    Appended, EventLog, Fence, Lease, PortError, PortResult, Unit, WorkChange, WorkQueue,
};
use std::collections::BTreeSet;
use tokio::task::JoinSet;

async fn need(stores: &Stores, ids: &[&str]) {
    let work = ids.iter().map(|id| WorkChange::Needed(op_id(id))).collect();
    stores
        .events
        .append(Unit {
            work,
            ..Unit::default()
        })
        .await
        .unwrap();
}

async fn expire(database: &Database) {
    database
        .execute(
            "UPDATE work SET expires_at = 1 WHERE owner IS NOT NULL",
            args![],
        )
        .await
        .unwrap();
}

async fn fenced(stores: &Stores, lease: &Lease) -> PortResult<Appended> {
    let next = of_op(
        &stores.events,
        lease.op.as_str(),
        vec![VnfLcmOpOccEvent::GrantRequested { at: at(2) }],
    )
    .await;
    let fence = Some(Fence {
        op: lease.op.clone(),
        number: lease.fence,
    });
    stores
        .events
        .append(Unit {
            fence,
            ..unit(vec![next])
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_lease_is_taken_over_and_its_runner_is_fenced() {
    for test in databases().await {
        let database = test.open().await;
        let stores = stores(&test).await;
        let started = of_op(&stores.events, "o", vec![started("o", "i")]).await;
        let work = vec![WorkChange::Needed(op_id("o"))];
        stores
            .events
            .append(Unit {
                work,
                ..unit(vec![started])
            })
            .await
            .unwrap();

        let old = stores.work.claim(&node("a"), 10).await.unwrap();
        assert_eq!(
            old,
            [Lease {
                op: op_id("o"),
                fence: 1
            }]
        );
        assert_eq!(stores.work.claim(&node("b"), 10).await.unwrap(), []);
        let owner = stores.work.owner(&op_id("o")).await.unwrap().unwrap();
        assert_eq!(owner.node, node("a"));
        fenced(&stores, &old[0]).await.unwrap();

        expire(&database).await;
        assert_eq!(stores.work.owner(&op_id("o")).await.unwrap(), None);
        assert!(matches!(
            fenced(&stores, &old[0]).await,
            Err(PortError::Fenced)
        ));
        let new = stores.work.claim(&node("b"), 10).await.unwrap();
        assert_eq!(
            new,
            [Lease {
                op: op_id("o"),
                fence: 2
            }]
        );
        assert!(matches!(
            fenced(&stores, &old[0]).await,
            Err(PortError::Fenced)
        ));
        assert_eq!(stores.work.heartbeat(&node("a"), &old).await.unwrap(), []);
        assert_eq!(stores.work.heartbeat(&node("b"), &new).await.unwrap(), new);
        fenced(&stores, &new[0]).await.unwrap();

        stores.work.release(&node("a"), &old).await.unwrap();
        assert!(
            stores.work.owner(&op_id("o")).await.unwrap().is_some(),
            "not a's to release"
        );
        stores.work.release(&node("b"), &old).await.unwrap();
        assert!(
            stores.work.owner(&op_id("o")).await.unwrap().is_some(),
            "a lease of before gives nothing back"
        );
        stores.work.release(&node("b"), &new).await.unwrap();
        assert!(matches!(
            fenced(&stores, &new[0]).await,
            Err(PortError::Fenced)
        ));
        assert_eq!(stores.work.claim(&node("a"), 10).await.unwrap()[0].fence, 3);
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_needs_no_owner_until_it_is_needed_again() {
    for test in databases().await {
        let stores = stores(&test).await;
        let started = of_op(&stores.events, "o", vec![started("o", "i")]).await;
        append(&stores.events, vec![started]).await.unwrap();
        need(&stores, &["o"]).await;
        let lease = stores.work.claim(&node("a"), 1).await.unwrap().remove(0);
        let done = Unit {
            fence: Some(Fence {
                op: op_id("o"),
                number: lease.fence,
            }),
            work: vec![WorkChange::Done(op_id("o"))],
            ..Unit::default()
        };
        stores.events.append(done).await.unwrap();
        assert_eq!(stores.work.owner(&op_id("o")).await.unwrap(), None);
        assert_eq!(
            stores
                .work
                .heartbeat(&node("a"), std::slice::from_ref(&lease))
                .await
                .unwrap(),
            []
        );
        assert!(matches!(
            fenced(&stores, &lease).await,
            Err(PortError::Fenced)
        ));
        assert_eq!(stores.work.claim(&node("a"), 1).await.unwrap(), []);
        need(&stores, &["o"]).await;
        assert_eq!(stores.work.claim(&node("a"), 1).await.unwrap()[0].fence, 2);
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifteen_hundred_operations_are_claimed_once_each() {
    for test in databases().await {
        let stores = stores(&test).await;
        let ids: Vec<String> = (0..1500).map(|n| format!("o{n}")).collect();
        need(&stores, &ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let mut claims = JoinSet::new();
        for name in ["a", "b", "c"] {
            let work = stores.work.clone();
            claims.spawn(async move {
                let mine = work.claim(&node(name), 600).await.unwrap();
                assert!(mine.len() <= 600);
                assert_eq!(work.heartbeat(&node(name), &mine).await.unwrap(), mine);
                mine
            });
        }
        let mut claimed: Vec<Lease> = claims.join_all().await.into_iter().flatten().collect();
        claimed.extend(stores.work.claim(&node("d"), usize::MAX).await.unwrap());
        let distinct: BTreeSet<_> = claimed.iter().map(|lease| lease.op.clone()).collect();
        assert_eq!((claimed.len(), distinct.len()), (1500, 1500));
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_aside_stops_nothing_and_comes_back() {
    for test in databases().await {
        let database = test.open().await;
        let stores = stores(&test).await;
        need(&stores, &["good", "poison"]).await;
        let leases = stores.work.claim(&node("a"), 10).await.unwrap();
        let poison = leases
            .iter()
            .find(|lease| lease.op == op_id("poison"))
            .unwrap();
        stores
            .work
            .quarantine(poison, "its stream cannot be read", 60_000)
            .await
            .unwrap();
        assert_eq!(stores.work.owner(&op_id("poison")).await.unwrap(), None);
        assert_eq!(stores.work.claim(&node("b"), 10).await.unwrap(), []);
        let row = database
            .fetch_optional(
                "SELECT quarantined FROM work WHERE op_id = 'poison'",
                args![],
            )
            .await
            .unwrap();
        assert_eq!(row.unwrap().text(0).unwrap(), "its stream cannot be read");
        database
            .execute(
                "UPDATE work SET retry_at = 1 WHERE retry_at IS NOT NULL",
                args![],
            )
            .await
            .unwrap();
        let again = stores.work.claim(&node("b"), 10).await.unwrap();
        assert_eq!(
            again,
            [Lease {
                op: op_id("poison"),
                fence: 2
            }]
        );
        stores
            .work
            .quarantine(poison, "too late", 60_000)
            .await
            .unwrap();
        assert!(
            stores.work.owner(&op_id("poison")).await.unwrap().is_some(),
            "an old fence"
        );
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_processes_are_those_that_live() {
    for test in databases().await {
        let database = test.open().await;
        let stores = stores(&test).await;
        need(&stores, &["o"]).await;
        assert_eq!(stores.work.claim(&node("a"), 1).await.unwrap().len(), 1);
        assert_eq!(stores.work.other_nodes(&node("a")).await.unwrap(), 0);
        assert_eq!(stores.work.other_nodes(&node("b")).await.unwrap(), 1);
        expire(&database).await;
        database
            .execute("UPDATE nodes SET seen_at = 1", args![])
            .await
            .unwrap();
        assert_eq!(stores.work.other_nodes(&node("b")).await.unwrap(), 0);
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_of_a_sqlite_file_takes_all_leases_over_at_once() {
    for test in databases().await {
        let stores = stores(&test).await;
        need(&stores, &["o", "p"]).await;
        stores.work.claim(&node("dead"), 2).await.unwrap();
        let freed = stores.work.take_over_all(&node("new")).await.unwrap();
        let claimed = stores.work.claim(&node("new"), 2).await.unwrap();
        match test.open().await.dialect() {
            Dialect::Sqlite => assert_eq!((freed, claimed.len()), (2, 2)),
            Dialect::Postgres => assert_eq!((freed, claimed.len()), (0, 0)),
        }
        test.remove().await;
    }
}
