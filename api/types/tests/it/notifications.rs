//! Every notification of whole operations.

use crate::judge::judge;
use crate::occurrences::{stories, url};
use cairn_api_types::notification::{Announcement, Occasion, id_of, notification_id, render};
use cairn_domain::announce::announce;
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::{SubscriptionId, Tenant, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::evolve;
use cairn_domain::subscription::{CallbackAuth, LccnSubscription, Verbosity};
use cairn_domain::testing::{OpStory, op};
use cairn_domain::time::Timestamp;
use serde_json::Value;

fn subscription(verbosity: Verbosity) -> LccnSubscription {
    LccnSubscription {
        id: SubscriptionId::parse("s-1").unwrap(),
        tenant: Tenant::default_tenant(),
        created_at: Timestamp::from_millis(0),
        callback_uri: "https://nfvo.example/cb".into(),
        filter: None,
        verbosity,
        auth: CallbackAuth::None,
        deleted: false,
    }
}

/// All notifications of an operation, each rendered from the state up to its event.
fn told(story: &OpStory, verbosity: Verbosity) -> Vec<Value> {
    let mut state = None;
    let mut told = Vec::new();
    for (sequence, event) in (1..).zip(story.history()) {
        state = evolve(state, &event);
        let envelope = Envelope {
            position: sequence,
            recorded_at: event.at(),
            stream: StreamId::VnfLcmOpOcc(story.op().id.clone()),
            sequence,
            vnf_instance_id: Some(story.op().vnf_instance_id.clone()),
            body: EventBody::VnfLcmOpOcc(event),
        };
        let Some(announcement) = announce(&envelope) else {
            continue;
        };
        let occasion = Occasion {
            id: &id_of(&envelope),
            at: envelope.body.at(),
            announcement,
            instance: &story.op().vnf_instance_id,
            subscription: &subscription(verbosity),
        };
        told.push(render(&occasion, state.as_ref(), &url()));
    }
    told
}

#[test]
fn every_notification_follows_the_schema_and_the_rules_of_presence() {
    for story in stories() {
        for verbosity in [Verbosity::Full, Verbosity::Short] {
            for body in told(&story, verbosity) {
                judge("VnfLcmOperationOccurrenceNotification", &body);
                let state = body["operationState"].as_str().unwrap();
                let failed = ["FAILED_TEMP", "FAILED", "ROLLED_BACK"].contains(&state);
                assert_eq!(body.get("error").is_some(), failed, "{state}");
                let started = ["STARTING", "PROCESSING", "ROLLING_BACK"].contains(&state);
                assert_eq!(
                    body["notificationStatus"],
                    if started { "START" } else { "RESULT" }
                );
                if started || verbosity == Verbosity::Short {
                    assert!(
                        body.get("affectedVnfcs").is_none() && body.get("changedInfo").is_none()
                    );
                }
            }
        }
    }
}

#[test]
fn one_notification_is_told_per_state_entered() {
    let states = |story: &OpStory| -> Vec<String> {
        told(story, Verbosity::Full)
            .iter()
            .map(|body| body["operationState"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        states(&op().scale_out().completed()),
        ["STARTING", "PROCESSING", "COMPLETED"]
    );
    assert_eq!(
        states(&op().modify_info().completed()),
        ["PROCESSING", "COMPLETED"]
    );
}

#[test]
fn a_scale_out_names_the_pods_it_added() {
    let all = told(&op().scale_out().completed(), Verbosity::Full);
    let affected = all.last().unwrap()["affectedVnfcs"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(affected.len(), 2);
    assert!(affected.iter().all(|vnfc| vnfc["changeType"] == "ADDED"));
}

#[test]
fn a_change_of_the_package_tells_what_it_changed_under_a_name_of_its_own() {
    let all = told(&op().change_vnfpkg().completed(), Verbosity::Full);
    let last = all.last().unwrap();
    let changed = &last["modificationsTriggeredByVnfPkgChange"];
    assert_eq!(changed["vnfdId"], "vnfd-2");
    assert_eq!(changed["vnfSoftwareVersion"], "2.0");
    assert!(last.get("changedInfo").is_none());
    let short = told(&op().change_vnfpkg().completed(), Verbosity::Short);
    let last = short.last().unwrap();
    assert!(last.get("modificationsTriggeredByVnfPkgChange").is_none());
}

#[test]
fn ids_come_from_the_event_alone() {
    let stream = StreamId::VnfLcmOpOcc(VnfLcmOpOccId::parse("o-1").unwrap());
    assert_eq!(notification_id(&stream, 3), notification_id(&stream, 3));
    assert_ne!(notification_id(&stream, 3), notification_id(&stream, 4));
    // Fixed for ever: a resend after an upgrade must carry the same id.
    assert_eq!(
        notification_id(&stream, 3),
        "51005908-4867-5842-bf5d-c6dce2a0e529"
    );
}

#[test]
fn identifiers_are_told_without_an_operation() {
    let instance = VnfInstanceId::parse("i-1").unwrap();
    for (announcement, schema) in [
        (
            Announcement::IdentifierCreated,
            "VnfIdentifierCreationNotification",
        ),
        (
            Announcement::IdentifierDeleted,
            "VnfIdentifierDeletionNotification",
        ),
    ] {
        let occasion = Occasion {
            id: "n-1",
            at: Timestamp::from_millis(0),
            announcement,
            instance: &instance,
            subscription: &subscription(Verbosity::Full),
        };
        let body = render(&occasion, None, &url());
        judge(schema, &body);
        assert_eq!(body["notificationType"], schema);
        assert_eq!(body["timeStamp"], "1970-01-01T00:00:00.000Z");
        assert!(body.get("operation").is_none());
    }
}
