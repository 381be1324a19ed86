//! Whole runs of the dispatcher: order, ids, restarts, replicas.

use crate::dispatcher::{Dispatcher, DispatcherPorts};
use crate::render::SolRenderer;
use crate::tests::memory::{CountedIds, MemoryLog, MemoryQueue, Receivers, until};
use cairn_api_types::PublicUrl;
use cairn_domain::operation::ErrorPoint;
use cairn_domain::ports::{CallbackAnswer, DeliveryState, EventLog};
use cairn_domain::testing::op;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

struct Setup {
    log: Arc<MemoryLog>,
    queue: Arc<MemoryQueue>,
    receivers: Arc<Receivers>,
    ports: DispatcherPorts,
}

fn setup(receivers: Receivers) -> Setup {
    let log = Arc::new(MemoryLog::default());
    let queue = Arc::new(MemoryQueue::default());
    let receivers = Arc::new(receivers);
    let url = PublicUrl::parse("https://gw.example/vnfm/").unwrap();
    let ports = DispatcherPorts {
        log: log.clone(),
        deliveries: queue.clone(),
        callbacks: receivers.clone(),
        renderer: Arc::new(SolRenderer::new(log.clone(), url)),
        clock: queue.clock.clone(),
        ids: Arc::new(CountedIds::default()),
    };
    Setup {
        log,
        queue,
        receivers,
        ports,
    }
}

impl Setup {
    /// Runs so many replicas until everything in the log is delivered or given up.
    async fn run(&self, replicas: usize) {
        let cancel = CancellationToken::new();
        let head = self.log.head().await.unwrap();
        let running = futures::future::join_all(
            (0..replicas).map(|_| Dispatcher::new(self.ports.clone()).run(cancel.clone())),
        );
        let until_done = async {
            self.queue.done(head).await;
            cancel.cancel();
        };
        futures::join!(running, until_done);
    }
}

fn refused() -> CallbackAnswer {
    CallbackAnswer::Status {
        status: 500,
        retry_after_ms: None,
    }
}

