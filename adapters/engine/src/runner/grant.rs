//! Asking for the grant, in STARTING.

use super::work::{Stop, Work};
use crate::unit::Session;
use cairn_domain::lcm_op_occ::VnfLcmOpOccCommand as Command;
use cairn_domain::ports::{GrantRequest, PortError, Unit};
use cairn_domain::waits::{Obstacle, Phase};
use std::time::Duration;

/// How long one request for a grant may take.
const GRANT_TIMEOUT: Duration = Duration::from_secs(30);

impl Work {
    pub(super) async fn seek_grant(&mut self, session: Session) -> Result<(), Stop> {
        let Some(op) = session.op().cloned() else {
            return Err(Stop::Unworkable("the operation has no state".into()));
        };
        if !op.grant_requested {
            return self
                .decide(session, Command::RequestGrant { at: self.now() })
                .await;
        }
        let request = GrantRequest {
            instance: op.vnf_instance_id.clone(),
            op: op.id.clone(),
            operation: op.operation(),
        };
        let nfvo = self.runner.ports.nfvo.clone();
        let answer = tokio::select! {
            () = self.lost.cancelled() => return Err(Stop::Lost),
            () = self.cancelled(false) => return Ok(()),
            answer = tokio::time::timeout(GRANT_TIMEOUT, nfvo.grant(request)) => answer,
        };
        let why = match answer {
            Ok(Ok(grant_id)) => {
                let mut session = self.load().await?;
                let at = self.now();
                let granted = session.decide(Command::Grant { at, grant_id });
                if let Err(refused) = granted.and_then(|()| self.go_ahead(&mut session)) {
                    return self.late(refused);
                }
                return self.write(session, Unit::default()).await;
            }
            Ok(Err(PortError::Refused(problem))) => {
                let session = self.load().await?;
                return self
                    .decide(
                        session,
                        Command::RejectGrant {
                            at: self.now(),
                            problem,
                        },
                    )
                    .await;
            }
            Ok(Err(failed)) => failed.to_string(),
            Err(_) => format!(
                "the NFVO did not answer within {} s",
                GRANT_TIMEOUT.as_secs()
            ),
        };
        let obstacle = Obstacle {
            object: "grant".into(),
            source: "call".into(),
            reason: "Unreachable".into(),
            message: why,
            progress: 0,
        };
        self.wait_for(&op, vec![obstacle], Phase::Checks).await
    }
}
