//! `package_content` (SOL005 9.4.5, SOL003 10.4.5) and `artifacts` (SOL003 10.4.6).

use axum::extract::{Path, Request, State};
use axum::http::HeaderMap;

use super::{package_id, record};
use crate::answer::{Answer, accepted, bytes};
use crate::app::App;
use crate::body::{CSAR_LIMIT, must_be, read};
use crate::frame::must_accept;
use crate::problem::ApiError;

/// PUT: the CSAR is checked before the answer; what is wrong with it stands in the record.
pub(super) async fn upload(
    State(app): State<App>,
    Path(id): Path<String>,
    request: Request,
) -> Answer {
    let headers = request.headers().clone();
    let body = request.into_body();
    let parsed = package_id(&id)?;
    must_be(&headers, &["application/zip", "application/octet-stream"])?;
    // Before the body is kept: a quarter of a gigabyte for a package that does not exist helps nobody.
    record(&app, &id).await?;
    let csar = read(&headers, body, CSAR_LIMIT).await?;
    if csar.is_empty() {
        return Err(ApiError::new(400, "the body is empty; a CSAR is expected"));
    }
    app.packages.upload(&parsed, csar.into()).await?;
    Ok(accepted())
}

/// GET of the whole CSAR.
pub(super) async fn download(
    State(app): State<App>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Answer {
    must_accept(&headers, &["application/zip"])?;
    Ok(bytes(
        "application/zip",
        app.packages.content(&package_id(&id)?).await?,
    ))
}

/// GET of one file of it.
pub(super) async fn artifact(
    State(app): State<App>,
    Path((id, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Answer {
    must_accept(&headers, &["application/octet-stream"])?;
    let record = record(&app, &id).await?;
    if record.checksum.is_some() && !record.artifacts.iter().any(|file| file.path == path) {
        return Err(ApiError::not_found(
            "file of this name in the package:",
            &path,
        ));
    }
    Ok(bytes(
        "application/octet-stream",
        app.packages.artifact(&record.id, &path).await?,
    ))
}