fn states(bodies: &[Value]) -> Vec<&str> {
    bodies
        .iter()
        .map(|body| body["operationState"].as_str().unwrap_or("-"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_next_notification_waits_for_the_former() {
    let setup = setup(Receivers::that(|_, body, before| {
        if body["operationState"] == "STARTING" && before < 3 {
            refused()
        } else {
            CallbackAnswer::Accepted
        }
    }));
    setup.log.subscribe("s-1", None);
    setup
        .log
        .tell(&op().instantiate().completed(), "i-1", "o-1");
    setup.run(1).await;

    let heard = setup.receivers.heard_by("s-1");
    assert_eq!(
        states(&heard),
        [
            "-",
            "STARTING",
            "STARTING",
            "STARTING",
            "STARTING",
            "PROCESSING",
            "COMPLETED"
        ]
    );
    assert!(
        heard[1..5].iter().all(|body| *body == heard[1]),
        "a resend says the same under the same id"
    );
    let tries: Vec<u32> = setup.queue.all().iter().map(|d| d.tries).collect();
    assert_eq!(tries, [1, 4, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn one_lane_that_is_stuck_holds_no_other_up() {
    let setup = setup(Receivers::that(|to, body, _| {
        let stuck = to.contains("s-1") && body["vnfInstanceId"] == "i-1";
        if stuck {
            refused()
        } else {
            CallbackAnswer::Accepted
        }
    }));
    setup.log.subscribe("s-1", None);
    setup.log.subscribe("s-2", None);
    setup
        .log
        .tell(&op().instantiate().completed(), "i-1", "o-1");
    setup
        .log
        .tell(&op().instantiate().completed(), "i-2", "o-2");
    let cancel = CancellationToken::new();
    let dispatcher = Dispatcher::new(setup.ports.clone()).run(cancel.clone());
    let delivered = || {
        let all = setup.queue.all();
        all.iter()
            .filter(|d| d.state == DeliveryState::Delivered)
            .count()
    };
    let until_others_are_done = async {
        until("as many notifications", || delivered() >= 12).await;
        cancel.cancel();
    };
    futures::join!(dispatcher, until_others_are_done);

    assert_eq!(setup.receivers.heard_by("s-2").len(), 8);
    let of_s1 = setup.receivers.heard_by("s-1");
    let lane = |instance: &str| -> Vec<Value> {
        of_s1
            .iter()
            .filter(|b| b["vnfInstanceId"] == *instance)
            .cloned()
            .collect()
    };
    assert_eq!(
        states(&lane("i-2")),
        ["-", "STARTING", "PROCESSING", "COMPLETED"]
    );
    let stuck = lane("i-1");
    assert!(!stuck.is_empty() && stuck.iter().all(|body| *body == stuck[0]));
    assert!(setup.queue.all().iter().any(|d| d.last_answer == Some(500)));
}

#[tokio::test(start_paused = true)]
async fn all_subscribers_hear_the_same_id() {
    let setup = setup(Receivers::accepting());
    setup.log.subscribe("s-1", None);
    setup.log.subscribe("s-2", None);
    setup
        .log
        .tell(&op().instantiate().completed(), "i-1", "o-1");
    setup.run(1).await;
    let ids = |id: &str| -> Vec<Value> {
        setup
            .receivers
            .heard_by(id)
            .iter()
            .map(|body| body["id"].clone())
            .collect()
    };
    assert_eq!(ids("s-1"), ids("s-2"));
    assert_eq!(ids("s-1").len(), 4);
    let first = &setup.receivers.heard_by("s-2")[1];
    assert_eq!(
        first["_links"]["vnfLcmOpOcc"]["href"]
            .as_str()
            .unwrap()
            .split("/vnflcm")
            .next(),
        Some("https://gw.example/vnfm")
    );
    assert_eq!(first["subscriptionId"], "s-2");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_owed_what_came_after_it_and_passes_its_filter() {
    let setup = setup(Receivers::accepting());
    setup
        .log
        .tell(&op().instantiate().completed(), "i-1", "o-1");
    setup.log.subscribe(
        "s-1",
        Some(json!({"operationStates": ["COMPLETED", "FAILED_TEMP"]})),
    );
    setup.log.subscribe(
        "s-2",
        Some(json!({"vnfInstanceSubscriptionFilter": {"vnfdIds": ["other"]}})),
    );
    setup.log.tell(
        &op().instantiate().failed_at(ErrorPoint::PostVimControl),
        "i-2",
        "o-2",
    );
    setup.run(1).await;
    let heard = setup.receivers.heard_by("s-1");
    assert_eq!(states(&heard), ["FAILED_TEMP"]);
    assert!(heard[0]["error"]["detail"].is_string());
    assert!(setup.receivers.heard_by("s-2").is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_queued_for_a_deleted_subscription_is_dropped() {
    let setup = setup(Receivers::that(|_, _, _| refused()));
    setup.log.subscribe("s-1", None);
    setup
        .log
        .tell(&op().instantiate().completed(), "i-1", "o-1");
    let cancel = CancellationToken::new();
    let dispatcher = Dispatcher::new(setup.ports.clone()).run(cancel.clone());
    let story = async {
        until("as many notifications", || {
            setup.receivers.heard_by("s-1").len() >= 2
        })
        .await;
        setup.log.unsubscribe("s-1");
        setup.queue.done(setup.log.head().await.unwrap()).await;
        cancel.cancel();
    };
    futures::join!(dispatcher, story);
    assert!(setup.queue.all().is_empty(), "{:?}", setup.queue.all());
    assert_eq!(
        states(&setup.receivers.heard_by("s-1"))
            .iter()
            .filter(|s| **s != "-")
            .count(),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn a_restart_goes_on_where_it_was_and_says_the_same() {
    let setup = setup(Receivers::that(|_, body, before| {
        if body["operationState"] == "PROCESSING" && body["vnfInstanceId"] == "i-1" && before < 2 {
            refused()
        } else {
            CallbackAnswer::Accepted
        }
    }));
    setup.log.subscribe("s-1", None);
    setup
        .log
        .tell(&op().instantiate().completed(), "i-1", "o-1");
    let cancel = CancellationToken::new();
    let first = Dispatcher::new(setup.ports.clone()).run(cancel.clone());
    let stop = async {
        until("as many notifications", || {
            setup.receivers.heard_by("s-1").len() >= 3
        })
        .await;
        cancel.cancel();
    };
    futures::join!(first, stop);
    // While it was down, more happened; the operation went on beyond what is still owed.
    setup.log.tell(
        &op().instantiate().failed_at(ErrorPoint::NotifyProcessing),
        "i-2",
        "o-2",
    );
    setup.run(1).await;

    let heard = setup.receivers.heard_by("s-1");
    let of_first: Vec<Value> = heard
        .iter()
        .filter(|b| b["vnfInstanceId"] == "i-1")
        .cloned()
        .collect();
    assert_eq!(
        states(&of_first),
        [
            "-",
            "STARTING",
            "PROCESSING",
            "PROCESSING",
            "PROCESSING",
            "COMPLETED"
        ]
    );
    assert!(of_first[2..5].iter().all(|body| *body == of_first[2]));
    let of_second: Vec<Value> = heard
        .iter()
        .filter(|b| b["vnfInstanceId"] == "i-2")
        .cloned()
        .collect();
    assert_eq!(
        states(&of_second),
        ["-", "STARTING", "PROCESSING", "FAILED_TEMP"]
    );
}

#[tokio::test(start_paused = true)]
async fn three_replicas_tell_everything_once() {
    let setup = setup(Receivers::accepting());
    setup.log.subscribe("s-1", None);
    for n in 0..20 {
        setup.log.tell(
            &op().instantiate().completed(),
            &format!("i-{n}"),
            &format!("o-{n}"),
        );
    }
    setup.run(3).await;
    let heard = setup.receivers.heard_by("s-1");
    assert_eq!(heard.len(), 80);
    for n in 0..20 {
        let instance = format!("i-{n}");
        let of_one: Vec<Value> = heard
            .iter()
            .filter(|b| b["vnfInstanceId"] == *instance)
            .cloned()
            .collect();
        assert_eq!(
            states(&of_one),
            ["-", "STARTING", "PROCESSING", "COMPLETED"]
        );
    }
}
