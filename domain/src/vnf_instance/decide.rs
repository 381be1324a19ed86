//! What each command means where the instance stands.

use super::{Effect, Rejection, Remains, VnfInstance, VnfInstanceCommand, VnfInstanceEvent};
use crate::hook::is_hook_job;
use crate::ids::VnfLcmOpOccId;
use crate::lcm_op_occ::plan::{ManagedObject, Vnfc};
use crate::operation::OperationState;
use crate::time::Timestamp;

/// Turns a command into facts, or refuses it.
///
/// # Errors
///
/// [`Rejection`] when the instance does not exist or its recorded state forbids the command.
pub fn decide(
    state: Option<&VnfInstance>,
    command: VnfInstanceCommand,
) -> Result<Vec<VnfInstanceEvent>, Rejection> {
    match (state, command) {
        (
            None,
            VnfInstanceCommand::Create {
                at,
                id,
                by,
                tenant,
                product,
                info,
            },
        ) => Ok(vec![VnfInstanceEvent::VnfIdentifierCreated {
            at,
            id,
            by,
            tenant,
            product,
            info,
        }]),
        (Some(_), VnfInstanceCommand::Create { .. }) => Err(Rejection::Exists),
        (None, _) => Err(Rejection::NotFound),
        (Some(instance), _) if instance.deleted => Err(Rejection::NotFound),
        (Some(instance), command) => instance.decide_living(command),
    }
}

impl VnfInstance {
    fn decide_living(
        &self,
        command: VnfInstanceCommand,
    ) -> Result<Vec<VnfInstanceEvent>, Rejection> {
        match command {
            VnfInstanceCommand::Create { .. } => Err(Rejection::Exists),
            VnfInstanceCommand::Claim {
                at,
                op,
                operation,
                overlay,
                changes_vnfd,
                vnf_pkg_id,
            } => {
                self.may_begin(operation, changes_vnfd)?;
                Ok(vec![VnfInstanceEvent::OperationClaimed {
                    at,
                    op,
                    operation,
                    overlay,
                    vnf_pkg_id,
                }])
            }
            VnfInstanceCommand::Halt { at, op } => {
                self.must_hold(&op)?;
                Ok(vec![VnfInstanceEvent::OperationHalted { at, op }])
            }
            VnfInstanceCommand::Resume {
                at,
                op,
                rolling_back,
            } => {
                self.must_hold(&op)?;
                self.must_be_alone()?;
                Ok(vec![VnfInstanceEvent::OperationResumed {
                    at,
                    op,
                    rolling_back,
                }])
            }
            VnfInstanceCommand::Complete {
                at,
                op,
                effect,
                hook_jobs_removed,
            } => self.complete(at, op, effect, hook_jobs_removed),
            VnfInstanceCommand::GiveUp { at, op, remains } => self.give_up(at, op, remains),
            VnfInstanceCommand::TakeBack {
                at,
                op,
                vnfcs,
                objects,
                hook_jobs_removed,
            } => self.take_back(at, op, vnfcs, &objects, hook_jobs_removed),
            VnfInstanceCommand::ObserveVnfcs { at, vnfcs } => Ok(self.observe(at, vnfcs)),
            VnfInstanceCommand::Delete { at, by, tenant } => {
                self.may_be_deleted()?;
                Ok(vec![VnfInstanceEvent::VnfIdentifierDeleted {
                    at,
                    by,
                    tenant,
                }])
            }
        }
    }

    fn must_hold(&self, op: &VnfLcmOpOccId) -> Result<(), Rejection> {
        let holds = self.claim.as_ref().is_some_and(|claim| claim.op == *op);
        if holds || self.beside.as_ref() == Some(op) {
            return Ok(());
        }
        Err(Rejection::NotTheHolder { op: op.clone() })
    }

