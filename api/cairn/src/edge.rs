//! What comes from outside and is not a system of its own: time, fresh ids, grants.

use async_trait::async_trait;
use cairn_domain::ids::GrantId;
use cairn_domain::ports::{Clock, GrantRequest, Ids, Nfvo, PortError, PortResult};
use cairn_domain::time::Timestamp;
use std::time::UNIX_EPOCH;

/// The clock of this machine.
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the Clock port that others must use"
    )]
    fn now(&self) -> Timestamp {
        let now = std::time::SystemTime::now();
        // A clock before 1970 reads as 1970: times are for reading, never for deciding what is legal.
        let ms = now
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis());
        Timestamp::from_millis(i64::try_from(ms).unwrap_or(i64::MAX))
    }
}

/// Random UUIDs.
pub struct RandomIds;

impl Ids for RandomIds {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the Ids port that others must use"
    )]
    fn fresh(&self) -> String {
        uuid::Uuid::new_v4().to_string()
    }
}

/// The built-in NFVO: whoever may ask is granted. The grant of an operation asked again is the same.
pub struct BuiltInNfvo;

#[async_trait]
impl Nfvo for BuiltInNfvo {
    async fn grant(&self, request: GrantRequest) -> PortResult<GrantId> {
        let id = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, request.op.as_str().as_bytes());
        GrantId::parse(id.to_string()).map_err(|e| PortError::Corrupt(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_domain::ids::{VnfInstanceId, VnfLcmOpOccId};
    use cairn_domain::operation::Operation;

    #[tokio::test]
    async fn the_same_operation_is_granted_the_same_grant() {
        let request = || GrantRequest {
            instance: VnfInstanceId::parse("i").unwrap(),
            op: VnfLcmOpOccId::parse("o").unwrap(),
            operation: Operation::Scale,
        };
        let first = BuiltInNfvo.grant(request()).await.unwrap();
        assert_eq!(BuiltInNfvo.grant(request()).await.unwrap(), first);
    }
}
