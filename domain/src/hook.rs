//! Hooks: what a package lets run beside an operation, as Kubernetes Jobs (SOL001 `Vnflcm` interface).
//!
//! The VNFD names them by operation and moment. Each of their items is a step of its own with a Job of its own, so
//! that a retry repeats only what is not done.

use crate::ids::VimId;
use crate::object::{Body, ObjectRef};
use crate::operation::Operation;
use crate::vim::VIM_TYPES;
use crate::vnfd::is_sensitive;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Label of a hook's Job: the hook's name. It tells these Jobs from the objects of the VNF.
pub const LABEL: &str = "cairn.dev/hook";
/// Annotation of a hook's Job: its item.
pub const ITEM: &str = "cairn.dev/hook-item";
/// Longest result of a hook, in bytes: what a kubelet keeps of a termination message.
pub const RESULT_LIMIT: usize = 4096;

/// Operations that may have hooks, by the name that begins the names of their hooks.
pub const OPERATIONS: [&str; 6] = [
    "instantiate",
    "scale",
    "scale_to_level",
    "heal",
    "terminate",
    "change_vnfpkg",
];

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Moment {
    /// Between error points 2 and 3, before the first write.
    Start,
    /// Between error points 5 and 6, when all is ready.
    End,
    /// Before the first undo step.
    RollbackStart,
    /// After the last undo step.
    RollbackEnd,
}

impl Moment {
    /// All of them, with the endings of the hooks' names; the longer ones come first.
    pub const ENDINGS: [(&'static str, Self); 4] = [
        ("_rollback_start", Self::RollbackStart),
        ("_rollback_end", Self::RollbackEnd),
        ("_start", Self::Start),
        ("_end", Self::End),
    ];

    /// Whether it belongs to a rollback.
    #[must_use]
    pub fn is_rollback(self) -> bool {
        matches!(self, Self::RollbackStart | Self::RollbackEnd)
    }
}

/// What a hook runs for, one Job each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Items {
    /// Once, without an item.
    #[default]
    Once,
    /// For each of these.
    Listed(Vec<String>),
    /// For each VDU that has a workload.
    PerVdu,
    /// For each VNFC that exists when the plan is made.
    PerVnfc {
        /// Only those of this VDU.
        vdu: Option<String>,
    },
}

/// Where a hook's result is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResultFrom {
    /// The termination message, if there is one.
    #[default]
    Optional,
    /// The termination message, which must be there.
    TerminationMessage,
    /// This Secret, which must be there once the Job succeeded. Its content reaches no event.
    Secret(String),
}

/// A hook as the VNFD declares it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// The operation that it belongs to, one of [`OPERATIONS`].
    pub operation: String,
    /// When it runs.
    pub moment: Moment,
    /// Its name as the VNFD writes it, such as `instantiate_end`.
    pub name: String,
    /// The file of the package that holds its Job.
    pub file: String,
    /// The Job's manifest.
    pub job: Value,
    /// What it runs for.
    #[serde(default)]
    pub items: Items,
    /// Its items run together; else one after another.
    #[serde(default)]
    pub parallel: bool,
    /// How long each Job may take, in milliseconds; absent: the clock of the table of waits.
    #[serde(default)]
    pub clock_ms: Option<u64>,
    /// Where its result is read.
    #[serde(default)]
    pub result: ResultFrom,
    /// Its result registers a VIM.
    #[serde(default)]
    pub register_vim: bool,
}

impl Hook {
    /// Whether it belongs to this operation.
    #[must_use]
    pub fn is_of(&self, operation: Operation) -> bool {
        stem(operation) == Some(self.operation.as_str())
    }
}

/// The name by which an operation's hooks begin; `None` for one that has none.
#[must_use]
pub fn stem(operation: Operation) -> Option<&'static str> {
    match operation {
        Operation::Instantiate => Some("instantiate"),
        Operation::Scale => Some("scale"),
        Operation::ScaleToLevel => Some("scale_to_level"),
        Operation::Heal => Some("heal"),
        Operation::ChangeVnfpkg => Some("change_vnfpkg"),
        Operation::Terminate => Some("terminate"),
        // It writes nothing to a cluster.
        Operation::ModifyInfo => None,
    }
}

/// What stands in a record for a hook's Job: enough to know it by, nothing to make it again from.
#[must_use]
pub fn marker(object: &ObjectRef, hook: &str) -> Body {
    Body::Inline(json!({
        "apiVersion": object.api_version,
        "kind": object.kind,
        "metadata": {"name": object.name, "labels": {LABEL: hook}},
    }))
}

/// Whether a recorded manifest is that of a hook's Job.
#[must_use]
pub fn is_hook_job(manifest: &Body) -> bool {
    match manifest {
        Body::Inline(value) => value["metadata"]["labels"].get(LABEL).is_some(),
        Body::Blob(_) => false,
    }
}

/// What a hook's result says of a VIM (`registerVim`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Its name.
    pub vim_id: VimId,
    /// One of [`VIM_TYPES`].
    pub vim_type: String,
    /// `endpoint`, `ssl_ca_cert`; what is left out comes from the Secret.
    pub interface_info: Map<String, Value>,
    /// The Secret that holds the credentials, in the namespace of the VNF.
    pub secret: String,
}

