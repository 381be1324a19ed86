//! The hooks of an operation in its plan: a step for each item, with the name and body of its Job.
//!
//! | when | steps |
//! |---|---|
//! | between points 2 and 3 | `run-hook` of `…_start`, then `register-vim` where it registers one |
//! | between points 5 and 6 | `run-hook` of `…_end`, then `register-vim`; then `remove-hook-jobs` |
//! | while rolling back | `run-hook` of `…_rollback_start` before, `…_rollback_end` after the undo list |

use super::steps::step;
use super::{Inputs, Keep};
use crate::hook::{Hook, ITEM, Items, LABEL, Moment};
use crate::ids::VnfdId;
use crate::lcm_op_occ::plan::{Action, Plan, Step, Undo};
use crate::object::{ObjectRef, let_job_stay};
use crate::operation::{Operation, Params};
use crate::ports::{HookJob, Survey, SurveyItem};
use serde_json::{Map, Value, json};

/// The Jobs as the survey looks at them, before the plan is made: kinds, rights, references, dry-run.
pub(super) fn items(inputs: &Inputs<'_>) -> Vec<SurveyItem> {
    if inputs.op.plan.is_some() {
        return Vec::new();
    }
    of_operation(inputs)
        .map(|hook| SurveyItem {
            manifest: job(inputs, hook, None, &job_name(inputs, hook, None)),
            replicas: None,
            recorded_uid: None,
            hook: Some(HookJob {
                moment: hook.moment,
                result: hook.result.clone(),
                registers_vim: hook.register_vim,
            }),
        })
        .collect()
}

/// Whether the VNF is terminated, and its hooks with it.
pub(super) fn are_ended(inputs: &Inputs<'_>) -> bool {
    inputs.op.operation() == Operation::Terminate
        && inputs.instance.instantiated.is_some()
        && !inputs.hooks.is_empty()
}

/// The hooks that run in this operation. What was never instantiated has none to end.
fn of_operation<'a>(inputs: &Inputs<'a>) -> impl Iterator<Item = &'a Hook> {
    let operation = inputs.op.operation();
    let runs = operation == Operation::Instantiate || inputs.instance.instantiated.is_some();
    let hooks = inputs.hooks.iter();
    hooks.filter(move |hook| runs && hook.is_of(operation))
}

/// Puts the hooks around the steps of a plan.
pub(super) fn add(inputs: &Inputs<'_>, survey: &Survey, plan: &mut Plan, keep: &mut Keep<'_>) {
    if let Some(why) = &survey.hooks_left_out {
        let hooks = of_operation(inputs);
        let left_out = hooks.map(|hook| format!("hook {}: not run, as {why}", hook.name));
        plan.kept.extend(left_out);
        return;
    }
    let mut start = Vec::new();
    let mut end = Vec::new();
    for hook in of_operation(inputs) {
        let steps = match hook.moment {
            Moment::Start => &mut start,
            Moment::End => &mut end,
            Moment::RollbackStart | Moment::RollbackEnd => &mut plan.rollback_hooks,
        };
        let items = items_of(hook, &plan.workloads, survey);
        let made = run(inputs, hook, items, &plan.namespace, keep);
        steps.extend(made);
    }
    let runs = !(start.is_empty() && end.is_empty() && plan.rollback_hooks.is_empty());
    // Where the package has none any more, each Job that is left is on record by its name.
    if runs || are_ended(inputs) {
        let last = end.iter().map(|step: &Step| step.wave + 1).max();
        let namespace = plan.namespace.clone();
        end.push(step(
            last.unwrap_or(0),
            Action::RemoveHookJobs { namespace },
            Undo::Nothing,
        ));
    }
    plan.steps.splice(0..0, start);
    plan.steps.extend(end);
}

/// What a hook runs for; `None` is the one item of a hook without items.
fn items_of(
    hook: &Hook,
    workloads: &[(String, ObjectRef)],
    survey: &Survey,
) -> Vec<Option<String>> {
    match &hook.items {
        Items::Once => vec![None],
        Items::Listed(items) => items.iter().cloned().map(Some).collect(),
        Items::PerVdu => workloads.iter().map(|(vdu, _)| Some(vdu.clone())).collect(),
        Items::PerVnfc { vdu } => survey
            .vnfcs
            .iter()
            .filter(|vnfc| vdu.as_ref().is_none_or(|vdu| *vdu == vnfc.vdu_id))
            .map(|vnfc| Some(vnfc.id.clone()))
            .collect(),
    }
}

