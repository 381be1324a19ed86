//! Answers as they are kept under an idempotency key.

use cairn_domain::ids::{SubscriptionId, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::ports::{Accepted, CommandError, KeyedAnswer, PortError};

/// The text of an answer.
pub fn encode(accepted: &Accepted) -> String {
    match accepted {
        Accepted::Instance(id) => format!("instance {id}"),
        Accepted::Operation(id) => format!("operation {id}"),
        Accepted::Subscription(id) => format!("subscription {id}"),
        Accepted::SameSubscription(id) => format!("same-subscription {id}"),
        Accepted::Done => "done".to_owned(),
    }
}

/// The answer of a text.
pub fn decode(answer: &KeyedAnswer) -> Result<Accepted, CommandError> {
    parse(&answer.answer).ok_or_else(|| {
        CommandError::Port(PortError::Corrupt(format!(
            "the answer kept under an idempotency key is unreadable: {:?}",
            answer.answer
        )))
    })
}

fn parse(text: &str) -> Option<Accepted> {
    match text.split_once(' ') {
        None if text == "done" => Some(Accepted::Done),
        Some(("instance", id)) => VnfInstanceId::parse(id).ok().map(Accepted::Instance),
        Some(("operation", id)) => VnfLcmOpOccId::parse(id).ok().map(Accepted::Operation),
        Some(("subscription", id)) => SubscriptionId::parse(id).ok().map(Accepted::Subscription),
        Some(("same-subscription", id)) => SubscriptionId::parse(id)
            .ok()
            .map(Accepted::SameSubscription),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_survives_being_kept() {
        for accepted in [
            Accepted::Instance(VnfInstanceId::parse("i").unwrap()),
            Accepted::Operation(VnfLcmOpOccId::parse("o").unwrap()),
            Accepted::Subscription(SubscriptionId::parse("s").unwrap()),
            Accepted::SameSubscription(SubscriptionId::parse("s").unwrap()),
            Accepted::Done,
        ] {
            assert_eq!(parse(&encode(&accepted)), Some(accepted));
        }
        assert_eq!(parse("something else"), None);
    }
}
