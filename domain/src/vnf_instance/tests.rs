//! The rules of instances: the DEPLOYFAIL rule cell by cell, PATCH beside a halted operation, what is left.

mod changing;
mod patching;
mod provisioning;
mod remains;

use super::*;
use crate::operation::Params;
use crate::testing::{World, change_params, instantiate_params, levels};
use serde_json::json;

fn terminate() -> Params {
    Params::Terminate {
        forceful: false,
        graceful_timeout_s: None,
    }
}

fn heal() -> Params {
    Params::Heal {
        vnfcs: Vec::new(),
        cause: None,
    }
}

fn change() -> Params {
    change_params(2)
}

fn scale(web: u32) -> Params {
    Params::Scale {
        levels: levels(web),
        aspect_id: "web".into(),
        out: true,
    }
}

fn scale_to_level(web: u32) -> Params {
    Params::ScaleToLevel {
        levels: levels(web),
    }
}

fn modify(changes: &Value) -> Params {
    let changes = changes.as_object().cloned().unwrap_or_default();
    Params::ModifyInfo { changes }
}

fn rename() -> Params {
    modify(&json!({"vnfInstanceName": "new"}))
}
