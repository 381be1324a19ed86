//! GET `vnf_lcm_op_occs/{vnfLcmOpOccId}` with its journal.

use axum::extract::{Path, State};
use cairn_api_types::cairn::CairnVnfLcmOpOcc;

use crate::answer::{Answer, ok};
use crate::app::App;
use crate::vnflcm::op_occ_row;

pub(super) async fn op_occ(State(app): State<App>, Path(id): Path<String>) -> Answer {
    let row = op_occ_row(&app, &id).await?;
    let owner = app.work.owner(&row.state.id).await?;
    Ok(ok(&CairnVnfLcmOpOcc::of(
        &row.state,
        owner.as_ref(),
        &app.settings.public_url,
    )))
}
