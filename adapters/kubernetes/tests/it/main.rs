//! The port against a simulated and a real cluster: the same cases on both.
//!
//! The real cluster is named by `CAIRN_TEST_KUBECONFIG`; without it the cases fail, unless
//! `CAIRN_WITHOUT_CLUSTER=1` says that this is meant.

#[cfg(test)]
mod bench;
#[cfg(test)]
mod changing;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod objects;
#[cfg(test)]
mod removing;
#[cfg(test)]
mod setup;
#[cfg(test)]
mod waiting;

/// Runs each case on both clusters.
macro_rules! on_both_clusters {
    ($($module:ident: $($case:ident),+;)+) => {
        mod simulated {
            $($(#[tokio::test]
            async fn $case() {
                crate::$module::$case(crate::bench::simulated(stringify!($case)).await).await;
            })+)+
        }
        mod real {
            $($(#[tokio::test]
            async fn $case() {
                if let Some(bench) = crate::bench::real(stringify!($case)).await {
                    crate::$module::$case(bench).await;
                }
            })+)+
        }
    };
}

on_both_clusters! {
    changing:
        a_workload_is_made_marked_scaled_and_removed,
        an_apply_keeps_the_number_that_was_scaled_to,
        what_belongs_to_somebody_else_is_not_touched,
        a_field_of_another_manager_is_a_conflict_until_it_was_ours,
        an_object_being_deleted_is_waited_for,
        a_failed_job_is_made_again_and_a_succeeded_one_is_left,
        the_recorded_state_is_restored_and_equal,
        a_definition_and_its_resource_are_made_in_turn,
        a_restored_stateful_set_gets_past_its_broken_pod;
    kinds:
        every_kind_is_made_found_again_and_removed;
    checks:
        a_clear_survey_tells_what_is_there,
        everything_in_the_way_is_told_at_once,
        an_immutable_difference_asks_for_making_anew,
        an_autoscaler_that_targets_a_workload_is_told,
        kinds_and_namespaces_of_the_package_count_as_present;
    hooks:
        what_the_package_makes_is_not_there_for_a_hook_that_runs_before_it,
        a_hook_does_not_run_in_a_namespace_that_is_made_after_it,
        a_terminate_leaves_hooks_out_where_their_namespace_is_gone;
    waiting:
        a_quota_is_told_with_its_numbers,
        an_image_that_cannot_be_pulled_is_told_in_the_kubelets_words,
        a_watch_ends_when_something_changes,
        a_watch_does_not_tell_again_what_was_seen,
        a_service_waits_for_an_endpoint_only_where_it_selects_pods;
    removing:
        a_delete_of_another_uid_finds_ours_gone,
        a_pod_is_evicted_unless_a_budget_forbids_it,
        finalizers_are_named_and_stay,
        finalizers_are_named_wherever_they_are_met,
        volumes_of_a_set_go_only_where_this_operation_made_them,
        a_set_that_is_made_anew_by_another_operation_is_as_before,
        volumes_of_a_set_whose_name_ends_like_the_removed_one_stay,
        a_volume_that_was_available_is_available_after_a_rollback,
        a_namespace_with_something_foreign_in_it_stays;
}
