//! GET `vnf_instances/{vnfInstanceId}`, as it is or as it was at a moment.

use axum::extract::{Path, RawQuery, State};
use cairn_api_types::cairn::CairnVnfInstance;
use cairn_domain::ids::VnfInstanceId;
use cairn_domain::ports::Moment;
use cairn_domain::time::Timestamp;

use crate::answer::{Answer, ok};
use crate::app::{App, tenant};
use crate::problem::ApiError;
use crate::query::{Query, bad};

pub(super) async fn vnf_instance(
    State(app): State<App>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let absent = || ApiError::not_found("VNF instance", &id);
    let moment = moment(&Query::parse(query.as_deref(), &["at", "position"])?)?;
    let parsed = VnfInstanceId::parse(&id).map_err(|_| absent())?;
    let row = match moment {
        None => app.reads.instance(&tenant(), &parsed).await?,
        Some(moment) => app.replay.instance_at(&tenant(), &parsed, moment).await?,
    };
    let row = row.ok_or_else(absent)?;
    Ok(ok(&CairnVnfInstance::of(&row, &app.settings.public_url)))
}

fn moment(query: &Query) -> Result<Option<Moment>, ApiError> {
    match (query.value("at")?, query.value("position")?) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(bad("at and position exclude each other")),
        // A plus sign that was not encoded has become a blank; no date-time holds a blank.
        (Some(at), None) => Timestamp::parse(&at.replace(' ', "+"))
            .map(|at| Some(Moment::At(at)))
            .map_err(|error| bad(format!("at: {error}"))),
        (None, Some(position)) => position
            .parse()
            .map(|position| Some(Moment::Position(position)))
            .map_err(|_| bad("position must be a whole number")),
    }
}
