//! Identifiers. Each is a newtype over text that was checked once, at the edge.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a text is not an identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be 1 to 255 visible characters without '/', got {got:?}")]
pub struct InvalidId {
    /// Name of the identifier's type, as the user knows it.
    pub what: &'static str,
    /// The refused text, shortened to 80 characters.
    pub got: String,
}

fn check(what: &'static str, text: &str) -> Result<(), InvalidId> {
    let legal = !text.is_empty()
        && text.len() <= 255
        && text
            .chars()
            .all(|c| !c.is_control() && !c.is_whitespace() && c != '/');
    if legal {
        return Ok(());
    }
    Err(InvalidId {
        what,
        got: text.chars().take(80).collect(),
    })
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes a text for an identifier.
            ///
            /// # Errors
            ///
            /// [`InvalidId`] when it is empty, longer than 255 bytes, or holds blanks, control characters or `/`.
            pub fn parse(text: impl Into<String>) -> Result<Self, InvalidId> {
                let text = text.into();
                check($what, &text)?;
                Ok(Self(text))
            }

            /// The identifier as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// Identifier of a VNF instance (SOL003 5.5.2.2 `id`).
    VnfInstanceId, "vnfInstanceId"
);
id!(
    /// Identifier of a lifecycle operation occurrence (SOL003 5.5.2.13 `id`).
    VnfLcmOpOccId, "vnfLcmOpOccId"
);
id!(
    /// Identifier of a subscription to lifecycle notifications (SOL003 5.5.2.16 `id`).
    SubscriptionId, "subscriptionId"
);
id!(
    /// Identifier of a VNF descriptor (SOL001 `descriptor_id`).
    VnfdId, "vnfdId"
);
id!(
    /// Identifier of an onboarded VNF package (SOL003 10.5.2.2 `id`).
    VnfPkgId, "vnfPkgId"
);
id!(
    /// Identifier of a VIM, here a Kubernetes cluster.
    VimId, "vimId"
);
id!(
    /// Identifier of a grant (SOL003 9.5.2.3 `id`).
    GrantId, "grantId"
);
id!(
    /// Identifier of one delivery of a notification.
    DeliveryId, "deliveryId"
);
id!(
    /// Who owns the work: later the tenant of the authenticated caller, until then `default`.
    Tenant, "tenant"
);
id!(
    /// Name of one running Cairn process, which holds leases.
    NodeId, "nodeId"
);

impl Tenant {
    /// The tenant of callers while no authentication is set up.
    #[must_use]
    pub fn default_tenant() -> Self {
        Self("default".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_short_visible_text() {
        assert!(VnfInstanceId::parse("2f1c-9").is_ok());
        for bad in ["", "a b", "a/b", "a\n", &"x".repeat(256)] {
            let refused = VnfInstanceId::parse(bad).unwrap_err();
            assert_eq!(refused.what, "vnfInstanceId");
        }
    }
}
