//! `VnfInstance` and `VnfLcmOpOcc`, and the links that they show.

use crate::judge::judge;
use cairn_api_types::PublicUrl;
use cairn_api_types::cairn::{CairnVnfInstance, CairnVnfLcmOpOcc, HistoryDto};
use cairn_api_types::vnf_instance::VnfInstanceDto;
use cairn_api_types::vnf_lcm_op_occ::VnfLcmOpOccDto;
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::NodeId;
use cairn_domain::operation::{CancelMode, ErrorPoint, OperationState};
use cairn_domain::ports::{Owner, Row};
use cairn_domain::testing::{OpStory, instance, op};
use cairn_domain::time::Timestamp;
use serde_json::{Value, json};

pub fn url() -> PublicUrl {
    PublicUrl::parse("https://gw.example/vnfm/").unwrap()
}

/// Stories that end in each of the seven states.
pub fn stories() -> Vec<OpStory> {
    vec![
        op().instantiate().begun(),
        op().instantiate().at(ErrorPoint::PreVimControl),
        op().instantiate().completed(),
        op().instantiate().failed_at(ErrorPoint::PostVimControl),
        op().instantiate()
            .failed_at(ErrorPoint::PostVimControl)
            .given_up(),
        op().instantiate()
            .failed_at(ErrorPoint::PostVimControl)
            .rolling_back(),
        op().instantiate()
            .failed_at(ErrorPoint::PostVimControl)
            .rolled_back(),
        op().scale_out().completed(),
        op().heal_one().completed(),
        op().change_vnfpkg().completed(),
        op().change_vnfpkg()
            .failed_at(ErrorPoint::PostVimControl)
            .rolled_back(),
        op().modify_info().completed(),
        op().terminate().completed(),
        op().scale_in()
            .failed_at(ErrorPoint::VnfConfigEnd)
            .retried(),
        op().instantiate().begun().cancelled(CancelMode::Forceful),
    ]
}

