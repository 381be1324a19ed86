//! The bodies that are taken.

use super::shape::{Kind, Member, Shape, Unknown};

const fn required(name: &'static str, kind: Kind) -> Member {
    Member {
        name,
        required: true,
        kind,
    }
}

const fn optional(name: &'static str, kind: Kind) -> Member {
    Member {
        name,
        required: false,
        kind,
    }
}

const fn sol(name: &'static str, members: &'static [Member]) -> Shape {
    Shape {
        name,
        members,
        unknown: Unknown::Ignored,
        patch: false,
        one_of: &[],
    }
}

/// What of `accessInfo` is read; further members are kept sealed.
const ACCESS_INFO: Kind = Kind::Object(&[
    optional("bearer_token", Kind::Text),
    optional("client_certificate", Kind::Text),
    optional("client_key", Kind::Text),
]);

/// SOL003 4.4.1.6.
const VIM: &[Member] = &[
    optional("vimId", Kind::Text),
    required("vimType", Kind::Text),
    optional("interfaceInfo", Kind::KeyValuePairs),
    optional("accessInfo", ACCESS_INFO),
    optional("extra", Kind::KeyValuePairs),
];

/// The same in a merge patch, which may change any part of an entry.
const VIM_PATCH: &[Member] = &[
    optional("vimId", Kind::Text),
    optional("vimType", Kind::Text),
    optional("interfaceInfo", Kind::KeyValuePairs),
    optional("accessInfo", ACCESS_INFO),
    optional("extra", Kind::KeyValuePairs),
];

/// SOL003 4.4.1.11, as far as it is read.
const EXT_VIRTUAL_LINK: &[Member] = &[
    required("id", Kind::Text),
    optional("vimConnectionId", Kind::Text),
    optional("resourceProviderId", Kind::Text),
    required("resourceId", Kind::Text),
    required("extCps", Kind::ListOf(EXT_CP)),
    optional("extLinkPorts", Kind::ListOf(EXT_LINK_PORT)),
];

const EXT_CP: &[Member] = &[
    required("cpdId", Kind::Text),
    optional("cpConfig", Kind::KeyValuePairs),
];

const EXT_LINK_PORT: &[Member] = &[
    required("id", Kind::Text),
    required("resourceHandle", Kind::KeyValuePairs),
];

/// SOL003 4.4.1.12, as far as it is read.
const EXT_MANAGED_VIRTUAL_LINK: &[Member] = &[
    required("id", Kind::Text),
    required("vnfVirtualLinkDescId", Kind::Text),
    optional("vimConnectionId", Kind::Text),
    optional("resourceProviderId", Kind::Text),
    required("resourceId", Kind::Text),
    optional("vnfLinkPort", Kind::ListOf(EXT_LINK_PORT)),
    optional("extManagedMultisiteVirtualLinkId", Kind::Text),
];

/// SOL003 5.5.3.4 `ScaleInfo`; the range of the level is the VNFD's to say.
const SCALE_INFO: &[Member] = &[
    required("aspectId", Kind::Text),
    optional("vnfdId", Kind::Text),
    required("scaleLevel", Kind::Integer(i64::MIN, i64::MAX)),
];

/// SOL003 5.5.2.3.
pub const CREATE_VNF: Shape = sol(
    "CreateVnfRequest",
    &[
        required("vnfdId", Kind::Text),
        optional("vnfInstanceName", Kind::Text),
        optional("vnfInstanceDescription", Kind::Text),
        optional("metadata", Kind::KeyValuePairs),
    ],
);

/// SOL003 5.5.2.4.
pub const INSTANTIATE_VNF: Shape = sol(
    "InstantiateVnfRequest",
    &[
        required("flavourId", Kind::Text),
        optional("instantiationLevelId", Kind::Text),
        optional("extVirtualLinks", Kind::ListOf(EXT_VIRTUAL_LINK)),
        optional(
            "extManagedVirtualLinks",
            Kind::ListOf(EXT_MANAGED_VIRTUAL_LINK),
        ),
        optional("vimConnectionInfo", Kind::MapOf(VIM)),
        optional("localizationLanguage", Kind::Text),
        optional("additionalParams", Kind::KeyValuePairs),
        optional("extensions", Kind::KeyValuePairs),
        optional("vnfConfigurableProperties", Kind::KeyValuePairs),
    ],
);

