//! Jobs of hooks that a given-up operation left: who removes them, and what the record knows of them.

use super::*;

#[test]
fn an_operation_that_is_given_up_names_its_jobs_as_leftovers_and_the_next_removes_them() {
    let story = failing("instantiate_start").given_up();
    let left: Vec<String> = story
        .world
        .instance()
        .leftovers
        .iter()
        .map(|managed| managed.object.to_string())
        .collect();
    assert_eq!(left.len(), 1);
    assert!(left[0].starts_with("Job/cairn-hook-"), "{left:?}");
    let mut again = story.clone();
    again.world.instantiate();
    assert_eq!(again.state(), OperationState::Completed);
    assert_eq!(hook_jobs(&again), 0);
    let info = again.world.instance().instantiated.clone().unwrap();
    assert!(info.objects.iter().all(|o| o.object.kind != "Job"));
    let mut removed = story;
    removed.world.run(crate::operation::Params::Terminate {
        forceful: true,
        graceful_timeout_s: None,
    });
    assert_eq!(removed.state(), OperationState::Completed);
    assert!(removed.world.cluster.things.is_empty());
}

#[test]
fn a_terminate_removes_what_an_earlier_operation_left() {
    let mut story = with_hooks().completed();
    story
        .world
        .begin(crate::operation::Params::ScaleToLevel {
            levels: crate::testing::levels(3),
        })
        .unwrap();
    story.world.go_on();
    let foreign = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "left", "labels": {LABEL: "scale_end"}}});
    story.world.cluster.put_foreign(&foreign);
    story.world.run(crate::operation::Params::Terminate {
        forceful: false,
        graceful_timeout_s: None,
    });
    assert_eq!(story.state(), OperationState::Completed);
    assert!(story.world.cluster.things.is_empty());
}

/// A SCALE whose end hook failed was given up, and its Job is left.
fn with_a_left_job() -> OpStory {
    let mut story = op().scale_out();
    story.world.hooks = vec![hook("scale_end", Moment::End, Items::Once)];
    let mut story = story.until(|op| op.plan.is_some());
    let call = call_of(&story, "scale_end");
    story.world.cluster.refuse(&call, "Job", "Failed", 1);
    story.world.go_on();
    story.given_up()
}

#[test]
fn a_rollback_never_makes_a_job_again_that_an_earlier_operation_left() {
    let forms = [
        crate::operation::Params::Heal {
            vnfcs: Vec::new(),
            cause: None,
        },
        crate::testing::change_params(4),
        crate::operation::Params::Terminate {
            forceful: false,
            graceful_timeout_s: None,
        },
    ];
    for params in forms {
        let mut story = with_a_left_job();
        assert_eq!(hook_jobs(&story), 1);
        let name = format!("{:?}", params.operation());
        story.world.begin(params).unwrap();
        let story = story.failed_at(ErrorPoint::PostVimControl);
        assert_eq!(hook_jobs(&story), 0, "{name} removes it");
        let story = story.rolled_back();
        assert_eq!(story.state(), OperationState::RolledBack, "{name}");
        assert_eq!(hook_jobs(&story), 0, "{name}: the Job ran again");
    }
}

fn terminate(story: &mut OpStory) {
    story.world.run(crate::operation::Params::Terminate {
        forceful: false,
        graceful_timeout_s: None,
    });
    assert_eq!(story.state(), OperationState::Completed);
}

fn left(story: &OpStory) -> Vec<String> {
    let leftovers = story.world.instance().leftovers.iter();
    let jobs = leftovers.filter(|managed| crate::hook::is_hook_job(&managed.manifest));
    jobs.map(|managed| managed.object.to_string()).collect()
}

/// The Job of its rollback's first hook failed.
fn rollback_hook_fails() -> OpStory {
    let mut story = failing("two").rolling_back();
    let call = call_of(&story, "instantiate_rollback_start");
    story.world.cluster.refuse(&call, "Job", "Failed", 1);
    story.world.go_on();
    assert_eq!(story.state(), OperationState::FailedTemp);
    story
}

