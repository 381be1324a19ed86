//! GET `vnfd` (SOL003 10.4.4): the entry file as text, or all definitions as a ZIP, as `Accept` says.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use cairn_domain::ports::{OnboardingState, PackageRecord};
use std::io::{Cursor, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::record;
use crate::answer::{Answer, bytes};
use crate::app::App;
use crate::frame::must_accept;
use crate::problem::ApiError;

const TEXT: &str = "text/plain";
const ZIP: &str = "application/zip";

pub(super) async fn vnfd(
    State(app): State<App>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let kind = must_accept(&headers, &[TEXT, ZIP])?;
    let record = record(&app, &id).await?;
    if record.onboarding_state != OnboardingState::Onboarded {
        return Err(ApiError::new(
            409,
            "the package is not ONBOARDED; its VNFD cannot be read yet",
        ));
    }
    if kind == ZIP {
        return Ok(bytes(ZIP, definitions(&app, &record).await?));
    }
    Ok(bytes(TEXT, app.packages.vnfd_yaml(&record.id).await?))
}

/// The files that make up the VNFD, with TOSCA.meta, which names the entry (SOL003 10.4.4.3.2).
async fn definitions(app: &App, record: &PackageRecord) -> Result<Vec<u8>, ApiError> {
    let belongs =
        |path: &str| path.starts_with("Definitions/") || path == "TOSCA-Metadata/TOSCA.meta";
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for file in record.artifacts.iter().filter(|file| belongs(&file.path)) {
        let content = app.packages.artifact(&record.id, &file.path).await?;
        archive
            .start_file(file.path.as_str(), options)
            .and_then(|()| archive.write_all(&content).map_err(Into::into))
            .map_err(|error| ApiError::new(500, format!("the VNFD cannot be packed: {error}")))?;
    }
    let written = archive
        .finish()
        .map_err(|error| ApiError::new(500, format!("the VNFD cannot be packed: {error}")))?;
    Ok(written.into_inner())
}