/// SOL003 5.5.2.5.
pub const SCALE_VNF: Shape = sol(
    "ScaleVnfRequest",
    &[
        required("type", Kind::Word(&["SCALE_OUT", "SCALE_IN"])),
        required("aspectId", Kind::Text),
        optional("numberOfSteps", Kind::Integer(1, i64::MAX)),
        optional("additionalParams", Kind::KeyValuePairs),
    ],
);

/// SOL003 5.5.2.6.
pub const SCALE_VNF_TO_LEVEL: Shape = Shape {
    one_of: &["instantiationLevelId", "scaleInfo"],
    ..sol(
        "ScaleVnfToLevelRequest",
        &[
            optional("instantiationLevelId", Kind::Text),
            optional("scaleInfo", Kind::ListOf(SCALE_INFO)),
            optional("additionalParams", Kind::KeyValuePairs),
        ],
    )
};

/// SOL003 5.5.2.8.
pub const TERMINATE_VNF: Shape = sol(
    "TerminateVnfRequest",
    &[
        required("terminationType", Kind::Word(&["FORCEFUL", "GRACEFUL"])),
        optional(
            "gracefulTerminationTimeout",
            Kind::Integer(0, u32::MAX as i64),
        ),
        optional("additionalParams", Kind::KeyValuePairs),
    ],
);

/// SOL003 5.5.2.9, with `vnfcInstanceId` and `healScript` of SOL002.
pub const HEAL_VNF: Shape = sol(
    "HealVnfRequest",
    &[
        optional("cause", Kind::Text),
        optional("vnfcInstanceId", Kind::Texts),
        optional("healScript", Kind::Text),
        optional("additionalParams", Kind::KeyValuePairs),
    ],
);

/// SOL003 5.5.2.11a.
pub const CHANGE_CURRENT_VNF_PKG: Shape = sol(
    "ChangeCurrentVnfPkgRequest",
    &[
        required("vnfdId", Kind::Text),
        optional("extVirtualLinks", Kind::ListOf(EXT_VIRTUAL_LINK)),
        optional(
            "extManagedVirtualLinks",
            Kind::ListOf(EXT_MANAGED_VIRTUAL_LINK),
        ),
        optional("vimConnectionInfo", Kind::MapOf(VIM_PATCH)),
        optional("additionalParams", Kind::KeyValuePairs),
        optional("extensions", Kind::KeyValuePairs),
        optional("vnfConfigurableProperties", Kind::KeyValuePairs),
    ],
);

/// SOL003 5.5.2.12: a merge patch.
pub const VNF_INFO_MODIFICATION: Shape = Shape {
    patch: true,
    ..sol(
        "VnfInfoModificationRequest",
        &[
            optional("vnfInstanceName", Kind::Text),
            optional("vnfInstanceDescription", Kind::Text),
            optional("vnfdId", Kind::Text),
            optional("vnfPkgId", Kind::Text),
            optional("vnfConfigurableProperties", Kind::KeyValuePairs),
            optional("metadata", Kind::KeyValuePairs),
            optional("extensions", Kind::KeyValuePairs),
            optional("vimConnectionInfo", Kind::MapOf(VIM_PATCH)),
        ],
    )
};

/// SOL003 5.5.2.14.
pub const CANCEL_MODE: Shape = sol(
    "CancelMode",
    &[required(
        "cancelMode",
        Kind::Word(&["GRACEFUL", "FORCEFUL"]),
    )],
);

/// SOL005 9.5.2.2.
pub const CREATE_VNF_PKG_INFO: Shape = sol(
    "CreateVnfPkgInfoRequest",
    &[optional("userDefinedData", Kind::KeyValuePairs)],
);

/// SOL005 9.5.2.3.
pub const VNF_PKG_INFO_MODIFICATIONS: Shape = sol(
    "VnfPkgInfoModifications",
    &[
        optional("operationalState", Kind::Word(&["ENABLED", "DISABLED"])),
        optional("userDefinedData", Kind::KeyValuePairs),
    ],
);

/// POST `/cairn/v1/vims`.
pub const VIM_REGISTRATION: Shape = Shape {
    unknown: Unknown::Refused,
    ..sol(
        "a VIM's registration",
        &[
            optional("vimId", Kind::Text),
            required("vimType", Kind::Text),
            required(
                "interfaceInfo",
                Kind::Object(&[
                    required("endpoint", Kind::Text),
                    optional("ssl_ca_cert", Kind::Text),
                ]),
            ),
            optional("accessInfo", ACCESS_INFO),
        ],
    )
};