    pub(super) fn must_be_alone(&self) -> Result<(), Rejection> {
        match &self.beside {
            None => Ok(()),
            Some(op) => Err(Rejection::NotNow(format!(
                "MODIFY_INFO operation {op} is changing the VNF instance; try again when it has ended"
            ))),
        }
    }

    fn complete(
        &self,
        at: Timestamp,
        op: VnfLcmOpOccId,
        effect: Effect,
        hook_jobs_removed: bool,
    ) -> Result<Vec<VnfInstanceEvent>, Rejection> {
        self.must_hold(&op)?;
        // With what else completes nothing is left at all.
        let others_stay = match &effect {
            Effect::Scaled { .. } => true,
            Effect::Healed { objects, .. } => objects.is_empty(),
            Effect::Instantiated(_)
            | Effect::InfoModified { .. }
            | Effect::PackageChanged { .. }
            | Effect::Terminated => false,
        };
        let left = self.left_before(hook_jobs_removed && others_stay, &[]);
        let mut events = match effect {
            Effect::Instantiated(info) => vec![VnfInstanceEvent::Instantiated { at, info }],
            Effect::Scaled { levels, vnfcs } => {
                vec![VnfInstanceEvent::Scaled { at, levels, vnfcs }]
            }
            Effect::Healed { vnfcs, objects } => {
                vec![VnfInstanceEvent::Healed { at, vnfcs, objects }]
            }
            Effect::InfoModified { changes, product } => {
                let (info, overlay) = self.modified(&changes);
                vec![VnfInstanceEvent::VnfInfoModified {
                    at,
                    op: op.clone(),
                    info,
                    overlay,
                    product,
                }]
            }
            Effect::PackageChanged {
                product,
                levels,
                vnfcs,
                objects,
                def_files,
            } => vec![VnfInstanceEvent::VnfPackageChanged {
                at,
                product,
                levels,
                vnfcs,
                objects,
                def_files,
            }],
            Effect::Terminated => vec![VnfInstanceEvent::Terminated { at }],
        };
        events.extend(self.left(at, left));
        events.push(VnfInstanceEvent::OperationReleased {
            at,
            op,
            outcome: OperationState::Completed,
            scale_in_doubt: None,
        });
        Ok(events)
    }

    fn give_up(
        &self,
        at: Timestamp,
        op: VnfLcmOpOccId,
        remains: Remains,
    ) -> Result<Vec<VnfInstanceEvent>, Rejection> {
        self.must_hold(&op)?;
        self.must_be_alone()?;
        let scale_in_doubt = remains.scaled.clone();
        let mut events = if self.instantiated.is_some() {
            let vnfcs = remains.vnfcs.clone();
            let mut events = vnfcs.map_or_else(Vec::new, |vnfcs| self.observe(at, vnfcs));
            events.extend(self.renamed(at, &remains.objects));
            events.extend(self.strays(at, remains));
            events
        } else {
            vec![self.left_behind(at, remains)]
        };
        events.push(VnfInstanceEvent::OperationReleased {
            at,
            op,
            outcome: OperationState::Failed,
            scale_in_doubt,
        });
        Ok(events)
    }

    /// What is in the cluster now: what the operation left, and of what was left before whatever it did not
    /// see go. An operation that failed before it had a plan has seen nothing.
    fn left_behind(&self, at: Timestamp, remains: Remains) -> VnfInstanceEvent {
        let Remains {
            leftovers,
            gone,
            objects,
            hook_jobs_removed,
            cluster_uid,
            vnfcs: _,
            scaled: _,
        } = remains;
        let mut left = self.left_before(hook_jobs_removed, &objects);
        left.retain(|old| {
            !gone.iter().any(|object| object.is(&old.object))
                && !leftovers.iter().any(|new| new.object.is(&old.object))
        });
        left.extend(leftovers);
        self.leftovers_are(at, left, cluster_uid)
    }

