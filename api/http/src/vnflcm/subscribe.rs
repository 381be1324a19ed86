//! POST `subscriptions` (SOL003 5.4.18.3.1).

use axum::extract::State;
use cairn_api_types::lccn_subscription::LccnSubscriptionDto;
use cairn_domain::ports::{Accepted, Request};
use cairn_domain::subscription::request::parse_subscription;

use super::{read, unexpected};
use crate::answer::{Answer, created, see_other};
use crate::app::{App, Asker};
use crate::body::JsonBody;

pub(super) async fn subscribe(
    State(app): State<App>,
    Asker(caller): Asker,
    JsonBody(body): JsonBody,
) -> Answer {
    // Refused here already, before the callback is tried.
    parse_subscription(&body)?;
    let url = &app.settings.public_url;
    match app
        .commands
        .execute(caller, Request::Subscribe { body })
        .await?
    {
        Accepted::Subscription(id) => {
            let row = read::subscription_row(&app, id.as_str()).await?;
            let body = LccnSubscriptionDto::of(&row.state, url);
            Ok(created(&url.subscription(id.as_str()), &body))
        }
        Accepted::SameSubscription(id) => Ok(see_other(&url.subscription(id.as_str()))),
        other => Err(unexpected(&other)),
    }
}