fn run(
    inputs: &Inputs<'_>,
    hook: &Hook,
    items: Vec<Option<String>>,
    namespace: &str,
    keep: &mut Keep<'_>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut jobs = Vec::new();
    for (place, item) in (0u32..).zip(items) {
        let name = job_name(inputs, hook, item.as_deref());
        let manifest = job(inputs, hook, item.as_deref(), &name);
        let action = Action::RunHook {
            hook: hook.name.clone(),
            at: hook.moment,
            item,
            object: ObjectRef {
                api_version: "batch/v1".into(),
                kind: "Job".into(),
                namespace: Some(namespace.to_owned()),
                name: name.clone(),
            },
            manifest: keep(&manifest),
            clock_ms: hook.clock_ms,
            result: hook.result.clone(),
            registers_vim: hook.register_vim,
        };
        let undo = if hook.moment.is_rollback() {
            Undo::Nothing
        } else {
            Undo::Delete
        };
        steps.push(step(if hook.parallel { 0 } else { place }, action, undo));
        jobs.push(name);
    }
    if hook.register_vim && !hook.moment.is_rollback() && !jobs.is_empty() {
        let last = steps.iter().map(|step| step.wave + 1).max();
        let action = Action::RegisterVim {
            hook: hook.name.clone(),
            at: hook.moment,
            jobs,
        };
        steps.push(step(last.unwrap_or(0), action, Undo::Unregister));
    }
    steps
}

/// The name of a Job: of the operation, the hook and the item, never of the try.
fn job_name(inputs: &Inputs<'_>, hook: &Hook, item: Option<&str>) -> String {
    let parts = [inputs.op.id.as_str(), &hook.name, item.unwrap_or_default()];
    format!("cairn-hook-{:016x}", fnv(&parts.join("/")))
}

/// FNV-1a: names must differ within one operation, nothing more is asked of it.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The manifest of the package, named and told what it runs for.
fn job(inputs: &Inputs<'_>, hook: &Hook, item: Option<&str>, name: &str) -> Value {
    let mut job = hook.job.clone();
    let metadata = member(&mut job, "metadata");
    metadata.insert("name".into(), name.into());
    child(metadata, "labels").insert(LABEL.into(), hook.name.as_str().into());
    if let Some(item) = item {
        child(metadata, "annotations").insert(ITEM.into(), item.into());
    }
    let_job_stay(&mut job);
    let spec = member(&mut job, "spec");
    let variables = variables(inputs, hook, item);
    let pod = child(child(spec, "template"), "spec");
    for list in ["initContainers", "containers"] {
        let containers = pod.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            tell(container, &variables);
        }
    }
    job
}

fn variables(inputs: &Inputs<'_>, hook: &Hook, item: Option<&str>) -> Vec<(&'static str, String)> {
    let (vnfd, before) = vnfds(inputs);
    let mut all = vec![
        ("CAIRN_VNF_INSTANCE_ID", inputs.instance.id.to_string()),
        ("CAIRN_VNF_LCM_OP_OCC_ID", inputs.op.id.to_string()),
        ("CAIRN_VNFD_ID", vnfd.to_string()),
        ("CAIRN_OPERATION", inputs.op.operation().to_string()),
        ("CAIRN_HOOK", hook.name.clone()),
    ];
    all.extend(before.map(|before| ("CAIRN_VNFD_ID_BEFORE", before.to_string())));
    all.extend(item.map(|item| ("CAIRN_HOOK_ITEM", item.to_owned())));
    all
}

/// The VNFD whose package the hook is of, and the one that a change of the package began with. A hook of a rollback is
/// planned with all others and of the same package.
fn vnfds<'a>(inputs: &Inputs<'a>) -> (&'a VnfdId, Option<&'a VnfdId>) {
    let recorded = &inputs.instance.product.vnfd_id;
    match &inputs.op.params {
        Params::ChangeVnfpkg { product, .. } => (&product.vnfd_id, Some(recorded)),
        Params::Instantiate { .. }
        | Params::Scale { .. }
        | Params::ScaleToLevel { .. }
        | Params::Heal { .. }
        | Params::ModifyInfo { .. }
        | Params::Terminate { .. } => (recorded, None),
    }
}

/// Gives a container the variables; and where it fails without a word, its last lines are its word.
fn tell(container: &mut Value, variables: &[(&'static str, String)]) {
    let Some(container) = container.as_object_mut() else {
        return;
    };
    container
        .entry("terminationMessagePolicy")
        .or_insert_with(|| "FallbackToLogsOnError".into());
    let env = container.entry("env").or_insert_with(|| json!([]));
    let Some(env) = env.as_array_mut() else {
        return;
    };
    env.retain(|known| !variables.iter().any(|(name, _)| known["name"] == *name));
    env.extend(
        variables
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value})),
    );
}

/// A member that is an object, made where there is none.
fn member<'a>(value: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    child(value.as_object_mut().expect("it is an object now"), name)
}

fn child<'a>(map: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let value = map.entry(name).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it is an object now")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_told_and_keeps_its_own_variables() {
        let mut container = json!({"name": "c", "env": [{"name": "A", "value": "1"},
            {"name": "CAIRN_HOOK", "value": "mine"}]});
        tell(&mut container, &[("CAIRN_HOOK", "heal_end".to_owned())]);
        assert_eq!(
            container["env"],
            json!([{"name": "A", "value": "1"}, {"name": "CAIRN_HOOK", "value": "heal_end"}])
        );
        assert_eq!(
            container["terminationMessagePolicy"],
            "FallbackToLogsOnError"
        );
    }

    #[test]
    fn names_differ_by_item() {
        assert_ne!(fnv("op/instantiate_end/a"), fnv("op/instantiate_end/b"));
    }
}