    /// What was left before, with the UIDs that it has now; without the Jobs of hooks where all were removed.
    fn left_before(
        &self,
        hook_jobs_removed: bool,
        objects: &[ManagedObject],
    ) -> Vec<ManagedObject> {
        let mut left = with_uids(&self.leftovers, objects);
        left.retain(|left| !(hook_jobs_removed && is_hook_job(&left.manifest)));
        left
    }

    /// That this is left now, if it is anything else than before.
    fn left(&self, at: Timestamp, objects: Vec<ManagedObject>) -> Option<VnfInstanceEvent> {
        (objects != self.leftovers).then(|| self.leftovers_are(at, objects, None))
    }

    fn leftovers_are(
        &self,
        at: Timestamp,
        objects: Vec<ManagedObject>,
        cluster_uid: Option<String>,
    ) -> VnfInstanceEvent {
        let cluster_uid = if objects.is_empty() {
            None
        } else {
            cluster_uid.or_else(|| self.leftovers_cluster.clone())
        };
        VnfInstanceEvent::LeftoversRecorded {
            at,
            objects,
            cluster_uid,
        }
    }

    /// What a given-up change made and what is no part of the VNF: the next heal, change or termination of the
    /// whole removes it.
    fn strays(&self, at: Timestamp, remains: Remains) -> Option<VnfInstanceEvent> {
        let info = self.instantiated.as_ref()?;
        let is_part = |left: &ManagedObject| info.objects.iter().any(|o| o.object.is(&left.object));
        let leftovers = remains.leftovers.into_iter();
        let remains = Remains {
            leftovers: leftovers.filter(|left| !is_part(left)).collect(),
            ..remains
        };
        match self.left_behind(at, remains) {
            VnfInstanceEvent::LeftoversRecorded { objects, .. } if objects == self.leftovers => {
                None
            }
            recorded => Some(recorded),
        }
    }

    fn take_back(
        &self,
        at: Timestamp,
        op: VnfLcmOpOccId,
        vnfcs: Option<Vec<Vnfc>>,
        objects: &[ManagedObject],
        hook_jobs_removed: bool,
    ) -> Result<Vec<VnfInstanceEvent>, Rejection> {
        self.must_hold(&op)?;
        let mut events = vnfcs.map_or_else(Vec::new, |vnfcs| self.observe(at, vnfcs));
        events.extend(self.renamed(at, objects));
        events.extend(self.left(at, self.left_before(hook_jobs_removed, objects)));
        events.push(VnfInstanceEvent::OperationReleased {
            at,
            op,
            outcome: OperationState::RolledBack,
            scale_in_doubt: None,
        });
        Ok(events)
    }

    /// Objects that were made again have other UIDs than recorded: without them nothing could be done with
    /// them later, for what has another UID is not ours.
    fn renamed(&self, at: Timestamp, objects: &[ManagedObject]) -> Option<VnfInstanceEvent> {
        let known = &self.instantiated.as_ref()?.objects;
        let objects = with_uids(known, objects);
        (objects != *known).then_some(VnfInstanceEvent::ObjectsObserved { at, objects })
    }

    fn observe(&self, at: Timestamp, vnfcs: Vec<Vnfc>) -> Vec<VnfInstanceEvent> {
        if self.instantiated.is_none() || self.vnfcs() == vnfcs {
            return Vec::new();
        }
        vec![VnfInstanceEvent::VnfcsObserved { at, vnfcs }]
    }
}

/// Known objects, with the UIDs that they have now.
fn with_uids(known: &[ManagedObject], objects: &[ManagedObject]) -> Vec<ManagedObject> {
    let uid_now = |old: &ManagedObject| {
        let found = objects.iter().find(|new| new.object.is(&old.object));
        found.map_or_else(|| old.uid.clone(), |new| new.uid.clone())
    };
    known
        .iter()
        .map(|old| ManagedObject {
            uid: uid_now(old),
            ..old.clone()
        })
        .collect()
}
