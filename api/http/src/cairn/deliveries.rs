//! `subscriptions/{subscriptionId}/deliveries`: what became of the notifications of a subscription.

use axum::extract::{Path, State};
use cairn_api_types::cairn::DeliveryDto;
use cairn_domain::ids::DeliveryId;

use crate::answer::{Answer, accepted, ok};
use crate::app::App;
use crate::problem::ApiError;
use crate::vnflcm::subscription_row;

pub(super) async fn list(State(app): State<App>, Path(id): Path<String>) -> Answer {
    let subscription = subscription_row(&app, &id).await?.state;
    let deliveries = app.deliveries.of_subscription(&subscription.id).await?;
    let shown: Vec<DeliveryDto> = deliveries.into_iter().map(DeliveryDto::from).collect();
    Ok(ok(&shown))
}

/// POST `…/{deliveryId}/resend`.
pub(super) async fn resend(
    State(app): State<App>,
    Path((subscription, delivery)): Path<(String, String)>,
) -> Answer {
    let absent = || ApiError::not_found("delivery", &delivery);
    let subscription = subscription_row(&app, &subscription).await?.state;
    let id = DeliveryId::parse(&delivery).map_err(|_| absent())?;
    if app.deliveries.resend(&subscription.id, &id).await? {
        return Ok(accepted());
    }
    Err(absent())
}
