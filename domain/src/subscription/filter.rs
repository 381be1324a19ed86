//! Which notifications a subscription wants (SOL003 5.5.3.12 `LifecycleChangeNotificationsFilter`).
//!
//! All attributes that are present must match; an array matches when one of its entries does.

use crate::announce::Announcement;
use crate::ids::VnfInstanceId;
use crate::operation::Operation;
use crate::vnf_instance::VnfProduct;
use serde_json::Value;

/// Values of `notificationTypes`.
pub const NOTIFICATION_TYPES: [&str; 3] = [
    "VnfLcmOperationOccurrenceNotification",
    "VnfIdentifierCreationNotification",
    "VnfIdentifierDeletionNotification",
];

/// What a filter looks at: the announcement, and the instance as it was at that event.
#[derive(Clone, Copy, Debug)]
pub struct EnvelopeFacts<'a> {
    /// What is told.
    pub announcement: Announcement,
    /// The operation, where one is told of.
    pub operation: Option<Operation>,
    /// The instance.
    pub instance: &'a VnfInstanceId,
    /// Its `vnfInstanceName`.
    pub instance_name: Option<&'a str>,
    /// What it is an instance of.
    pub product: &'a VnfProduct,
}

/// The `notificationType` of an announcement.
#[must_use]
pub fn notification_type(announcement: Announcement) -> &'static str {
    match announcement {
        Announcement::OperationEntered(_, _) => NOTIFICATION_TYPES[0],
        Announcement::IdentifierCreated => NOTIFICATION_TYPES[1],
        Announcement::IdentifierDeleted => NOTIFICATION_TYPES[2],
    }
}

/// Whether a filter, checked when it was taken, lets this notification through. No filter: everything.
#[must_use]
pub fn matches(filter: Option<&Value>, facts: &EnvelopeFacts<'_>) -> bool {
    let Some(filter) = filter else { return true };
    holds(
        filter,
        "notificationTypes",
        notification_type(facts.announcement),
    ) && operation_matches(filter, facts)
        && instance_matches(&filter["vnfInstanceSubscriptionFilter"], facts)
}

/// The attribute is absent, or one of its entries is this text.
fn holds(object: &Value, attribute: &str, text: &str) -> bool {
    object
        .get(attribute)
        .is_none_or(|entries| listed(entries, text))
}

fn listed(entries: &Value, text: &str) -> bool {
    entries
        .as_array()
        .is_some_and(|entries| entries.iter().any(|entry| entry == text))
}

fn operation_matches(filter: &Value, facts: &EnvelopeFacts<'_>) -> bool {
    match facts.announcement {
        Announcement::OperationEntered(state, _) => {
            holds(filter, "operationStates", state.as_str())
                && facts
                    .operation
                    .is_none_or(|operation| holds(filter, "operationTypes", operation.as_str()))
        }
        // Who asks for operations alone does not hear of identifiers, unless they are asked for by name.
        Announcement::IdentifierCreated | Announcement::IdentifierDeleted => {
            let operations_only =
                filter.get("operationTypes").is_some() || filter.get("operationStates").is_some();
            !operations_only || filter.get("notificationTypes").is_some()
        }
    }
}

fn instance_matches(filter: &Value, facts: &EnvelopeFacts<'_>) -> bool {
    holds(filter, "vnfdIds", facts.product.vnfd_id.as_str())
        && holds(filter, "vnfInstanceIds", facts.instance.as_str())
        && filter
            .get("vnfInstanceNames")
            .is_none_or(|names| facts.instance_name.is_some_and(|name| listed(names, name)))
        && one_of(filter, "vnfProductsFromProviders", |provider| {
            provider["vnfProvider"] == *facts.product.vnf_provider
                && one_of(provider, "vnfProducts", |product| {
                    product_matches(product, facts.product)
                })
        })
}

