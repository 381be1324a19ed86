//! A registered VIM, without its credentials.

use crate::shown;
use cairn_domain::ids::VimId;
use cairn_domain::vim::VimConnectionInfo;
use serde::Serialize;
use serde_json::{Map, Value};

/// What POST and GET of `vims` answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VimDto {
    vim_id: String,
    vim_type: String,
    interface_info: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    extra: Map<String, Value>,
}

impl VimDto {
    /// The VIM as it is shown.
    #[must_use]
    pub fn of(id: &VimId, info: &VimConnectionInfo) -> Self {
        let VimConnectionInfo {
            vim_id: _,
            vim_type,
            interface_info,
            access_info: _,
            extra,
        } = info;
        Self {
            vim_id: id.to_string(),
            vim_type: vim_type.clone(),
            interface_info: shown::members(interface_info),
            extra: shown::members(extra),
        }
    }
}
