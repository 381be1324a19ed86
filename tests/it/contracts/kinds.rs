//! Each kind of seed case B.

use cairn_tests::kinds::{DEFINITION, KINDS, Kind, widget, widget_version};
use cairn_tests::place::Place;
use cairn_tests::until::until;
use serde_json::json;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(150);

async fn round(place: &Place, kind: &Kind) {
    let name = format!("k-{}", kind.api_version.replace(['/', '.'], "-"));
    let path = kind.path(place, &name);
    let manifest = kind.manifest(place, &name);
    if !kind.namespaced {
        place.remove_at_end(&path);
    }
    let title = format!("{} {}", kind.api_version, kind.kind);
    let made = place.kube.apply(&path, "ours", false, &manifest).await;
    assert_eq!(made.status, 201, "{title}: {:#}", made.body);
    let read = place.kube.get(&path).await;
    assert_eq!(read.status, 200, "{title}: {:#}", read.body);
    let (made, read) = (made.body, read.body);
    assert_eq!(read["metadata"]["uid"], made["metadata"]["uid"], "{title}");
    assert_eq!(
        (&read["apiVersion"], &read["kind"]),
        (&manifest["apiVersion"], &manifest["kind"]),
        "{title}"
    );
    let uid = &made["metadata"]["uid"];
    let options = json!({"propagationPolicy": "Foreground", "preconditions": {"uid": uid}});
    let deleted = place.kube.delete(&path, &options).await;
    assert!(
        matches!(deleted.status, 200 | 202),
        "{title}: {:#}",
        deleted.body
    );
    place.kube.gone(&path, SOON).await;
}

pub async fn every_kind_is_applied_read_deleted_and_gone(place: Place) {
    futures::future::join_all(KINDS.iter().map(|kind| round(&place, kind))).await;
}

pub async fn a_custom_resource_is_served_once_its_definition_is_established(place: Place) {
    let definition = DEFINITION.path(&place, "");
    place.remove_at_end(&definition);
    let path = place.path(&widget_version(&place), "widgets", "w");
    assert_eq!(place.kube.get(&path).await.status, 404);
    place
        .kube
        .apply(&definition, "ours", false, &DEFINITION.manifest(&place, ""))
        .await
        .is(201);
    place
        .kube
        .until(&definition, SOON, "Established", |d| {
            let conditions = d["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            conditions
                .iter()
                .any(|c| c["type"] == "Established" && c["status"] == "True")
        })
        .await;
    until(SOON, "the custom resource to be made", || async {
        let answer = place
            .kube
            .apply(&path, "ours", false, &widget(&place, "w"))
            .await;
        if answer.status == 201 {
            Ok(())
        } else {
            Err((answer.status, answer.body))
        }
    })
    .await;
    let group = place
        .kube
        .get(&format!("/apis/{}", widget_version(&place)))
        .await
        .is(200);
    let rows = group["resources"].as_array().expect("resources");
    assert!(
        rows.iter()
            .any(|row| row["name"] == "widgets" && row["kind"] == "Widget")
    );
    let wrong = json!({"spec": {"size": "large"}});
    let refused = place.kube.merge(&path, &wrong).await;
    assert_eq!(
        (refused.status, refused.reason()),
        (422, "Invalid"),
        "{:#}",
        refused.body
    );
    place.kube.delete(&path, &json!({})).await.is(200);
    place.kube.gone(&path, SOON).await;
}