fn links(body: &Value) -> Vec<String> {
    body["_links"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect()
}

#[test]
fn occurrences_follow_the_schema_and_link_exactly_what_is_legal() {
    let mut seen = Vec::new();
    for story in stories() {
        let body = serde_json::to_value(VnfLcmOpOccDto::of(story.op(), &url())).unwrap();
        judge("VnfLcmOpOcc", &body);
        let expected: &[&str] = match story.state() {
            OperationState::Starting | OperationState::Processing | OperationState::RollingBack => {
                &["cancel", "self", "vnfInstance"]
            }
            OperationState::FailedTemp => &["fail", "retry", "rollback", "self", "vnfInstance"],
            OperationState::Completed | OperationState::Failed | OperationState::RolledBack => {
                &["self", "vnfInstance"]
            }
        };
        let mut found = links(&body);
        found.sort();
        assert_eq!(found, expected, "{}", story.state());
        seen.push(story.state());
    }
    for state in OperationState::ALL {
        assert!(seen.contains(&state), "no story ends in {state}");
    }
}

#[test]
fn an_error_is_shown_exactly_where_one_may_be() {
    for story in stories() {
        let op = story.op();
        let body = serde_json::to_value(VnfLcmOpOccDto::of(op, &url())).unwrap();
        let expected = match op.state {
            OperationState::FailedTemp | OperationState::Failed | OperationState::RolledBack => {
                true
            }
            OperationState::RollingBack | OperationState::Processing => {
                op.tries.len() > 1 || op.error.is_some()
            }
            OperationState::Starting | OperationState::Completed => false,
        };
        assert_eq!(
            body.get("error").is_some(),
            expected,
            "{} {}",
            op.operation(),
            op.state
        );
    }
}

#[test]
fn instances_follow_the_schema_and_list_every_aspect() {
    for story in stories() {
        let body =
            serde_json::to_value(VnfInstanceDto::of(story.world.instance(), &url())).unwrap();
        judge("VnfInstance", &body);
        let instantiated = body["instantiationState"] == "INSTANTIATED";
        assert_eq!(body.get("instantiatedVnfInfo").is_some(), instantiated);
    }
    let story = instance().instantiated();
    let body = serde_json::to_value(VnfInstanceDto::of(story.world.instance(), &url())).unwrap();
    let info = &body["instantiatedVnfInfo"];
    assert_eq!(
        info["scaleStatus"],
        json!([{"aspectId": "web", "scaleLevel": 1}])
    );
    let first = &info["vnfcResourceInfo"][0];
    assert_eq!(first["computeResource"]["resourceId"], first["id"]);
    let mut found = links(&body);
    found.sort();
    assert_eq!(
        found,
        [
            "changeCurrentVnfPkg",
            "heal",
            "scale",
            "scaleToLevel",
            "self",
            "terminate"
        ]
    );
    assert_eq!(
        body["_links"]["heal"]["href"],
        format!(
            "https://gw.example/vnfm/vnflcm/v2/vnf_instances/{}/heal",
            story.world.instance().id
        )
    );
}

#[test]
fn our_own_shapes_add_to_those_of_sol003() {
    let story = op()
        .instantiate()
        .failed_at(ErrorPoint::PostVimControl)
        .given_up();
    let row = Row {
        state: story.world.instance().clone().into(),
        version: 3,
        position: 41,
    };
    let body = serde_json::to_value(CairnVnfInstance::of(&row, &url())).unwrap();
    judge("VnfInstance", &body);
    assert_eq!(
        body["provisioning"],
        json!({"state": "DEPLOYFAIL", "target": null})
    );
    assert_eq!(body["position"], 41);
    assert!(
        body["leftovers"]
            .as_array()
            .unwrap()
            .contains(&json!("Deployment/web")),
        "{body:#}"
    );

    let owner = Owner {
        node: NodeId::parse("node-1").unwrap(),
        expires_at: Timestamp::from_millis(7),
    };
    let body =
        serde_json::to_value(CairnVnfLcmOpOcc::of(story.op(), Some(&owner), &url())).unwrap();
    judge("VnfLcmOpOcc", &body);
    assert_eq!(body["owner"], "node-1");
    assert_eq!(body["point"], 4);
    assert_eq!(body["tries"][0]["try"], 1);
    assert!(body["tries"][0]["cause"]["detail"].is_string());
    assert_eq!(body["plan"][0]["index"], 0);
    assert!(
        body["plan"]
            .as_array()
            .unwrap()
            .iter()
            .any(|step| step["undo"] == json!({"how": "delete"}))
    );
    assert!(
        !body.to_string().contains("\"body\""),
        "recorded states are not shown"
    );
}

#[test]
fn history_shows_the_fields_of_events_by_their_names() {
    let story = op().scale_out().completed();
    let id = story.world.instance().id.clone();
    let events: Vec<Envelope> = (1..)
        .zip(story.history())
        .map(|(sequence, event)| Envelope {
            position: sequence + 10,
            recorded_at: event.at(),
            stream: StreamId::VnfLcmOpOcc(story.op().id.clone()),
            sequence,
            vnf_instance_id: Some(id.clone()),
            body: EventBody::VnfLcmOpOcc(event),
        })
        .collect();
    let body = serde_json::to_value(HistoryDto::of(&id, &events)).unwrap();
    let reached = body["events"]
        .as_array()
        .unwrap()
        .iter()
        .find(|event| event["type"] == "ErrorPointReached")
        .unwrap();
    assert_eq!(reached["data"], json!({"point": 0, "try": 1}));
    assert_eq!(reached["aggregateType"], "VnfLcmOpOcc");
    assert_eq!(reached["vnfLcmOpOccId"], reached["aggregateId"]);
    for event in body["events"].as_array().unwrap() {
        assert!(
            event["data"].is_object() && event["data"].get("at").is_none(),
            "{event}"
        );
    }
}
