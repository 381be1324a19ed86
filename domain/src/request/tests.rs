//! Every refusal names the field and what may stand there; secrets leave a body before it is kept.

use super::*;
use crate::operation::ErrorPoint;
use crate::testing::{World, at_point, levels, vnfd};
use serde_json::json;

fn resolved(
    operation: Operation,
    instance: &VnfInstance,
    body: &Value,
) -> Result<(Params, AdditionalParams), Problem> {
    let package = Package {
        product: &instance.product,
        vnfd: &vnfd(),
    };
    resolve(operation, instance, package, body.as_object().unwrap())
}

fn refusal(operation: Operation, body: &Value) -> String {
    let world = World::instantiated();
    let refused = resolved(operation, world.instance(), body).unwrap_err();
    assert_eq!(refused.status, 422, "{body}");
    refused.detail
}

fn accepted(operation: Operation, body: &Value) -> Params {
    let world = World::instantiated();
    resolved(operation, world.instance(), body).unwrap().0
}

/// Each body is refused with exactly these words.
#[track_caller]
fn refused(operation: Operation, rows: &[(Value, &str)]) {
    for (body, says) in rows {
        assert_eq!(refusal(operation, body), *says, "{operation} {body}");
    }
}

fn simple(more: &Value) -> Value {
    let mut body = json!({"flavourId": "simple"});
    crate::merge_patch::merge(&mut body, more);
    body
}

fn asked(params: &Value) -> Value {
    simple(&json!({"additionalParams": params}))
}

#[test]
fn an_instantiate_is_refused_with_field_and_what_is_allowed() {
    refused(
        Operation::Instantiate,
        &[
            (json!({}), "flavourId is missing"),
            (json!({"flavourId": 7}), "flavourId must be a text"),
            (
                json!({"flavourId": "big"}),
                "flavourId: \"big\" is not in the VNFD; allowed: simple",
            ),
            (
                simple(&json!({"instantiationLevelId": "huge"})),
                "instantiationLevelId: \"huge\" is not in the VNFD; allowed: large, small",
            ),
            (
                simple(&json!({"localizationLanguage": "de"})),
                "localizationLanguage: \"de\" is not in the VNFD; allowed: en",
            ),
            (
                simple(&json!({"vimConnectionInfo": []})),
                "vimConnectionInfo must be a map of entries",
            ),
            (
                simple(&json!({"vimConnectionInfo": {"a": {"vimType": "OPENSTACK"}}})),
                "vimConnectionInfo.a: vimType \"OPENSTACK\" is not supported; use ETSINFV.KUBERNETES.V_1",
            ),
            (
                simple(&json!({"additionalParams": 1})),
                "additionalParams must be a map",
            ),
        ],
    );
}

#[test]
fn the_parameters_of_an_instantiate_are_refused_with_field_and_what_is_allowed() {
    refused(
        Operation::Instantiate,
        &[
            (
                asked(&json!({"cairn.leftovers": "keep"})),
                "cairn.leftovers: \"keep\" is unknown; allowed: adopt, replace",
            ),
            (
                asked(&json!({"cairn.clocks": {"fast": "1s"}})),
                "clock for \"fast\": classes are progressing, blocked, infrastructure, unclassified",
            ),
            (
                asked(&json!({"cairn.takeOver": "yes"})),
                "cairn.takeOver must be true or false",
            ),
            (
                asked(&json!({"lcm-kubernetes-def-files": []})),
                "lcm-kubernetes-def-files must be a list of paths in the package",
            ),
            (
                asked(&json!({"cairn.deletVolumes": true})),
                "additionalParams.cairn.deletVolumes is unknown; allowed: cairn.clocks, cairn.deleteVolumes, cairn.leftovers, cairn.takeOver",
            ),
            (
                asked(&json!({"helm_chart": "x"})),
                "additionalParams.helm_chart: Helm charts are not supported; give manifests in lcm-kubernetes-def-files",
            ),
        ],
    );
}

