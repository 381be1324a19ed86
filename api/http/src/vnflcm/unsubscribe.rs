//! DELETE `subscriptions/{subscriptionId}` (SOL003 5.4.19.3.5).

use axum::extract::{Path, State};
use cairn_domain::ids::SubscriptionId;
use cairn_domain::ports::{Accepted, Request};

use super::unexpected;
use crate::answer::{Answer, no_content};
use crate::app::{App, Asker};
use crate::problem::ApiError;

pub(super) async fn unsubscribe(
    State(app): State<App>,
    Path(id): Path<String>,
    Asker(caller): Asker,
) -> Answer {
    let parsed =
        SubscriptionId::parse(&id).map_err(|_| ApiError::not_found("subscription", &id))?;
    match app
        .commands
        .execute(caller, Request::Unsubscribe(parsed))
        .await?
    {
        Accepted::Done | Accepted::Subscription(_) => Ok(no_content()),
        other => Err(unexpected(&other)),
    }
}
