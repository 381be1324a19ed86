//! The contract of a Kubernetes API server as far as Cairn relies on it: one list of rows, each run against the
//! simulated cluster and against the real one, with the same assertions.
//!
//! What is learned from the real cluster goes into a row here first; then the simulated one is made to follow.

mod access;
mod apply;
mod delete;
mod kinds;
mod pods;
mod scale;
mod watch;

/// Makes of each row two tests: this is the one list.
macro_rules! rows {
    ($($module:ident::$row:ident,)+) => {
        mod simulated {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $row() {
                    super::$module::$row(cairn_tests::place::Place::simulated().await).await;
                }
            )+
        }
        mod real {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $row() {
                    let Some(place) = cairn_tests::place::Place::real().await else { return };
                    super::$module::$row(place).await;
                }
            )+
        }
    };
}

rows! {
    access::without_a_token_or_with_a_wrong_one_the_answer_is_401,
    access::what_an_account_may_not_do_is_answered_403,
    access::a_review_says_what_one_may_do,
    access::kinds_that_can_only_be_created_say_so_in_discovery_and_are_answered_at_once,
    access::an_unknown_kind_is_404,
    apply::the_first_apply_is_201_and_the_next_200,
    apply::onto_what_belongs_to_another_apply_answers_200_and_mixes_the_data,
    apply::a_resource_version_is_no_guard_for_what_does_not_exist,
    apply::an_apply_with_another_uid_is_refused,
    apply::a_conflict_names_the_manager_and_the_field,
    apply::two_conflicts_are_listed,
    apply::force_takes_a_field_over,
    apply::one_hand_edit_of_an_image_makes_every_later_apply_a_conflict,
    apply::a_field_left_out_goes_away_where_nobody_else_owns_it,
    apply::replicas_left_out_by_their_owner_become_one,
    apply::replicas_owned_by_another_stay_when_they_are_left_out,
    apply::a_dry_run_changes_nothing_and_refuses_what_would_be_refused,
    apply::a_dry_run_into_a_namespace_not_yet_made_is_404,
    apply::onto_what_is_being_deleted_apply_succeeds_and_it_vanishes,
    apply::there_and_back_a_service_and_a_stateful_set_are_equal,
    apply::a_changed_cluster_ip_is_refused_as_invalid,
    apply::a_changed_selector_of_a_deployment_is_refused_as_invalid,
    apply::an_unknown_field_is_refused_by_strict_validation,
    delete::a_precondition_on_another_uid_is_409,
    delete::what_is_absent_is_404,
    delete::a_finalizer_keeps_an_object_until_it_is_taken_away,
    delete::foreground_deletion_waits_for_the_pods,
    delete::a_namespace_takes_with_it_what_it_holds,
    delete::nothing_is_made_in_a_namespace_that_ends,
    delete::a_definition_takes_its_custom_resources_with_it,
    delete::claims_of_a_stateful_set_outlive_it_and_carry_no_owner,
    kinds::every_kind_is_applied_read_deleted_and_gone,
    kinds::a_custom_resource_is_served_once_its_definition_is_established,
    pods::a_deployment_becomes_available_and_its_pods_are_owned_by_its_replica_set,
    pods::an_eviction_against_a_budget_is_429_and_names_it,
    pods::an_eviction_that_a_budget_allows_is_201,
    pods::an_eviction_with_another_uid_is_409,
    pods::a_quota_keeps_pods_from_being_made_and_the_reason_says_so,
    pods::an_image_that_cannot_be_had_is_told_by_the_container,
    pods::a_container_that_ends_with_an_error_backs_off,
    pods::a_bad_image_name_is_told_by_the_container,
    pods::a_pod_that_fits_nowhere_is_unschedulable,
    pods::a_failed_job_is_not_begun_again_by_an_apply,
    pods::a_job_that_succeeds_is_complete,
    pods::the_pod_of_a_job_keeps_its_last_words,
    scale::the_scale_subresource_sets_replicas_and_owns_them,
    scale::a_scale_with_an_old_version_is_409,
    scale::each_scalable_workload_follows_its_scale,
    watch::a_watch_tells_what_happens_after_the_list,
    watch::a_watch_from_a_forgotten_version_is_410,
    watch::a_watch_ends_when_its_time_is_over,
    watch::bookmarks_come_when_they_are_asked_for,
}