#[test]
fn a_scale_is_refused_with_field_and_what_is_allowed() {
    refused(
        Operation::Scale,
        &[
            (json!({"aspectId": "web"}), "type is missing"),
            (
                json!({"type": "UP", "aspectId": "web"}),
                "type: \"UP\" is unknown; allowed: SCALE_OUT, SCALE_IN",
            ),
            (
                json!({"type": "SCALE_OUT", "aspectId": "db"}),
                "aspectId: \"db\" is not in the VNFD; allowed: web",
            ),
            (
                json!({"type": "SCALE_OUT", "aspectId": "web", "numberOfSteps": 9}),
                "numberOfSteps: level 10 of scaling aspect \"web\" is out of range; allowed: 0 to 4",
            ),
            (
                json!({"type": "SCALE_IN", "aspectId": "web", "numberOfSteps": 2}),
                "numberOfSteps: level -1 of scaling aspect \"web\" is out of range; allowed: 0 to 4",
            ),
            (
                json!({"type": "SCALE_OUT", "aspectId": "web", "numberOfSteps": 0}),
                "numberOfSteps: 0 is out of range; allowed: 1 or more",
            ),
        ],
    );
}

#[test]
fn a_scale_to_level_is_refused_with_field_and_what_is_allowed() {
    refused(
        Operation::ScaleToLevel,
        &[
            (
                json!({}),
                "give exactly one of instantiationLevelId and scaleInfo",
            ),
            (
                json!({"instantiationLevelId": "small", "scaleInfo": [{"aspectId": "web", "scaleLevel": 1}]}),
                "give exactly one of instantiationLevelId and scaleInfo",
            ),
            (
                json!({"scaleInfo": [{"aspectId": "web"}]}),
                "scaleInfo must be a list of {aspectId, scaleLevel}",
            ),
            (
                json!({"scaleInfo": [{"aspectId": "web", "scaleLevel": 5}]}),
                "scaleInfo: level 5 of scaling aspect \"web\" is out of range; allowed: 0 to 4",
            ),
            (
                json!({"scaleInfo": [{"aspectId": "web", "scaleLevel": 1}, {"aspectId": "web", "scaleLevel": 2}]}),
                "scaleInfo names aspect \"web\" twice",
            ),
        ],
    );
}

#[test]
fn a_heal_is_refused_with_field_and_what_is_allowed() {
    refused(
        Operation::Heal,
        &[
            (
                json!({"vnfcInstanceId": "web"}),
                "vnfcInstanceId must be a list of texts",
            ),
            (json!({"cause": 1}), "cause must be a text"),
        ],
    );
}

#[test]
fn a_terminate_is_refused_with_field_and_what_is_allowed() {
    refused(
        Operation::Terminate,
        &[
            (json!({}), "terminationType is missing"),
            (
                json!({"terminationType": "NOW"}),
                "terminationType: \"NOW\" is unknown; allowed: FORCEFUL, GRACEFUL",
            ),
            (
                json!({"terminationType": "GRACEFUL", "gracefulTerminationTimeout": -1}),
                "gracefulTerminationTimeout must be seconds, 0 or more",
            ),
        ],
    );
}

#[test]
fn a_modify_is_refused_with_field_and_what_is_allowed() {
    refused(
        Operation::ModifyInfo,
        &[
            (
                json!({}),
                "nothing to change; allowed: vnfInstanceName, vnfInstanceDescription, metadata, extensions, vnfConfigurableProperties, vimConnectionInfo, vnfdId",
            ),
            (json!({"metadata": "x"}), "metadata must be a map"),
            (
                json!({"vnfInstanceName": 1}),
                "vnfInstanceName must be a text",
            ),
            (
                json!({"vnfdId": null}),
                "vnfdId must be a text: it cannot be removed",
            ),
        ],
    );
}