impl Registration {
    /// What a result says, if it says anything of a VIM.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in words.
    pub fn of(result: &Value) -> Result<Option<Self>, String> {
        let Some(stated) = result.get("registerVim") else {
            return Ok(None);
        };
        let text = |name: &str| stated[name].as_str().filter(|text| !text.is_empty());
        let vim_id = text("vimId").ok_or("registerVim has no vimId")?;
        let vim_id = VimId::parse(vim_id).map_err(|e| format!("registerVim.vimId: {e}"))?;
        let vim_type = text("vimType").unwrap_or(VIM_TYPES[0]);
        if !VIM_TYPES.contains(&vim_type) {
            return Err(format!(
                "registerVim.vimType {vim_type:?} is not supported; use {}",
                VIM_TYPES[0]
            ));
        }
        if stated.get("accessInfo").is_some() {
            return Err(
                "registerVim holds accessInfo: credentials do not belong into a termination message; name their Secret in accessFrom"
                    .to_owned(),
            );
        }
        let secret = stated["accessFrom"]["secret"]
            .as_str()
            .filter(|name| !name.is_empty())
            .ok_or("registerVim has no accessFrom.secret")?;
        Ok(Some(Self {
            vim_id,
            vim_type: vim_type.to_owned(),
            interface_info: stated["interfaceInfo"]
                .as_object()
                .cloned()
                .unwrap_or_default(),
            secret: secret.to_owned(),
        }))
    }
}

/// Reads a termination message as a result.
///
/// # Errors
///
/// Why it is none, in words.
pub fn parse_result(message: &str) -> Result<Option<Value>, String> {
    let text = message.trim();
    if text.is_empty() {
        return Ok(None);
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_object() => Ok(Some(value)),
        Ok(_) => Err("the result must be a JSON object".to_owned()),
        Err(_) if message.len() >= RESULT_LIMIT => Err(format!(
            "the result was cut at {RESULT_LIMIT} bytes and is no JSON any more"
        )),
        Err(error) => Err(format!("the result is no JSON: {error}")),
    }
}

/// A result without the members that sound like secrets: it goes into events.
#[must_use]
pub fn without_secrets(mut result: Value) -> Value {
    // Where credentials lie is named there, by a name that sounds like one; whatever else stands there may be one.
    let secret = result
        .pointer("/registerVim/accessFrom/secret")
        .and_then(Value::as_str)
        .map(str::to_owned);
    leave_out(&mut result);
    if let (Some(name), Some(registration)) = (
        secret,
        result.get_mut("registerVim").and_then(Value::as_object_mut),
    ) {
        registration.insert("accessFrom".to_owned(), json!({"secret": name}));
    }
    result
}

fn leave_out(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !is_sensitive(name, &[]));
            members.values_mut().for_each(leave_out);
        }
        Value::Array(entries) => entries.iter_mut().for_each(leave_out),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_where_credentials_lie_a_result_keeps_the_name_alone() {
        let access_from = json!({"secret": "s", "bearer_token": "x", "of": {"token": "y"}});
        let result = json!({"registerVim": {"vimId": "edge", "accessFrom": access_from}});
        assert_eq!(
            without_secrets(result),
            json!({"registerVim": {"vimId": "edge", "accessFrom": {"secret": "s"}}})
        );
    }

    #[test]
    fn a_result_is_a_json_object_or_nothing() {
        assert_eq!(parse_result("  \n"), Ok(None));
        assert_eq!(parse_result("{\"a\": 1}\n"), Ok(Some(json!({"a": 1}))));
        assert!(parse_result("done").unwrap_err().contains("no JSON"));
        assert!(parse_result("7").unwrap_err().contains("JSON object"));
        let cut = format!("{{\"a\": \"{}", "x".repeat(RESULT_LIMIT));
        assert!(
            parse_result(&cut[..RESULT_LIMIT])
                .unwrap_err()
                .contains("cut at 4096")
        );
    }

    #[test]
    fn what_sounds_like_a_secret_is_left_out_of_a_result() {
        let result = json!({"nodes": 3, "admin_password": "x", "deep": [{"token": "y", "a": 1}],
            "registerVim": {"vimId": "e", "accessFrom": {"secret": "s"}}});
        assert_eq!(
            without_secrets(result),
            json!({"nodes": 3, "deep": [{"a": 1}],
                "registerVim": {"vimId": "e", "accessFrom": {"secret": "s"}}})
        );
    }

    #[test]
    fn a_registration_names_its_secret_and_holds_none() {
        let stated = json!({"registerVim": {"vimId": "edge", "interfaceInfo": {"endpoint": "https://e:6443"},
            "accessFrom": {"secret": "edge-kubeconfig"}}});
        let read = Registration::of(&stated).unwrap().unwrap();
        assert_eq!(
            (read.vim_id.as_str(), read.secret.as_str()),
            ("edge", "edge-kubeconfig")
        );
        assert_eq!(Registration::of(&json!({"other": 1})), Ok(None));
        for (wrong, why) in [
            (json!({"accessFrom": {"secret": "s"}}), "vimId"),
            (json!({"vimId": "e"}), "accessFrom"),
            (
                json!({"vimId": "e", "vimType": "X", "accessFrom": {"secret": "s"}}),
                "not supported",
            ),
            (
                json!({"vimId": "e", "accessInfo": {"bearer_token": "t"}}),
                "termination message",
            ),
        ] {
            let refused = Registration::of(&json!({"registerVim": wrong})).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
