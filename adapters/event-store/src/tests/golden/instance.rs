//! Samples of an instance's events.

use super::super::fixture::{at, created, instance_id, op_id, product};
use super::operation::{levels, managed, vnfc};
use super::{check, check_files};
use cairn_domain::ids::Tenant;
use cairn_domain::operation::{Operation, OperationState};
use cairn_domain::vnf_instance::{InstantiatedVnfInfo, VnfInfo, VnfInstanceEvent as Event};
use serde_json::{Map, Value, json};

/// Fails to compile when an event is added, and then wants a sample below.
fn place(event: &Event) -> usize {
    match event {
        Event::VnfIdentifierCreated { .. } => 0,
        Event::VnfInfoModified { .. } => 1,
        Event::OperationClaimed { .. } => 2,
        Event::OperationHalted { .. } => 3,
        Event::OperationResumed { .. } => 4,
        Event::OperationReleased { .. } => 5,
        Event::Instantiated { .. } => 6,
        Event::Scaled { .. } => 7,
        Event::Healed { .. } => 8,
        Event::Terminated { .. } => 9,
        Event::LeftoversRecorded { .. } => 10,
        Event::VnfcsObserved { .. } => 11,
        Event::ObjectsObserved { .. } => 12,
        Event::VnfPackageChanged { .. } => 13,
        Event::VnfIdentifierDeleted { .. } => 14,
    }
}

pub(crate) fn members(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn info() -> VnfInfo {
    VnfInfo {
        vnf_instance_name: Some("core".into()),
        vnf_instance_description: Some("a sample".into()),
        metadata: members(&json!({"site": "north"})),
        extensions: members(&json!({"mtu": 9000})),
        vnf_configurable_properties: members(&json!({"isAutoscaleEnabled": false})),
        vim_connection_info: members(&json!({"vim": {
            "vimId": "site-1", "vimType": "ETSINFV.KUBERNETES.V_1",
            "accessInfo": {"bearer_token": {"$secret": "ref-1"}},
        }})),
    }
}

fn instantiated() -> InstantiatedVnfInfo {
    InstantiatedVnfInfo {
        flavour_id: "simple".into(),
        levels: levels(),
        vnfcs: vec![vnfc()],
        objects: vec![managed()],
        namespace: "default".into(),
        def_files: Some(vec!["Files/kubernetes/deployment.yaml".into()]),
        cluster_uid: "cluster-uid".into(),
    }
}

fn begun() -> Event {
    match created("i") {
        Event::VnfIdentifierCreated {
            at,
            by,
            tenant,
            product,
            ..
        } => Event::VnfIdentifierCreated {
            at,
            id: instance_id("i"),
            by,
            tenant,
            product,
            info: info(),
        },
        other => other,
    }
}

fn samples() -> Vec<Event> {
    let overlay = members(&json!({"extensions": {"mtu": 1500}}));
    vec![
        begun(),
        Event::VnfInfoModified {
            at: at(1),
            op: op_id("o"),
            info: info(),
            overlay: overlay.clone(),
            product: Some(product()),
        },
        Event::OperationClaimed {
            at: at(2),
            op: op_id("o"),
            operation: Operation::ScaleToLevel,
            overlay,
            vnf_pkg_id: Some(product().vnf_pkg_id),
        },
        Event::OperationHalted {
            at: at(3),
            op: op_id("o"),
        },
        Event::OperationResumed {
            at: at(4),
            op: op_id("o"),
            rolling_back: true,
        },
        Event::OperationReleased {
            at: at(5),
            op: op_id("o"),
            outcome: OperationState::Failed,
            scale_in_doubt: Some(["WEB".to_owned()].into()),
        },
    ]
}

fn later() -> Vec<Event> {
    vec![
        Event::Instantiated {
            at: at(6),
            info: instantiated(),
        },
        Event::Scaled {
            at: at(7),
            levels: levels(),
            vnfcs: vec![vnfc()],
        },
        Event::Healed {
            at: at(8),
            vnfcs: vec![vnfc()],
            objects: vec![managed()],
        },
        Event::Terminated { at: at(9) },
        Event::LeftoversRecorded {
            at: at(10),
            objects: vec![managed()],
            cluster_uid: Some("cluster-uid".into()),
        },
        Event::VnfcsObserved {
            at: at(11),
            vnfcs: vec![vnfc()],
        },
        Event::ObjectsObserved {
            at: at(12),
            objects: vec![managed()],
        },
        Event::VnfPackageChanged {
            at: at(13),
            product: product(),
            levels: levels(),
            vnfcs: vec![vnfc()],
            objects: vec![managed()],
            def_files: Some(vec!["Files/kubernetes/deployment.yaml".into()]),
        },
        Event::VnfIdentifierDeleted {
            at: at(13),
            by: "anonymous".into(),
            tenant: Tenant::default_tenant(),
        },
    ]
}

#[test]
fn events_of_instances() {
    let samples = [samples(), later()].concat();
    for (index, event) in samples.iter().enumerate() {
        assert_eq!(place(event), index, "a sample of each event, in order");
        check("VnfInstance", event.name(), event);
    }
    assert_eq!(samples.len(), 15);
    check_files("VnfInstance", &samples.iter().map(Event::name).collect());
}
