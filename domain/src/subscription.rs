//! Subscriptions to lifecycle change notifications (SOL003 5.5.2.15 and 5.5.2.16).

pub mod filter;
pub mod request;

use crate::ids::{SubscriptionId, Tenant};
use crate::secret::SecretRef;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How much a notification holds (SOL003 5.5.4.? `LcmOpOccNotificationVerbosityType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verbosity {
    /// Everything.
    #[default]
    Full,
    /// Without the lists of affected resources.
    Short,
}

/// How a callback is authenticated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum CallbackAuth {
    /// Nothing is sent.
    None,
    /// HTTP BASIC (RFC 7617).
    Basic {
        /// In the clear, yet never shown.
        user_name: String,
        /// In the vault.
        password: SecretRef,
    },
}

/// Events of a subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum LccnSubscriptionEvent {
    /// It was created; from here it is owed what matches its filter.
    SubscriptionCreated {
        /// When.
        at: Timestamp,
        /// Its id.
        id: SubscriptionId,
        /// Who asked.
        by: String,
        /// For whom.
        tenant: Tenant,
        /// Where notifications go.
        callback_uri: String,
        /// `LifecycleChangeNotificationsFilter`, as it was checked.
        filter: Option<Value>,
        /// How much they hold.
        verbosity: Verbosity,
        /// How the callback is authenticated.
        auth: CallbackAuth,
    },
    /// It was deleted; what was queued for it is dropped.
    SubscriptionDeleted {
        /// When.
        at: Timestamp,
        /// Who asked.
        by: String,
        /// For whom.
        tenant: Tenant,
    },
}

impl LccnSubscriptionEvent {
    /// The event's name, as it is stored and shown.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::SubscriptionCreated { .. } => "SubscriptionCreated",
            Self::SubscriptionDeleted { .. } => "SubscriptionDeleted",
        }
    }

    /// When it happened.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match self {
            Self::SubscriptionCreated { at, .. } | Self::SubscriptionDeleted { at, .. } => *at,
        }
    }
}

/// State of a subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LccnSubscription {
    /// Its id.
    pub id: SubscriptionId,
    /// Whose it is.
    pub tenant: Tenant,
    /// When it was created.
    pub created_at: Timestamp,
    /// Where notifications go.
    pub callback_uri: String,
    /// What it wants to hear of.
    pub filter: Option<Value>,
    /// How much they hold.
    pub verbosity: Verbosity,
    /// How the callback is authenticated.
    pub auth: CallbackAuth,
    /// It was deleted.
    pub deleted: bool,
}

/// Commands of a subscription.
#[derive(Clone, Debug, PartialEq)]
pub enum LccnSubscriptionCommand {
    /// Create it; the callback was tested before.
    Create {
        /// Now.
        at: Timestamp,
        /// A fresh id.
        id: SubscriptionId,
        /// Who asks.
        by: String,
        /// For whom.
        tenant: Tenant,
        /// Where notifications go.
        callback_uri: String,
        /// What is wanted.
        filter: Option<Value>,
        /// How much.
        verbosity: Verbosity,
        /// How to authenticate.
        auth: CallbackAuth,
    },
    /// Delete it.
    Delete {
        /// Now.
        at: Timestamp,
        /// Who asks.
        by: String,
        /// For whom.
        tenant: Tenant,
    },
}

/// Why a command was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// There is no such subscription.
    #[error("there is no such subscription")]
    NotFound,
    /// The id is taken.
    #[error("the subscription exists already")]
    Exists,
}

/// Turns a command into facts, or refuses it.
///
/// # Errors
///
/// [`Rejection`] when the subscription does not exist, or exists already.
pub fn decide(
    state: Option<&LccnSubscription>,
    command: LccnSubscriptionCommand,
) -> Result<Vec<LccnSubscriptionEvent>, Rejection> {
    match (state, command) {
        (
            None,
            LccnSubscriptionCommand::Create {
                at,
                id,
                by,
                tenant,
                callback_uri,
                filter,
                verbosity,
                auth,
            },
        ) => Ok(vec![LccnSubscriptionEvent::SubscriptionCreated {
            at,
            id,
            by,
            tenant,
            callback_uri,
            filter,
            verbosity,
            auth,
        }]),
        (Some(_), LccnSubscriptionCommand::Create { .. }) => Err(Rejection::Exists),
        (Some(living), LccnSubscriptionCommand::Delete { at, by, tenant }) if !living.deleted => {
            Ok(vec![LccnSubscriptionEvent::SubscriptionDeleted {
                at,
                by,
                tenant,
            }])
        }
        (Some(_) | None, LccnSubscriptionCommand::Delete { .. }) => Err(Rejection::NotFound),
    }
}

/// Records a fact.
#[must_use]
pub fn evolve(
    state: Option<LccnSubscription>,
    event: &LccnSubscriptionEvent,
) -> Option<LccnSubscription> {
    match event {
        LccnSubscriptionEvent::SubscriptionCreated {
            at,
            id,
            tenant,
            callback_uri,
            filter,
            verbosity,
            auth,
            by: _,
        } => Some(LccnSubscription {
            id: id.clone(),
            tenant: tenant.clone(),
            created_at: *at,
            callback_uri: callback_uri.clone(),
            filter: filter.clone(),
            verbosity: *verbosity,
            auth: auth.clone(),
            deleted: false,
        }),
        LccnSubscriptionEvent::SubscriptionDeleted { .. } => {
            state.map(|subscription| LccnSubscription {
                deleted: true,
                ..subscription
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created() -> LccnSubscriptionEvent {
        LccnSubscriptionEvent::SubscriptionCreated {
            at: Timestamp::from_millis(0),
            id: SubscriptionId::parse("s").unwrap(),
            by: "anonymous".into(),
            tenant: Tenant::default_tenant(),
            callback_uri: "https://nfvo.example/cb".into(),
            filter: None,
            verbosity: Verbosity::Full,
            auth: CallbackAuth::None,
        }
    }

    #[test]
    fn a_deleted_subscription_is_not_found() {
        let delete = || LccnSubscriptionCommand::Delete {
            at: Timestamp::from_millis(1),
            by: "anonymous".into(),
            tenant: Tenant::default_tenant(),
        };
        assert_eq!(decide(None, delete()), Err(Rejection::NotFound));
        let living = evolve(None, &created());
        let gone = decide(living.as_ref(), delete()).unwrap();
        let state = gone.iter().fold(living, evolve);
        assert_eq!(decide(state.as_ref(), delete()), Err(Rejection::NotFound));
    }
}
