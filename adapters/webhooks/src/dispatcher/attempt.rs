//! What a delivery is after a try: accepted, due again, or given up.

use cairn_domain::ports::{CallbackAnswer, Delivery, DeliveryState};
use cairn_domain::time::Timestamp;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Waits between tries; the last one is repeated.
const BACKOFF: &[Duration] = &[
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(15),
    Duration::from_secs(30),
    Duration::from_mins(1),
    Duration::from_mins(2),
    Duration::from_mins(5),
    Duration::from_mins(10),
    Duration::from_mins(15),
];
/// Longest time that a receiver may put us off by `Retry-After`.
const LONGEST_RETRY_AFTER: Duration = Duration::from_hours(1);
/// How long a delivery is tried before it is given up.
const PATIENCE: Duration = Duration::from_hours(24);
/// Tries that each delivery gets, even one that was owed for long behind another.
const FEWEST_TRIES: u32 = 5;

/// The delivery after a try that ended `now`.
pub(super) fn after(mut delivery: Delivery, answer: &CallbackAnswer, now: Timestamp) -> Delivery {
    delivery.tries = delivery.tries.saturating_add(1);
    delivery.last_tried_at = Some(now);
    let retry_after_ms = match answer {
        CallbackAnswer::Accepted => {
            delivery.last_answer = Some(204);
            delivery.state = DeliveryState::Delivered;
            delivery.next_try_at = None;
            return delivery;
        }
        CallbackAnswer::Status {
            status,
            retry_after_ms,
        } => {
            delivery.last_answer = Some(*status);
            *retry_after_ms
        }
        CallbackAnswer::NoAnswer { why } => {
            tracing::info!(subscription.id = %delivery.subscription, why, "a callback did not answer");
            delivery.last_answer = Some(0);
            None
        }
    };
    if is_hopeless(&delivery, now) {
        tracing::warn!(subscription.id = %delivery.subscription, delivery.id = %delivery.id,
            "a notification is given up");
        delivery.state = DeliveryState::GivenUp;
        delivery.next_try_at = None;
        return delivery;
    }
    let asked = retry_after_ms.unwrap_or(0).min(millis(LONGEST_RETRY_AFTER));
    delivery.next_try_at = Some(now.plus_millis(wait_ms(&delivery).max(asked)));
    delivery
}

fn is_hopeless(delivery: &Delivery, now: Timestamp) -> bool {
    now.millis_since(delivery.created_at) >= millis(PATIENCE) && delivery.tries >= FEWEST_TRIES
}

/// The wait after so many tries, stretched by up to a quarter: those who failed together come back apart.
/// The stretch comes from the delivery itself, so that tests see the same.
fn wait_ms(delivery: &Delivery) -> u64 {
    let index = usize::try_from(delivery.tries.saturating_sub(1)).unwrap_or(usize::MAX);
    let wait = millis(BACKOFF[index.min(BACKOFF.len() - 1)]);
    let mut hasher = DefaultHasher::new();
    (delivery.id.as_str(), delivery.tries).hash(&mut hasher);
    wait + hasher.finish() % (wait / 4 + 1)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_domain::ids::{DeliveryId, SubscriptionId, VnfInstanceId};

    fn delivery() -> Delivery {
        Delivery {
            id: DeliveryId::parse("d").unwrap(),
            subscription: SubscriptionId::parse("s").unwrap(),
            position: 1,
            notification_id: "n".into(),
            instance: VnfInstanceId::parse("i").unwrap(),
            op: None,
            operation_state: None,
            state: DeliveryState::Pending,
            tries: 0,
            created_at: Timestamp::from_millis(0),
            last_tried_at: None,
            last_answer: None,
            next_try_at: Some(Timestamp::from_millis(0)),
        }
    }

    fn status(status: u16, retry_after_ms: Option<u64>) -> CallbackAnswer {
        CallbackAnswer::Status {
            status,
            retry_after_ms,
        }
    }

    #[test]
    fn a_receiver_that_is_down_is_tried_for_a_day_and_then_given_up() {
        let mut now = Timestamp::from_millis(0);
        let mut current = delivery();
        while current.state == DeliveryState::Pending {
            current = after(current, &status(500, None), now);
            if let Some(next) = current.next_try_at {
                assert!(next > now);
                now = next;
            }
        }
        assert_eq!(current.state, DeliveryState::GivenUp);
        assert!(now.millis_since(Timestamp::from_millis(0)) >= 24 * 3600 * 1000);
        assert!((80..150).contains(&current.tries), "{}", current.tries);
        assert_eq!(current.last_answer, Some(500));
    }

    #[test]
    fn waits_grow_and_are_stretched_by_a_quarter_at_most() {
        for (tries, seconds) in [(0, 1), (1, 2), (4, 15), (10, 900), (1000, 900)] {
            let now = Timestamp::from_millis(0);
            let next = after(
                Delivery {
                    tries,
                    ..delivery()
                },
                &status(503, None),
                now,
            );
            let wait = next.next_try_at.unwrap().millis_since(now);
            assert!(
                (seconds * 1000..=seconds * 1250).contains(&wait),
                "{tries}: {wait}"
            );
        }
    }

    #[test]
    fn retry_after_is_obeyed_within_an_hour() {
        let now = Timestamp::from_millis(0);
        let wait = |ms| {
            after(delivery(), &status(429, Some(ms)), now)
                .next_try_at
                .unwrap()
                .millis_since(now)
        };
        assert_eq!(wait(120_000), 120_000);
        assert_eq!(wait(u64::MAX), 3_600_000);
        assert!(wait(0) >= 1_000);
    }

    #[test]
    fn only_acceptance_is_delivery() {
        let now = Timestamp::from_millis(5);
        let accepted = after(delivery(), &CallbackAnswer::Accepted, now);
        assert_eq!(
            (accepted.state, accepted.last_answer),
            (DeliveryState::Delivered, Some(204))
        );
        for answer in [
            status(200, None),
            status(302, None),
            CallbackAnswer::NoAnswer { why: "gone".into() },
        ] {
            assert_eq!(
                after(delivery(), &answer, now).state,
                DeliveryState::Pending
            );
        }
    }
}
