//! What a look at the cluster says; nothing is ever in its way.

use super::{Cluster, Stay, inline, placed, waiting, without_replicas};
use crate::lcm_op_occ::plan::{Outcome, PreState, StepResult, Vnfc};
use crate::object::{Body, ObjectRef};
use crate::planning::is_workload;
use crate::ports::{KindFacts, Survey, SurveyRequest, Surveyed};
use serde_json::Value;

impl Cluster {
    /// Looks at everything.
    #[must_use]
    pub fn survey(&self, request: &SurveyRequest) -> Survey {
        let items = request
            .items
            .iter()
            .map(|item| self.dry_run(&item.manifest))
            .collect();
        let reads = request
            .reads
            .iter()
            .map(|(object, _)| self.look(object))
            .collect();
        Survey {
            cluster_uid: self.uid.clone(),
            items,
            reads,
            vnfcs: self.inventory(&request.workloads),
            hooks_left_out: self.hooks_left_out.clone().filter(|_| request.ends_hooks),
        }
    }

    /// A look, and what applying the manifest would do.
    fn dry_run(&self, manifest: &Value) -> Surveyed {
        let looked = self.look(&placed(manifest));
        let thing = self.things.iter().find(|t| t.object.is(&looked.object));
        let Some(thing) = thing.filter(|thing| thing.ours) else {
            return looked;
        };
        Surveyed {
            needs_recreate: thing.refuses(manifest),
            unchanged: without_replicas(&thing.body) == without_replicas(manifest),
            ..looked
        }
    }

    fn look(&self, object: &ObjectRef) -> Surveyed {
        let pre = match self.things.iter().find(|thing| thing.object.is(object)) {
            None => PreState::Absent,
            Some(thing) if !thing.ours => PreState::Foreign {
                uid: thing.uid.clone(),
            },
            Some(thing) => PreState::Ours {
                uid: thing.uid.clone(),
                operation_id: None,
                body: Body::Inline(thing.recorded()),
                deleting: thing.stay == Stay::Deleting,
                failed: thing.failed,
                replicas: thing.replicas,
            },
        };
        Surveyed {
            object: object.clone(),
            kind: KindFacts {
                create_only: object.kind.ends_with("Review"),
                scalable: is_workload(&object.kind),
            },
            pre,
            needs_recreate: None,
            unchanged: false,
        }
    }

    pub(super) fn verify(
        &self,
        equal: &[(ObjectRef, Body)],
        absent: &[ObjectRef],
        replicas: &[(ObjectRef, u32)],
    ) -> StepResult {
        let find = |object: &ObjectRef| self.things.iter().find(|thing| thing.object.is(object));
        for (object, body) in equal {
            if find(object).is_none_or(|thing| thing.body["data"] != inline(body)["data"]) {
                return waiting(&object.to_string(), "Differs");
            }
        }
        if let Some(object) = absent
            .iter()
            .find(|o| find(o).is_some_and(|thing| thing.ours))
        {
            return waiting(&object.to_string(), "Deleting");
        }
        for (object, number) in replicas {
            if find(object).and_then(|thing| thing.replicas) != Some(*number) {
                return waiting(&object.to_string(), "ReplicasDiffer");
            }
        }
        StepResult::Done(Outcome::Verified)
    }

    pub(super) fn inventory(&self, workloads: &[(String, ObjectRef)]) -> Vec<Vnfc> {
        let mut all = Vec::new();
        for (vdu_id, object) in workloads {
            let found = self.things.iter().filter(|thing| thing.object.is(object));
            for (id, uid) in found.flat_map(|thing| &thing.pods) {
                all.push(Vnfc {
                    vdu_id: vdu_id.clone(),
                    id: id.clone(),
                    uid: uid.clone(),
                    namespace: object.namespace.clone().unwrap_or_default(),
                    workload_kind: object.kind.clone(),
                });
            }
        }
        all.sort();
        all
    }
}
