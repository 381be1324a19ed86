//! What an instance accepts: the table of the DEPLOYFAIL rule, as one function.

use super::{Claim, ClaimPhase, Rejection, Standing, VnfInstance};
use crate::operation::Operation;

impl VnfInstance {
    /// Whether an operation may begin.
    pub(super) fn may_begin(
        &self,
        operation: Operation,
        changes_vnfd: bool,
    ) -> Result<(), Rejection> {
        match &self.claim {
            Some(claim) if claim.phase == ClaimPhase::Halted => {
                self.may_begin_beside(claim, operation, changes_vnfd)
            }
            Some(claim) => Err(Rejection::NotNow(format!(
                "operation {} ({}) is under way; wait for its end, or cancel it",
                claim.op, claim.operation
            ))),
            None => self.may_begin_alone(operation, changes_vnfd),
        }
    }

    fn may_begin_beside(
        &self,
        claim: &Claim,
        operation: Operation,
        changes_vnfd: bool,
    ) -> Result<(), Rejection> {
        let op = &claim.op;
        if operation == Operation::ModifyInfo {
            self.must_be_alone()?;
            if changes_vnfd {
                return Err(Rejection::NotNow(format!(
                    "vnfdId cannot be changed while operation {op} is in FAILED_TEMP; retry, roll back or fail it first"
                )));
            }
            return Ok(());
        }
        let instead = match (claim.operation, operation) {
            (Operation::Instantiate, Operation::Instantiate)
            | (Operation::Terminate, Operation::Terminate) => "use retry on it instead",
            (Operation::Instantiate, Operation::Terminate) => "use rollback on it instead",
            _ => "retry, rollback or fail it first",
        };
        Err(Rejection::NotNow(format!(
            "operation {op} ({}) is in FAILED_TEMP; {instead}",
            claim.operation
        )))
    }

    fn may_begin_alone(&self, operation: Operation, changes_vnfd: bool) -> Result<(), Rejection> {
        let instantiated = self.instantiated.is_some();
        let legal = match operation {
            Operation::ModifyInfo => !changes_vnfd || !instantiated,
            Operation::Instantiate => {
                matches!(self.standing, Standing::Available | Standing::DeployFail)
            }
            Operation::Scale | Operation::ScaleToLevel | Operation::ChangeVnfpkg => {
                matches!(self.standing, Standing::Active | Standing::UpdateFail)
            }
            Operation::Heal => {
                instantiated
                    && matches!(
                        self.standing,
                        Standing::Active | Standing::UpdateFail | Standing::DeleteFail
                    )
            }
            Operation::Terminate => self.standing != Standing::Available,
        };
        if legal {
            return Ok(());
        }
        Err(Rejection::NotNow(self.why_not(operation)))
    }

    fn why_not(&self, operation: Operation) -> String {
        let (state, _) = self.provisioning();
        let instead = match (self.standing, operation) {
            (_, Operation::ModifyInfo) => "vnfdId can be changed only while NOT_INSTANTIATED",
            (Standing::Available, _) => "it is NOT_INSTANTIATED; instantiate it first",
            (Standing::Active | Standing::UpdateFail, _) => {
                "it is INSTANTIATED already; terminate it first"
            }
            (Standing::DeployFail, _) => {
                "its instantiation was given up; instantiate it again, or terminate it to remove what is left"
            }
            (Standing::DeleteFail, _) if self.instantiated.is_none() => {
                "removing its leftovers was given up; terminate it again"
            }
            (Standing::DeleteFail, _) => {
                "its termination was given up; terminate it again, or heal it"
            }
        };
        format!("{operation} is not possible while the VNF instance is {state}: {instead}")
    }

    /// Whether the identifier may be deleted.
    pub(super) fn may_be_deleted(&self) -> Result<(), Rejection> {
        if let Some(claim) = &self.claim {
            return Err(Rejection::NotNow(format!(
                "operation {} ({}) holds the VNF instance; it must end first",
                claim.op, claim.operation
            )));
        }
        if self.instantiated.is_some() {
            return Err(Rejection::NotNow(
                "the VNF instance is INSTANTIATED; terminate it first".into(),
            ));
        }
        if !self.leftovers.is_empty() {
            let names: Vec<String> = self
                .leftovers
                .iter()
                .map(|l| l.object.to_string())
                .collect();
            return Err(Rejection::NotNow(format!(
                "a given-up operation left {} in the cluster; terminate the VNF instance to remove them",
                names.join(", ")
            )));
        }
        match self.standing {
            Standing::Available | Standing::DeployFail => Ok(()),
            Standing::Active | Standing::UpdateFail | Standing::DeleteFail => {
                Err(Rejection::NotNow("terminate the VNF instance first".into()))
            }
        }
    }
}
