//! The status of resource quotas.

use serde_json::{Value, json};

use super::Pass;
use super::act::MANAGER;
use crate::admission;
use crate::json;

pub(super) fn run(pass: &mut Pass<'_>) {
    let kind = pass.state.kinds.get("resourcequotas");
    for quota in pass.list("resourcequotas") {
        let hard = json::at(&quota, "/spec/hard").clone();
        let mut used = json!({});
        let counted = admission::usage(pass.state, &quota);
        for key in hard.as_object().into_iter().flatten().map(|(key, _)| key) {
            let number = counted.get(key).copied().unwrap_or(0);
            used[key] = Value::from(number.to_string());
        }
        pass.set_status(&kind, &quota, MANAGER, json!({"hard": hard, "used": used}));
    }
}
