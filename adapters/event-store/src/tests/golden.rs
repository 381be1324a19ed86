//! Every event that was ever written can be read: `golden/AGGREGATE/EVENT.N.json` holds the forms that an event
//! has had. A file is added when the form changes (`CAIRN_NEW_GOLDEN=1` writes it), and never edited.

mod instance;
mod operation;

use super::fixture::subscribed;
use crate::upcast::{CURRENT, UPCASTERS, upcast};
use cairn_domain::ids::Tenant;
use cairn_domain::secret::SecretRef;
use cairn_domain::subscription::{CallbackAuth, LccnSubscriptionEvent};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder(aggregate: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(aggregate)
}

/// The forms of one event, oldest first.
fn forms(aggregate: &str, name: &str) -> Vec<PathBuf> {
    (1..1000)
        .map(|n| folder(aggregate).join(format!("{name}.{n}.json")))
        .take_while(|path| path.exists())
        .collect()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Checks one event: its newest form is what is written today, and all older ones can still be read.
fn check<E: Serialize + DeserializeOwned>(aggregate: &str, name: &str, sample: &E) {
    let written = json!({"version": CURRENT, "payload": sample});
    let mut known = forms(aggregate, name);
    if known.last().map(|path| read(path)) != Some(written.clone()) {
        assert!(
            std::env::var_os("CAIRN_NEW_GOLDEN").is_some(),
            "{name} is written in a form that no golden file has; if that is meant, add one \
             (CAIRN_NEW_GOLDEN=1) and make sure that the older ones can be read"
        );
        std::fs::create_dir_all(folder(aggregate)).unwrap();
        let path = folder(aggregate).join(format!("{name}.{}.json", known.len() + 1));
        std::fs::write(
            &path,
            serde_json::to_string_pretty(&written).unwrap() + "\n",
        )
        .unwrap();
        known.push(path);
    }
    for path in known {
        let form = read(&path);
        let version = form["version"].as_str().unwrap();
        let present = upcast(UPCASTERS, name, version, form["payload"].clone());
        let present = present.unwrap_or_else(|| panic!("{} has no upcaster", path.display()));
        let event: Result<E, _> = serde_json::from_value(present);
        assert!(event.is_ok(), "{}: {:?}", path.display(), event.err());
    }
}

/// No file stands there for an event that is not known any more.
fn check_files(aggregate: &str, names: &BTreeSet<&str>) {
    for entry in std::fs::read_dir(folder(aggregate)).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let name = file.split('.').next().unwrap();
        assert!(names.contains(name), "{file} is of no known event");
    }
}

fn place_of_subscription(event: &LccnSubscriptionEvent) -> usize {
    match event {
        LccnSubscriptionEvent::SubscriptionCreated { .. } => 0,
        LccnSubscriptionEvent::SubscriptionDeleted { .. } => 1,
    }
}

#[test]
fn events_of_subscriptions() {
    let mut created = subscribed("s");
    if let LccnSubscriptionEvent::SubscriptionCreated { auth, filter, .. } = &mut created {
        *auth = CallbackAuth::Basic {
            user_name: "nfvo".into(),
            password: SecretRef("ref-1".into()),
        };
        *filter = Some(json!({"operationTypes": ["SCALE"]}));
    }
    let deleted = LccnSubscriptionEvent::SubscriptionDeleted {
        at: super::fixture::at(3),
        by: "anonymous".into(),
        tenant: Tenant::default_tenant(),
    };
    let samples = [created, deleted];
    for (place, event) in samples.iter().enumerate() {
        assert_eq!(
            place_of_subscription(event),
            place,
            "a sample of each event, in order"
        );
        check("LccnSubscription", event.name(), event);
    }
    let names = samples.iter().map(LccnSubscriptionEvent::name).collect();
    check_files("LccnSubscription", &names);
}
