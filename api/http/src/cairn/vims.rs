//! `vims`: clusters that instances may name by `vimId`.

use axum::extract::{Path, State};
use cairn_api_types::cairn::VimDto;
use cairn_api_types::request::{VIM_CHANGE, VIM_REGISTRATION};
use cairn_domain::ids::VimId;
use cairn_domain::secret::{SealedSecret, SecretRef};
use cairn_domain::vim::{VimChange, VimConnectionInfo, seal_access};
use serde_json::{Map, Value};

use crate::answer::{Answer, created, no_content, ok};
use crate::app::App;
use crate::body::JsonBody;
use crate::problem::ApiError;

pub(super) async fn register(State(app): State<App>, body: JsonBody) -> Answer {
    let body = body.shaped(&VIM_REGISTRATION)?;
    let (id, info, secrets) = parse(&app, body)?;
    app.vims
        .register(id.clone(), info.clone(), secrets, app.clock.now())
        .await?;
    Ok(created(
        &app.settings.public_url.vim(id.as_str()),
        &VimDto::of(&id, &info),
    ))
}

pub(super) async fn list(State(app): State<App>) -> Answer {
    let vims: Vec<VimDto> = app
        .vims
        .list()
        .await?
        .iter()
        .map(|(id, info)| VimDto::of(id, info))
        .collect();
    Ok(ok(&vims))
}

pub(super) async fn read(State(app): State<App>, Path(id): Path<String>) -> Answer {
    let parsed = vim_id(&id)?;
    let info = app
        .vims
        .get(&parsed)
        .await?
        .ok_or_else(|| ApiError::not_found("VIM", &id))?;
    Ok(ok(&VimDto::of(&parsed, &info)))
}

/// New address or credentials, also while instances use it.
pub(super) async fn change(
    State(app): State<App>,
    Path(id): Path<String>,
    body: JsonBody,
) -> Answer {
    let id = vim_id(&id)?;
    let mut body = body.shaped(&VIM_CHANGE)?;
    if body.is_empty() {
        let detail = "nothing to change; allowed: interfaceInfo, accessInfo";
        return Err(ApiError::new(422, detail));
    }
    let secrets = seal(&app, &mut body);
    let mut part = |name: &str| match body.remove(name) {
        Some(Value::Object(members)) => Some(members),
        Some(_) | None => None,
    };
    let change = VimChange {
        interface_info: part("interfaceInfo"),
        access_info: part("accessInfo"),
    };
    let info = app.vims.change(&id, change, secrets).await?;
    Ok(ok(&VimDto::of(&id, &info)))
}

pub(super) async fn remove(State(app): State<App>, Path(id): Path<String>) -> Answer {
    app.vims.remove(&vim_id(&id)?).await?;
    Ok(no_content())
}

fn vim_id(text: &str) -> Result<VimId, ApiError> {
    VimId::parse(text).map_err(|_| ApiError::not_found("VIM", text))
}

/// Seals the credentials and reads the rest, so that nothing below ever sees them.
fn parse(
    app: &App,
    mut body: Map<String, Value>,
) -> Result<(VimId, VimConnectionInfo, Vec<SealedSecret>), ApiError> {
    let id = match body.get("vimId").and_then(Value::as_str) {
        Some(id) => id.to_owned(),
        None => app.ids.fresh(),
    };
    let id = VimId::parse(id).map_err(|error| ApiError::new(422, error.to_string()))?;
    body.insert("vimId".to_owned(), Value::String(id.to_string()));
    let secrets = seal(app, &mut body);
    let info = VimConnectionInfo::parse(&Value::Object(body))
        .map_err(|error| ApiError::new(422, error.to_string()))?;
    Ok((id, info, secrets))
}

fn seal(app: &App, body: &mut Map<String, Value>) -> Vec<SealedSecret> {
    match body.get_mut("accessInfo") {
        Some(access) => seal_access(access, &mut || SecretRef(app.ids.fresh())),
        None => Vec::new(),
    }
}
