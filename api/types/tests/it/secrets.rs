//! Sealed members and credentials are in no answer.

use cairn_api_types::cairn::{CairnVnfLcmOpOcc, VimDto, event_data};
use cairn_api_types::vnf_instance::VnfInstanceDto;
use cairn_domain::history::EventBody;
use cairn_domain::ids::VimId;
use cairn_domain::testing::{instance, op};
use cairn_domain::vim::VimConnectionInfo;
use serde_json::{Map, Value, json};

use crate::occurrences::url;

const HIDDEN: [&str; 4] = ["$secret", "accessInfo", "ref-", "CERTIFICATE"];

#[track_caller]
fn shows_nothing(body: &Value) {
    let text = body.to_string();
    for hidden in HIDDEN {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
}

fn vims() -> Map<String, Value> {
    let vim = json!({"vim1": {"vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {"endpoint": "https://a"},
        "accessInfo": {"client_certificate": "CERTIFICATE", "client_key": {"$secret": "ref-1"}}}});
    vim.as_object().unwrap().clone()
}

#[test]
fn neither_instance_nor_operation_nor_history_shows_a_credential() {
    let mut stored = instance().instantiated().world.instance().clone();
    stored.info.vim_connection_info = vims();
    stored
        .info
        .metadata
        .insert("dbPassword".into(), json!({"$secret": "ref-2"}));
    let body = serde_json::to_value(VnfInstanceDto::of(&stored, &url())).unwrap();
    assert_eq!(
        body["vimConnectionInfo"]["vim1"]["interfaceInfo"]["endpoint"],
        "https://a"
    );
    shows_nothing(&body);

    let mut begun = op().modify_info().completed().op().clone();
    let patch =
        json!({"vimConnectionInfo": vims(), "metadata": {"token": {"$secret": "ref-3"}, "a": 1}});
    begun.request = patch.as_object().unwrap().clone();
    begun.changed_info = Some(begun.request.clone());
    let body = serde_json::to_value(CairnVnfLcmOpOcc::of(&begun, None, &url())).unwrap();
    assert_eq!(body["changedInfo"]["metadata"], json!({"a": 1}));
    shows_nothing(&body);

    for mut event in op().modify_info().completed().history() {
        if let cairn_domain::lcm_op_occ::VnfLcmOpOccEvent::OperationStarted { request, .. } =
            &mut event
        {
            request.clone_from(&begun.request);
        }
        shows_nothing(&Value::Object(event_data(&EventBody::VnfLcmOpOcc(event))));
    }
}

#[test]
fn a_registered_vim_is_shown_without_its_credentials() {
    let info = VimConnectionInfo::parse(&vims()["vim1"]).unwrap();
    let body = serde_json::to_value(VimDto::of(&VimId::parse("v").unwrap(), &info)).unwrap();
    assert_eq!(body["interfaceInfo"], json!({"endpoint": "https://a"}));
    shows_nothing(&body);
}