fn product_matches(product: &Value, is: &VnfProduct) -> bool {
    product["vnfProductName"] == *is.vnf_product_name
        && one_of(product, "versions", |version| {
            version["vnfSoftwareVersion"] == *is.vnf_software_version
                && holds(version, "vnfdVersions", &is.vnfd_version)
        })
}

/// The attribute is absent, or one of its entries passes.
fn one_of(object: &Value, attribute: &str, passes: impl Fn(&Value) -> bool) -> bool {
    object.get(attribute).is_none_or(|entries| {
        entries
            .as_array()
            .is_some_and(|entries| entries.iter().any(passes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::announce::NotificationStatus;
    use crate::ids::{VnfPkgId, VnfdId};
    use crate::operation::OperationState;
    use serde_json::json;

    fn product() -> VnfProduct {
        VnfProduct {
            vnfd_id: VnfdId::parse("vnfd-1").unwrap(),
            vnf_pkg_id: VnfPkgId::parse("pkg-1").unwrap(),
            vnf_provider: "Acme".into(),
            vnf_product_name: "Router".into(),
            vnf_software_version: "1.0".into(),
            vnfd_version: "2.0".into(),
        }
    }

    fn wants(filter: &Value, announcement: Announcement) -> bool {
        let instance = VnfInstanceId::parse("i-1").unwrap();
        let product = product();
        matches(
            Some(filter),
            &EnvelopeFacts {
                announcement,
                operation: Some(Operation::Scale),
                instance: &instance,
                instance_name: Some("west"),
                product: &product,
            },
        )
    }

    const COMPLETED: Announcement =
        Announcement::OperationEntered(OperationState::Completed, NotificationStatus::Result);

    #[test]
    fn every_attribute_lets_through_and_keeps_away() {
        let inside =
            |name: &str, value: Value| json!({"vnfInstanceSubscriptionFilter": {name: value}});
        let versions = |v: &str| {
            json!([{"vnfProvider": "Acme", "vnfProducts": [{"vnfProductName": "Router", "versions": [
                {"vnfSoftwareVersion": "1.0", "vnfdVersions": [v]}]}]}])
        };
        for (filter, expected) in [
            (json!({}), true),
            (
                json!({"notificationTypes": ["VnfLcmOperationOccurrenceNotification"]}),
                true,
            ),
            (
                json!({"notificationTypes": ["VnfIdentifierCreationNotification"]}),
                false,
            ),
            (json!({"operationTypes": ["HEAL", "SCALE"]}), true),
            (json!({"operationTypes": ["HEAL"]}), false),
            (json!({"operationStates": ["COMPLETED"]}), true),
            (json!({"operationStates": ["FAILED"]}), false),
            (inside("vnfdIds", json!(["vnfd-1"])), true),
            (inside("vnfdIds", json!([])), false),
            (inside("vnfInstanceIds", json!(["i-2"])), false),
            (inside("vnfInstanceNames", json!(["west", "east"])), true),
            (inside("vnfInstanceNames", json!(["east"])), false),
            (
                inside("vnfProductsFromProviders", json!([{"vnfProvider": "Acme"}])),
                true,
            ),
            (
                inside(
                    "vnfProductsFromProviders",
                    json!([{"vnfProvider": "Other"}]),
                ),
                false,
            ),
            (inside("vnfProductsFromProviders", versions("2.0")), true),
            (inside("vnfProductsFromProviders", versions("3.0")), false),
        ] {
            assert_eq!(wants(&filter, COMPLETED), expected, "{filter}");
        }
    }

    #[test]
    fn who_asks_for_operations_alone_does_not_hear_of_identifiers() {
        let states = json!({"operationStates": ["COMPLETED"]});
        assert!(!wants(&states, Announcement::IdentifierCreated));
        let named = json!({"operationStates": ["COMPLETED"], "notificationTypes": ["VnfIdentifierCreationNotification"]});
        assert!(wants(&named, Announcement::IdentifierCreated));
    }
}
