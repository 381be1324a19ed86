//! `LccnSubscription` (SOL003 5.5.2.16). Its authentication is never shown.

use crate::link::Link;
use crate::public_url::PublicUrl;
use cairn_domain::subscription::{LccnSubscription, Verbosity};
use serde::Serialize;
use serde_json::Value;

/// SOL003 5.5.2.16.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LccnSubscriptionDto {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<Value>,
    callback_uri: String,
    verbosity: Verbosity,
    #[serde(rename = "_links")]
    links: Links,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Links {
    #[serde(rename = "self")]
    myself: Link,
}

impl LccnSubscriptionDto {
    /// The subscription as SOL003 shows it.
    #[must_use]
    pub fn of(subscription: &LccnSubscription, url: &PublicUrl) -> Self {
        let LccnSubscription {
            id,
            tenant: _,
            created_at: _,
            callback_uri,
            filter,
            verbosity,
            auth: _,
            deleted: _,
        } = subscription;
        Self {
            id: id.to_string(),
            filter: filter.clone(),
            callback_uri: callback_uri.clone(),
            verbosity: *verbosity,
            links: Links {
                myself: Link::to(url.subscription(id.as_str())),
            },
        }
    }
}
