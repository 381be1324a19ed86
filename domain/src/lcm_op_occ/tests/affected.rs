//! Who follows `affectedVnfcs` has the VNFCs that the record has.

use super::*;
use crate::lcm_op_occ::UndoLog;
use crate::lcm_op_occ::event::ChangeType;
use crate::lcm_op_occ::plan::Vnfc;
use crate::object::Uid;
use crate::operation::Params;
use crate::testing::{OpStory, levels};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The VNFCs as an NFVO has them: from what it was told.
#[derive(Clone, Default)]
struct Follower(BTreeMap<Uid, Vnfc>);

impl Follower {
    /// Takes over what an operation tells at its end; nothing that it has is added, nothing else removed.
    #[track_caller]
    fn hear(&mut self, op: &VnfLcmOpOcc) {
        for change in &op.resource_changes {
            let uid = change.vnfc.uid.clone();
            let as_told = match change.change_type {
                ChangeType::Removed => self.0.remove(&uid).is_some(),
                ChangeType::Added => self.0.insert(uid, change.vnfc.clone()).is_none(),
                ChangeType::Modified => false,
            };
            assert!(as_told, "{:?} of {:?}", change.change_type, change.vnfc);
        }
    }

    /// It has what a GET of the instance shows.
    #[track_caller]
    fn has_the_record_of(&self, world: &World) {
        let mut record: Vec<_> = world.instance().vnfcs().iter().map(|v| &v.uid).collect();
        record.sort();
        assert_eq!(self.0.keys().collect::<Vec<_>>(), record);
    }

    /// It has the pods that there are.
    #[track_caller]
    fn has_what_exists(&self, world: &World) {
        let things = world.cluster.things.iter();
        let mut pods: Vec<_> = things
            .flat_map(|t| t.pods.iter().map(|(_, uid)| uid))
            .collect();
        pods.sort();
        assert_eq!(self.0.keys().collect::<Vec<_>>(), pods);
    }
}

/// Kubernetes replaces a pod of a workload, as after a drain of its node.
fn replace_pod(world: &mut World, workload: &str) {
    let pod = world.cluster.thing(workload).and_then(|t| t.pods.first());
    let Some((_, uid)) = pod.cloned() else { return };
    let known = world.instance().vnfcs().iter().find(|v| v.uid == uid);
    if let Some(vnfc) = known.cloned() {
        world.cluster.perform(&Action::Evict { vnfc });
    }
}

#[test]
fn a_pod_that_was_replaced_before_is_told_by_every_kind_of_operation() {
    for (kind, mut story) in OpStory::every_kind() {
        let mut follower = Follower::default();
        if story.world.instance().instantiated.is_some() {
            follower.hear(story.world.op());
        }
        follower.has_the_record_of(&story.world);
        replace_pod(&mut story.world, "Deployment/web");
        let story = story.completed();
        assert_eq!(story.state(), OperationState::Completed, "{kind}");
        follower.hear(story.op());
        follower.has_the_record_of(&story.world);
    }
}

#[test]
fn a_rollback_that_touched_pods_tells_those_that_there_are_after_it() {
    for (kind, mut story) in OpStory::every_kind() {
        if kind == "MODIFY_INFO" {
            continue;
        }
        let mut follower = Follower::default();
        if story.world.instance().instantiated.is_some() {
            follower.hear(story.world.op());
        }
        replace_pod(&mut story.world, "Deployment/web");
        let story = story.failed_at(ErrorPoint::VnfConfigEnd).rolled_back();
        assert_eq!(story.state(), OperationState::RolledBack, "{kind}");
        follower.hear(story.op());
        follower.has_the_record_of(&story.world);
    }
}

/// What an INSTANTIATE left is no part of a VNF: it is listed as leftovers.
#[test]
fn what_was_given_up_has_told_the_vnfcs_that_are_on_record_after_it() {
    for (kind, mut story) in OpStory::every_kind() {
        if matches!(kind, "MODIFY_INFO" | "INSTANTIATE") {
            continue;
        }
        let mut follower = Follower::default();
        follower.hear(story.world.op());
        replace_pod(&mut story.world, "Deployment/web");
        let story = story.failed_at(ErrorPoint::VnfConfigEnd);
        let mut given_up = follower.clone();
        let story_given_up = story.clone().given_up();
        given_up.hear(story_given_up.op());
        given_up.has_the_record_of(&story_given_up.world);

        // Also where a rollback has counted the pods before it broke.
        let mut story = story.rolling_back().until(|op| {
            let counted = |log: &UndoLog| matches!(log.undo.step.action, Action::Verify { .. });
            let mut undo = op.undo.iter();
            undo.any(|log| counted(log) && log.state == StepState::Started)
        });
        if story.state() == OperationState::RollingBack {
            story.world.fail_here("broken");
            let story = story.given_up();
            follower.hear(story.op());
            follower.has_the_record_of(&story.world);
            follower.has_what_exists(&story.world);
        }
    }
}

fn params(kind: u8, world: &World) -> Params {
    match kind {
        0 => Params::Scale {
            levels: levels(4),
            aspect_id: "web".into(),
            out: true,
        },
        1 => Params::ScaleToLevel { levels: levels(1) },
        2 => Params::Heal {
            vnfcs: Vec::new(),
            cause: None,
        },
        3 => Params::Heal {
            vnfcs: world.instance().vnfcs()[..1]
                .iter()
                .map(|v| v.id.clone())
                .collect(),
            cause: None,
        },
        _ => Params::Terminate {
            forceful: true,
            graceful_timeout_s: None,
        },
    }
}

/// A pod that is replaced before the operation, its kind, and whether it completes, is rolled back or given up.
fn a_turn() -> impl Strategy<Value = (u8, u8, u8)> {
    (0u8..3, 0u8..5, 0u8..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_that_is_told_adds_up_to_the_record(turns in prop::collection::vec(a_turn(), 1..8)) {
        let mut world = World::instantiated();
        let mut follower = Follower::default();
        follower.hear(world.op());
        for (replaced, kind, end) in turns {
            if world.instance().instantiated.is_none() {
                break;
            }
            match replaced {
                0 => replace_pod(&mut world, "Deployment/web"),
                1 => replace_pod(&mut world, "StatefulSet/db"),
                _ => {}
            }
            let params = params(kind, &world);
            if !world.instance().accepts(params.operation()) {
                continue;
            }
            world.begin(params).expect("nothing is running");
            if end > 0 {
                world.go_until(crate::testing::at_point(ErrorPoint::VnfConfigEnd));
            }
            // What an operation before it has removed may have been waited for in vain already.
            if end > 0 && world.op().state.is_transitional() {
                world.fail_here("made to fail");
            }
            match end {
                1 => world.rollback().expect("it failed"),
                2 => world.fail().expect("it failed"),
                _ => {}
            }
            if world.go_on() == OperationState::FailedTemp {
                world.fail().expect("it failed");
            }
            prop_assert!(world.op().state.is_final());
            follower.hear(world.op());
            follower.has_the_record_of(&world);
        }
    }
}
