//! Old forms of events, brought to the present one when they are read. The table is never changed.

use serde_json::Value;

/// The version that events are written with.
pub(crate) const CURRENT: &str = "1.0";

/// A step from one form of an event to the next: pure, JSON to JSON.
pub(crate) struct Upcaster {
    /// Name of the event.
    pub(crate) event_type: &'static str,
    /// The version that it reads.
    pub(crate) from: &'static str,
    /// The version that it makes.
    pub(crate) to: &'static str,
    /// How.
    pub(crate) upcast: fn(Value) -> Value,
}

/// All steps. None yet: no event has changed. A changed event gets a row here; its old golden JSON stays.
pub(crate) const UPCASTERS: &[Upcaster] = &[];

/// Applies the steps that an event needs, one after the other. `None`: no way leads to the present version.
pub(crate) fn upcast(
    steps: &[Upcaster],
    event_type: &str,
    version: &str,
    payload: Value,
) -> Option<Value> {
    let mut version = version.to_owned();
    let mut payload = payload;
    // Each step leads to another version, so a sound table needs no more rounds than it has rows.
    for _ in 0..=steps.len() {
        match steps
            .iter()
            .find(|step| step.event_type == event_type && step.from == version)
        {
            Some(step) => {
                payload = (step.upcast)(payload);
                step.to.clone_into(&mut version);
            }
            None => return (version == CURRENT).then_some(payload),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const STEPS: &[Upcaster] = &[
        Upcaster {
            event_type: "A",
            from: "0.8",
            to: "0.9",
            upcast: |_| json!({"b": 1}),
        },
        Upcaster {
            event_type: "A",
            from: "0.9",
            to: "1.0",
            upcast: |mut payload| {
                payload["c"] = json!(2);
                payload
            },
        },
    ];

    #[test]
    fn steps_follow_one_another() {
        assert_eq!(
            upcast(STEPS, "A", "0.8", json!({})),
            Some(json!({"b": 1, "c": 2}))
        );
        assert_eq!(upcast(STEPS, "A", "1.0", json!({})), Some(json!({})));
        assert_eq!(upcast(STEPS, "B", "1.0", json!({})), Some(json!({})));
    }

    #[test]
    fn a_version_from_which_no_way_leads_here_is_unknown() {
        assert_eq!(upcast(STEPS, "A", "2.0", json!({})), None);
        assert_eq!(upcast(STEPS, "B", "0.9", json!({})), None);
        let circle = [Upcaster {
            event_type: "A",
            from: "0.1",
            to: "0.1",
            upcast: |payload| payload,
        }];
        assert_eq!(upcast(&circle, "A", "0.1", json!({})), None);
    }
}
