//! What of a body is shown to users: never a secret, and nothing of `accessInfo`.

use cairn_domain::secret::members_without_secrets;
use cairn_domain::vim::VIM_TYPES;
use serde_json::{Map, Value, json};

/// The members without secrets and without `accessInfo`, at any depth.
#[must_use]
pub fn members(members: &Map<String, Value>) -> Map<String, Value> {
    let mut shown = members_without_secrets(members);
    shown.remove("accessInfo");
    shown.values_mut().for_each(drop_access);
    shown
}

/// The same for any value.
#[must_use]
pub fn value(value: &Value) -> Value {
    let mut shown = cairn_domain::secret::without_secrets(value);
    drop_access(&mut shown);
    shown
}

fn drop_access(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("accessInfo");
            members.values_mut().for_each(drop_access);
        }
        Value::Array(entries) => entries.iter_mut().for_each(drop_access),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A merge patch as `VnfInfoModifications` (SOL003 5.5.2.12a): what was removed is left out, for the type has no
/// way to say it, and an entry of `vimConnectionInfo` that only changed a part carries the type it must carry.
#[must_use]
pub fn changed_info(changes: &Map<String, Value>) -> Map<String, Value> {
    let mut shown = members(changes);
    shown.retain(|_, member| !member.is_null());
    if let Some(Value::Object(vims)) = shown.get_mut("vimConnectionInfo") {
        vims.retain(|_, vim| vim.is_object());
        for vim in vims.values_mut().filter_map(Value::as_object_mut) {
            vim.retain(|_, member| !member.is_null());
            vim.entry("vimType").or_insert_with(|| json!(VIM_TYPES[0]));
        }
    }
    shown.retain(|_, member| member.as_object().is_none_or(|m| !m.is_empty()));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_info_and_secrets_are_shown_nowhere() {
        let body = json!({
            "vimConnectionInfo": {"v": {"vimType": "t", "accessInfo": {"client_certificate": "PEM"}}},
            "additionalParams": {"dbPassword": {"$secret": "r1"}, "list": [{"accessInfo": 1}], "n": 1},
        });
        assert_eq!(
            value(&body),
            json!({"vimConnectionInfo": {"v": {"vimType": "t"}}, "additionalParams": {"list": [{}], "n": 1}})
        );
    }

    #[test]
    fn a_patch_of_credentials_is_told_without_them() {
        let changes = json!({"vimConnectionInfo": {"v": {"accessInfo": {"bearer_token": {"$secret": "r"}}}, "w": null},
            "vnfInstanceName": null, "metadata": {"a": 1}});
        assert_eq!(
            Value::Object(changed_info(changes.as_object().unwrap())),
            json!({"vimConnectionInfo": {"v": {"vimType": "ETSINFV.KUBERNETES.V_1"}}, "metadata": {"a": 1}})
        );
    }
}
