//! Whose number of replicas counts when a workload is applied again.

use crate::json;
use crate::managed_fields;
use serde_json::{Value, json};

/// Settles `spec.replicas` of a body that is applied onto a live object.
///
/// Our applies own the number: the live one is sent, as leaving out what we own would set it to 1. Somebody
/// else's (the scale subresource, an autoscaler, a person) or nobody's: it is left out.
pub(crate) fn settle(body: &mut Value, live: &Value, manager: &str) {
    let number = live.pointer("/spec/replicas").and_then(Value::as_u64);
    match number.filter(|_| managed_fields::owns_replicas(live, manager)) {
        Some(number) => *json::member(json::member(body, "spec"), "replicas") = json!(number),
        None => json::remove(body, "/spec", "replicas"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(fields: &Value) -> Value {
        json!({
            "metadata": {"managedFields": [
                {"manager": "cairn-a", "operation": "Apply", "fieldsV1": {"f:spec": fields}}
            ]},
            "spec": {"replicas": 5}
        })
    }

    #[test]
    fn the_live_number_is_sent_where_we_own_it_and_none_elsewhere() {
        let mut body = json!({"spec": {"replicas": 2}});
        settle(&mut body, &live(&json!({"f:replicas": {}})), "cairn-a");
        assert_eq!(body["spec"], json!({"replicas": 5}));
        settle(&mut body, &live(&json!({})), "cairn-a");
        assert_eq!(body["spec"], json!({}));
    }
}