#[test]
fn an_unknown_vnfc_is_refused_with_those_that_exist() {
    let world = World::instantiated();
    let known: Vec<&str> = world
        .instance()
        .vnfcs()
        .iter()
        .map(|v| v.id.as_str())
        .collect();
    let refused = refusal(Operation::Heal, &json!({"vnfcInstanceId": ["ghost"]}));
    let all = known.join(", ");
    assert_eq!(
        refused,
        format!("vnfcInstanceId: \"ghost\" is not a VNFC of this instance; allowed: {all}")
    );
}

#[test]
fn requests_are_resolved_to_levels_and_numbers() {
    let out = accepted(
        Operation::Scale,
        &json!({"type": "SCALE_OUT", "aspectId": "web", "numberOfSteps": 2}),
    );
    assert_eq!(
        out,
        Params::Scale {
            levels: levels(4),
            aspect_id: "web".into(),
            out: true
        }
    );
    let one = accepted(
        Operation::Scale,
        &json!({"type": "SCALE_IN", "aspectId": "web"}),
    );
    assert_eq!(
        one,
        Params::Scale {
            levels: levels(1),
            aspect_id: "web".into(),
            out: false
        }
    );
    let level = accepted(
        Operation::ScaleToLevel,
        &json!({"instantiationLevelId": "large"}),
    );
    assert_eq!(level, Params::ScaleToLevel { levels: levels(5) });
    for name in ["scaleLevel", "scaleToLevel"] {
        let body = json!({"scaleInfo": [{"aspectId": "web", name: 0}]});
        let info = accepted(Operation::ScaleToLevel, &body);
        assert_eq!(info, Params::ScaleToLevel { levels: levels(1) }, "{name}");
    }
    let end = accepted(
        Operation::Terminate,
        &json!({"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 30}),
    );
    assert_eq!(
        end,
        Params::Terminate {
            forceful: false,
            graceful_timeout_s: Some(30)
        }
    );
}

#[test]
fn a_vnfc_is_named_by_its_pod_with_or_without_its_vdu_and_once() {
    let named = json!({"vnfcInstanceId": ["db-0", "DB-db-0"]});
    let params = accepted(Operation::Heal, &named);
    assert_eq!(
        params,
        Params::Heal {
            vnfcs: vec!["db-0".into()],
            cause: None
        }
    );
}

#[test]
fn after_a_given_up_termination_a_heal_is_one_of_everything() {
    let mut world = World::instantiated();
    world
        .begin(Params::Terminate {
            forceful: true,
            graceful_timeout_s: None,
        })
        .unwrap();
    world.go_until(at_point(ErrorPoint::PostVimControl));
    world.fail_here("broken");
    world.fail().unwrap();
    let body = json!({"vnfcInstanceId": ["db-0"]});
    let params = resolved(Operation::Heal, world.instance(), &body)
        .unwrap()
        .0;
    assert_eq!(
        params,
        Params::Heal {
            vnfcs: Vec::new(),
            cause: None
        }
    );
}

#[test]
fn an_instantiate_lays_its_values_over_the_record() {
    let vim = json!({"vim1": {"vimType": "kubernetes", "vimId": "a"}});
    let body = json!({"flavourId": "simple", "vimConnectionInfo": vim,
        "extensions": {"e": 1}, "additionalParams": {"namespace": "telco"}});
    let (params, additional) =
        resolved(Operation::Instantiate, World::new().instance(), &body).unwrap();
    let Params::Instantiate {
        levels: first,
        info,
        ..
    } = params
    else {
        panic!()
    };
    assert_eq!(first, levels(1), "the default level");
    let mut members: Vec<&String> = info.keys().collect();
    members.sort();
    assert_eq!(members, ["extensions", "vimConnectionInfo"]);
    assert_eq!(additional.namespace.as_deref(), Some("telco"));
}

#[test]
fn the_clock_of_the_request_wins_over_that_of_the_package() {
    let mut vnfd = vnfd();
    vnfd.clocks = Clocks::parse(&json!({"blocked": "9s", "infrastructure": "9s"})).unwrap();
    let body = json!({"flavourId": "simple",
        "additionalParams": {"cairn.clocks": {"blocked": "2s"}}});
    let world = World::new();
    let members = body.as_object().unwrap();
    let package = Package {
        product: &world.instance().product,
        vnfd: &vnfd,
    };
    let (_, additional) =
        resolve(Operation::Instantiate, world.instance(), package, members).unwrap();
    assert_eq!(
        additional.clocks.of(crate::waits::WaitClass::Blocked),
        Some(2000)
    );
    assert_eq!(
        additional
            .clocks
            .of(crate::waits::WaitClass::Infrastructure),
        Some(9000)
    );
}

#[test]
fn secrets_leave_the_body_before_it_is_kept() {
    let mut body = json!({
        "vimConnectionInfo": {"keystone": {"vimType": "kubernetes", "accessInfo":
            {"bearer_token": "t1", "client_key": "k1", "passphrase": "w1", "client_certificate": "PEM"}}},
        "additionalParams": {"dbPassword": "p1", "pin": "1234", "cairn.takeOver": true, "size": 3},
        "extensions": {"PIN": "5678", "colour": "red"},
    });
    let members = body.as_object_mut().unwrap();
    let mut serial = 0;
    let sealed = seal_request(members, &["pin".to_owned()], &mut || {
        serial += 1;
        SecretRef(format!("s{serial}"))
    });
    let mut texts: Vec<&str> = sealed.iter().map(|(_, secret)| secret.reveal()).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["1234", "5678", "k1", "p1", "t1", "w1"]);
    let kept = body.to_string();
    assert!(texts.iter().all(|text| !kept.contains(text)), "{kept}");
    for open in ["red", "cairn.takeOver", "kubernetes", "PEM"] {
        assert!(kept.contains(open), "{open} in {kept}");
    }
}

/// The next version of the package, with these changes to its descriptor.
fn changed(
    instance: &VnfInstance,
    vnfd: &Vnfd,
    body: &Value,
) -> Result<(Params, AdditionalParams), Problem> {
    let package = Package {
        product: &crate::testing::next_product(),
        vnfd,
    };
    let body = body.as_object().unwrap();
    resolve(Operation::ChangeVnfpkg, instance, package, body)
}

fn refused_change(vnfd: &Vnfd, body: &Value) -> String {
    let world = World::instantiated();
    let refused = changed(world.instance(), vnfd, body).unwrap_err();
    assert_eq!(refused.status, 422, "{body}");
    refused.detail
}

#[test]
fn a_change_of_the_package_carries_the_levels_over() {
    let world = World::instantiated();
    let body = json!({"vnfdId": "vnfd-2", "additionalParams": {"upgrade_type": "RollingUpdate",
        "lcm-kubernetes-def-files": ["Files/a.yaml"], "vdu_params": [{"vdu_id": "WEB"}]}});
    let (params, additional) = changed(world.instance(), &vnfd(), &body).unwrap();
    let Params::ChangeVnfpkg {
        product,
        levels: carried,
        info,
        vdus,
    } = params
    else {
        panic!()
    };
    assert_eq!(product, crate::testing::next_product());
    assert_eq!(carried, levels(2));
    assert_eq!(info, Map::new());
    assert_eq!(vdus, Some(vec!["WEB".to_owned()]));
    assert_eq!(additional.def_files, Some(vec!["Files/a.yaml".to_owned()]));
}

#[test]
fn a_workload_keeps_its_number_whatever_the_new_deltas_say() {
    let mut next = vnfd();
    let flavour = next.flavours.get_mut("simple").unwrap();
    flavour.vdus.get_mut("WEB").unwrap().initial_delta = Some(9);
    let db = flavour.vdus.get_mut("DB").unwrap();
    db.name = "db2".into();
    db.initial_delta = Some(3);
    let world = World::instantiated();
    let body = json!({"vnfdId": "vnfd-2"});
    let (params, _) = changed(world.instance(), &next, &body).unwrap();
    let Params::ChangeVnfpkg { levels, .. } = params else {
        panic!()
    };
    assert_eq!(levels.vdu_replicas["WEB"], 2, "it stays as it is");
    assert_eq!(levels.vdu_replicas["DB"], 3, "its workload is another one");
}

#[test]
fn a_change_that_has_no_place_for_what_is_there_is_refused() {
    let mut lower = vnfd();
    let simple = lower.flavours.get_mut("simple").unwrap();
    simple.aspects.get_mut("web").unwrap().max_scale_level = 0;
    let mut without = vnfd();
    let simple = without.flavours.get_mut("simple").unwrap();
    simple.aspects.clear();
    simple.instantiation_levels.clear();
    simple.default_instantiation_level = None;
    let mut other = vnfd();
    let simple = other.flavours.remove("simple").unwrap();
    other.flavours.insert("big".into(), simple);
    let body = json!({"vnfdId": "vnfd-2"});
    for (next, says) in [
        (
            &lower,
            "vnfdId: scaling aspect \"web\" is at level 1 and has at most 0 in the new VNFD; scale it in first",
        ),
        (
            &without,
            "vnfdId: scaling aspect \"web\" is at level 1 and the new VNFD has no such aspect; scale it to 0 first",
        ),
        (
            &other,
            "flavourId: \"simple\" is not in the VNFD; allowed: big",
        ),
    ] {
        assert_eq!(refused_change(next, &body), says);
    }
}

#[test]
fn a_change_is_refused_with_field_and_what_is_allowed() {
    let with = |params: Value| json!({"vnfdId": "vnfd-2", "additionalParams": params});
    for (body, says) in [
        (
            with(json!({"upgrade_type": "BlueGreen"})),
            "additionalParams.upgrade_type: \"BlueGreen\" is unknown; allowed: RollingUpdate",
        ),
        (
            with(json!({"vdu_params": [{"vdu_id": "VDU9"}]})),
            "additionalParams.vdu_params: \"VDU9\" is no VDU of the new VNFD; allowed: DB, WEB",
        ),
        (
            with(json!({"vdu_params": ["WEB"]})),
            "additionalParams.vdu_params must be a list of objects with a vdu_id",
        ),
        (
            with(json!({"namespace": "elsewhere"})),
            "additionalParams.namespace: the VNF is in \"default\" and cannot be moved to \"elsewhere\"",
        ),
        (
            with(json!({"cairn.unknown": true})),
            "additionalParams.cairn.unknown is unknown; allowed: cairn.clocks, cairn.deleteVolumes, cairn.leftovers, cairn.takeOver",
        ),
    ] {
        assert_eq!(refused_change(&vnfd(), &body), says, "{body}");
    }
    let world = World::instantiated();
    let same = resolved(Operation::ChangeVnfpkg, world.instance(), &json!({}));
    assert_eq!(
        same.unwrap_err().detail,
        "vnfdId: the VNF instance is one of vnfd-1 already; name the VNFD of another version"
    );
}

#[test]
fn what_the_new_vnfd_declares_is_laid_under_what_the_request_says() {
    let mut next = vnfd();
    next.extensions = json!({"mtu": 9000, "colour": "red"})
        .as_object()
        .cloned()
        .unwrap();
    next.vnf_configurable_properties = json!({"isAutoscaleEnabled": false})
        .as_object()
        .cloned()
        .unwrap();
    let world = World::instantiated();
    let body = json!({"vnfdId": "vnfd-2", "extensions": {"mtu": 1500, "old": null}});
    let (params, _) = changed(world.instance(), &next, &body).unwrap();
    let Params::ChangeVnfpkg { info, .. } = params else {
        panic!()
    };
    assert_eq!(
        Value::Object(info),
        json!({"extensions": {"mtu": 1500, "colour": "red", "old": null},
            "vnfConfigurableProperties": {"isAutoscaleEnabled": false}})
    );
}