#[test]
fn jobs_of_rollback_hooks_are_leftovers_whatever_followed() {
    let ways = [
        ("given up", rollback_hook_fails().given_up()),
        (
            "retried",
            rollback_hook_fails()
                .retried_and_failed_at(ErrorPoint::PostVimControl)
                .given_up(),
        ),
        ("rolled back again", {
            let mut story = rollback_hook_fails().rolling_back();
            story.world.fail_here("the rollback broke");
            story.given_up()
        }),
    ];
    for (way, mut story) in ways {
        let names = left(&story);
        let of_rollback = |name: &&String| name.ends_with("-1");
        assert_eq!(
            names.iter().filter(of_rollback).count(),
            1,
            "{way}: {names:?}"
        );
        assert!(story.world.delete().is_err(), "{way}");
        terminate(&mut story);
        assert_eq!(hook_jobs(&story), 0, "{way}");
        assert_eq!(left(&story), Vec::<String>::new(), "{way}");
        story.world.delete().unwrap();
    }
}

#[test]
fn jobs_of_rollback_hooks_are_removed_by_the_retry_that_completes() {
    let mut story = op().instantiate();
    story.world.hooks = with_hooks().world.hooks.split_off(2);
    let mut story = story.failed_at(ErrorPoint::PostVimControl).rolling_back();
    story.world.go_until(|op| !op.rollback_jobs.is_empty());
    story.world.turn();
    story.world.fail_here("the rollback broke");
    assert_eq!(hook_jobs(&story), 1);
    let story = story.retried();
    assert_eq!(story.state(), OperationState::Completed);
    assert_eq!(hook_jobs(&story), 0);
    assert_eq!(
        story.op().leftovers().len(),
        4,
        "the objects of the VNF alone"
    );
}

#[test]
fn a_terminate_leaves_no_job_also_when_the_package_cannot_be_read_any_more() {
    let mut story = op().terminate();
    story.world.hooks = vec![
        hook("terminate_start", Moment::Start, Items::Once),
        hook("terminate_end", Moment::End, Items::Once),
    ];
    let mut story = story.failed_at(ErrorPoint::InternalProcessing).given_up();
    assert_eq!(hook_jobs(&story), 1);
    assert_eq!(left(&story).len(), 1);
    story.world.hooks.clear();
    terminate(&mut story);
    assert_eq!(hook_jobs(&story), 0);
}

/// A VNF with the Job of a SCALE that was given up.
fn with_a_job_of_a_scale() -> OpStory {
    let mut story = op().scale_out();
    story.world.hooks = vec![
        hook("scale_start", Moment::Start, Items::Once),
        hook("heal_start", Moment::Start, Items::Once),
        hook("heal_rollback_end", Moment::RollbackEnd, Items::Once),
    ];
    let story = story.failed_at(ErrorPoint::PreVimControl).given_up();
    assert_eq!((hook_jobs(&story), left(&story).len()), (1, 1));
    story
}

#[test]
fn what_an_operation_with_hooks_removes_is_on_record_no_more() {
    let one = |story: &OpStory| story.world.instance().vnfcs()[0].id.clone();
    let chosen = vec![one(&with_a_job_of_a_scale())];
    let heal = |vnfcs| crate::operation::Params::Heal { vnfcs, cause: None };
    for params in [
        crate::operation::Params::Scale {
            levels: crate::testing::levels(3),
            aspect_id: "web".into(),
            out: true,
        },
        heal(chosen.clone()),
    ] {
        let mut story = with_a_job_of_a_scale();
        story.world.run(params.clone());
        assert_eq!(story.state(), OperationState::Completed);
        assert_eq!(hook_jobs(&story), 0);
        assert_eq!(left(&story), Vec::<String>::new(), "{params:?}");
    }
    let mut halted = with_a_job_of_a_scale();
    halted.world.begin(heal(chosen)).unwrap();
    let halted = halted.failed_at(ErrorPoint::InternalProcessing);
    assert_eq!((hook_jobs(&halted), left(&halted).len()), (2, 1));
    let undone = halted.clone().rolled_back();
    assert_eq!(undone.state(), OperationState::RolledBack);
    assert_eq!(hook_jobs(&undone), 0);
    assert_eq!(left(&undone), Vec::<String>::new());
    // What is given up before it has removed them leaves both.
    assert_eq!(left(&halted.given_up()).len(), 2);

    // The Jobs are removed, then it breaks.
    let mut late = with_a_job_of_a_scale();
    late.world.begin(heal(Vec::new())).unwrap();
    let late = late.failed_at(ErrorPoint::NotifyCompleted).given_up();
    assert_eq!(hook_jobs(&late), 0);
    assert_eq!(left(&late), Vec::<String>::new());
}
