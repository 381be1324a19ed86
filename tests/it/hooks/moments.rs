//! When the hooks of each operation run.

use super::{begun, jobs, leaves, web};
use crate::operations::instantiate;
use cairn_tests::client::SOON;
use cairn_tests::until::until;
use cairn_tests::world::World;
use serde_json::json;

/// Hooks of the other operations run where they belong, and leave nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_has_its_hooks() {
    let world = World::simple().await;
    let mut package = web();
    for name in ["scale", "scale_to_level", "heal", "terminate"] {
        package = package
            .hook(
                &format!("{name}_start"),
                leaves(""),
                "{items: {per: vnfc, vdu: WEB}}",
            )
            .hook(
                &format!("{name}_end"),
                leaves(""),
                "{items: [a, b], parallel: true}",
            );
    }
    let vnfd = world.onboard(&package).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect"});
    let to = json!({"scaleInfo": [{"aspectId": "web_aspect", "scaleLevel": 0}]});
    let forceful = json!({"terminationType": "FORCEFUL"});
    for (operation, body, vnfcs) in [
        ("scale", &out, 1),
        ("scale_to_level", &to, 2),
        ("heal", &json!({}), 1),
        ("terminate", &forceful, 1),
    ] {
        let done = world.complete(&id, operation, body).await;
        let op = done["id"].as_str().expect("an id");
        let counted = begun(&world, &id, op).await;
        let of = |ending: &str| {
            let name = format!("{operation}{ending}, ");
            counted.keys().filter(|key| key.starts_with(&name)).count()
        };
        assert_eq!(
            (of("_start"), of("_end")),
            (vnfcs, 2),
            "{operation}: {counted:?}"
        );
        assert!(jobs(&world).await.is_empty(), "{operation}");
    }
    until(SOON, "the pods of hooks to be gone", || async {
        let pods = world
            .place()
            .sim()
            .list("v1", "Pod", &world.place().namespace);
        if pods.is_empty() { Ok(()) } else { Err(pods) }
    })
    .await;
}
