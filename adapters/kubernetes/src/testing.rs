//! Fixtures of the unit tests.

use crate::discovery::{Kind, Located};
use cairn_domain::ids::{VimId, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::object::ObjectRef;
use cairn_domain::ports::Scope;
use cairn_domain::vim::ClusterAccess;
use std::sync::Arc;

pub(crate) fn scope() -> Scope {
    Scope {
        access: ClusterAccess::Configured(VimId::parse("default").unwrap()),
        instance: VnfInstanceId::parse("instance-1").unwrap(),
        operation: VnfLcmOpOccId::parse("operation-1").unwrap(),
        known_operations: Vec::new(),
        recorded_uids: Vec::new(),
        package_digest: "digest".into(),
        namespace: "ns".into(),
        take_over: false,
        since: cairn_domain::time::Timestamp::from_millis(0),
        look_only: false,
    }
}

pub(crate) fn located(api_version: &str, kind: &str, name: &str) -> Located {
    Located {
        kind: Arc::new(Kind {
            api_version: api_version.into(),
            name: kind.into(),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced: true,
            verbs: vec!["patch".into()],
            scalable: true,
        }),
        object: ObjectRef {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: Some("ns".into()),
            name: name.into(),
        },
    }
}