/// PATCH `/cairn/v1/vims/{vimId}`: each part that is given replaces the old one.
pub const VIM_CHANGE: Shape = Shape {
    unknown: Unknown::Refused,
    ..sol(
        "a change of a VIM",
        &[
            optional(
                "interfaceInfo",
                Kind::Object(&[
                    required("endpoint", Kind::Text),
                    optional("ssl_ca_cert", Kind::Text),
                ]),
            ),
            optional("accessInfo", ACCESS_INFO),
        ],
    )
};

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn refused(shape: &Shape, body: &Value) -> String {
        let problem = shape.check(body.as_object().unwrap().clone()).unwrap_err();
        assert_eq!(problem.status, 422);
        problem.detail
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (shape, body, says) in [
            (&CREATE_VNF, json!({}), "vnfdId is missing"),
            (&CREATE_VNF, json!({"vnfdId": null}), "vnfdId is missing"),
            (&CREATE_VNF, json!({"vnfdId": 7}), "vnfdId must be a text"),
            (
                &SCALE_VNF,
                json!({"type": "OUT", "aspectId": "a"}),
                "type must be one of SCALE_OUT, SCALE_IN",
            ),
            (
                &SCALE_VNF,
                json!({"type": "SCALE_IN", "aspectId": "a", "numberOfSteps": 0}),
                "numberOfSteps must be a whole number, 1 or more",
            ),
            (
                &SCALE_VNF,
                json!({"type": "SCALE_IN", "aspectId": "a", "numberOfSteps": 1.5}),
                "numberOfSteps must be",
            ),
            (
                &SCALE_VNF_TO_LEVEL,
                json!({}),
                "exactly one of instantiationLevelId, scaleInfo",
            ),
            (
                &SCALE_VNF_TO_LEVEL,
                json!({"instantiationLevelId": "l", "scaleInfo": []}),
                "exactly one of",
            ),
            (
                &SCALE_VNF_TO_LEVEL,
                json!({"scaleInfo": [{"aspectId": "a"}]}),
                "scaleInfo/0/scaleLevel is missing",
            ),
            (
                &INSTANTIATE_VNF,
                json!({"flavourId": "f", "vimConnectionInfo": []}),
                "vimConnectionInfo must be an object",
            ),
            (
                &INSTANTIATE_VNF,
                json!({"flavourId": "f", "vimConnectionInfo": {"v": {}}}),
                "vimConnectionInfo/v/vimType is missing",
            ),
            (
                &HEAL_VNF,
                json!({"vnfcInstanceId": ["a", 1]}),
                "vnfcInstanceId/1 must be a text",
            ),
            (
                &TERMINATE_VNF,
                json!({"terminationType": "GRACEFUL", "gracefulTerminationTimeout": -1}),
                "from 0 to 4294967295",
            ),
            (
                &VIM_REGISTRATION,
                json!({"vimType": "kubernetes", "interfaceInfo": {"endpoint": "https://a", "ca": ""}}),
                "interfaceInfo/ca is not a member",
            ),
            (
                &INSTANTIATE_VNF,
                json!({"flavourId": "f", "vimConnectionInfo":
                    {"v": {"vimType": "t", "accessInfo": {"bearer_token": 5}}}}),
                "vimConnectionInfo/v/accessInfo/bearer_token must be a text",
            ),
        ] {
            let detail = refused(shape, &body);
            assert!(detail.contains(says), "{detail} should say {says}");
        }
    }

    #[test]
    fn newer_attributes_are_ignored_and_reported() {
        let body = json!({"flavourId": "f", "newer": 1, "localizationLanguage": null,
            "vimConnectionInfo": {"v": {"vimType": "t", "zone": "z"}}});
        let checked = INSTANTIATE_VNF
            .check(body.as_object().unwrap().clone())
            .unwrap();
        assert_eq!(checked.unknown, ["newer", "vimConnectionInfo/v/zone"]);
        assert!(!checked.body.contains_key("localizationLanguage"));
    }

    #[test]
    fn a_patch_keeps_its_nulls() {
        let body = json!({"vnfInstanceName": null, "vimConnectionInfo": {"v": null, "w": {"accessInfo": {}}}});
        let checked = VNF_INFO_MODIFICATION
            .check(body.as_object().unwrap().clone())
            .unwrap();
        assert_eq!(Value::Object(checked.body), body);
    }
}
