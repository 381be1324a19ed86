//! Volumes of `StatefulSet`s. Claims made from templates outlive their set, without an owner; they are known
//! by the marks that the templates hand down (`shape::dressed`), so that a claim that was there before is
//! never taken for one of ours.
//!
//! A set that is deleted by the operation that made it (a rollback) takes the claims that this operation's
//! templates made. Where another operation deletes it, the claims of the set are marked first. A claim whose
//! name fits two sets (`data-web-db-0`: `web-db` or `db`) is told by the mark that names its set.

use crate::client::{Call, Session, media};
use crate::delete::{by_uid, pending};
use crate::discovery::Located;
use crate::errors::{CallError, Try};
use crate::json;
use crate::marks;
use crate::pods::selector;
use cairn_domain::object::ObjectRef;
use cairn_domain::ports::Scope;
use cairn_domain::waits::Obstacle;
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What is left of the volumes of sets that went.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub obstacles: Vec<Obstacle>,
    pub residue: Vec<String>,
}

/// Marks the claims of a set that is about to be deleted by another operation than the one that wrote it.
pub(crate) async fn mark(session: &Session, scope: &Scope, set: &Value) -> Try<()> {
    if json::entries(set, "/spec/volumeClaimTemplates").is_empty()
        || json::annotation(set, marks::OPERATION) == Some(scope.operation.as_str())
    {
        return Ok(());
    }
    let namespace = json::namespace(set);
    let claims = claims(session, scope, namespace)
        .await
        .map_err(|e| e.reading("PersistentVolumeClaim"))?;
    for claim in claims.iter().filter(|claim| is_made_for(claim, set)) {
        if json::annotation(claim, marks::REMOVED_BY) == Some(scope.operation.as_str()) {
            continue;
        }
        let patch = json!({"metadata": {"uid": json::uid(claim),
            "annotations": {marks::REMOVED_BY: scope.operation.as_str(), marks::STATEFUL_SET: json::name(set)}}});
        let at = at(
            session,
            "PersistentVolumeClaim",
            Some(namespace),
            json::name(claim),
        )
        .await
        .map_err(|e| e.reading("PersistentVolumeClaim"))?;
        match session
            .send(&Call::with(Method::PATCH, at.path(), media::MERGE, patch))
            .await
        {
            Ok(_) => {}
            Err(CallError::Refused(refusal)) if matches!(refusal.code, 404 | 409) => {}
            Err(other) => return Err(other.writing(at.object.to_string())),
        }
    }
    Ok(())
}

/// Removes the claims of sets that are gone, or lists them as what stays.
pub(crate) async fn after(
    session: &Session,
    scope: &Scope,
    sets: &[ObjectRef],
    remove: bool,
) -> Try<Left> {
    let reading = |e: CallError| e.reading("PersistentVolumeClaim");
    let mut left = Left::default();
    let namespaces: BTreeSet<&str> = sets
        .iter()
        .filter_map(|set| set.namespace.as_deref())
        .collect();
    for namespace in namespaces {
        let claims = claims(session, scope, namespace).await.map_err(reading)?;
        for claim in &claims {
            let of_ours = sets.iter().any(|set| {
                set.namespace.as_deref() == Some(namespace) && is_of_set(claim, &set.name)
            });
            if !of_ours {
                continue;
            }
            if remove && is_removed_with(scope, claim) {
                left.obstacles
                    .extend(remove_claim(session, scope, claim).await?);
            } else {
                left.residue.push(format!(
                    "PersistentVolumeClaim/{}: volumes are kept",
                    json::name(claim)
                ));
            }
        }
    }
    Ok(left)
}

async fn claims(
    session: &Session,
    scope: &Scope,
    namespace: &str,
) -> Result<Vec<Value>, CallError> {
    let kind = session.builtin("v1", "PersistentVolumeClaim").await?;
    Ok(session
        .list(&kind.collection(Some(namespace)), &selector(scope))
        .await?
        .items)
}

/// Whether a claim is one of a set that is there: by its mark, else by `<template>-<set>-<n>`.
fn is_made_for(claim: &Value, set: &Value) -> bool {
    let name = json::name(set);
    if let Some(marked) = json::annotation(claim, marks::STATEFUL_SET) {
        return marked == name;
    }
    let Some(stem) = stem(claim) else {
        return false;
    };
    json::entries(set, "/spec/volumeClaimTemplates")
        .iter()
        .any(|template| stem == format!("{}-{name}", json::name(template)))
}

/// Whether a claim is one of a set that is gone: by its mark. Without a mark its name says that it may be; then it
/// is told of, and never removed.
fn is_of_set(claim: &Value, set: &str) -> bool {
    if let Some(marked) = json::annotation(claim, marks::STATEFUL_SET) {
        return marked == set;
    }
    stem(claim)
        .and_then(|stem| stem.strip_suffix(set))
        .is_some_and(|template| template.ends_with('-'))
}

/// The name of a claim without the ordinal at its end.
fn stem(claim: &Value) -> Option<&str> {
    let (stem, ordinal) = json::name(claim).rsplit_once('-')?;
    let is_ordinal = !ordinal.is_empty() && ordinal.bytes().all(|b| b.is_ascii_digit());
    is_ordinal.then_some(stem)
}

fn is_removed_with(scope: &Scope, claim: &Value) -> bool {
    json::annotation(claim, marks::STATEFUL_SET).is_some()
        && [marks::OPERATION, marks::REMOVED_BY]
            .iter()
            .any(|mark| json::annotation(claim, mark) == Some(scope.operation.as_str()))
}

async fn remove_claim(session: &Session, scope: &Scope, claim: &Value) -> Try<Vec<Obstacle>> {
    let name = json::name(claim);
    let object = format!("PersistentVolumeClaim/{name}");
    if !json::deleting(claim) {
        let made_here = json::annotation(claim, marks::OPERATION) == Some(scope.operation.as_str());
        if made_here {
            remember_volume(session, claim).await?;
        }
        let at = at(
            session,
            "PersistentVolumeClaim",
            Some(json::namespace(claim)),
            name,
        )
        .await
        .map_err(|e| e.reading(&object))?;
        by_uid(session, &at, json::uid(claim), None).await?;
    }
    Ok(pending(
        object,
        "PersistentVolumeClaim",
        "it is being removed with its workload".into(),
    )
    .obstacles())
}

/// Notes on the volume which claim goes, so that afterwards only our reference is taken off it.
async fn remember_volume(session: &Session, claim: &Value) -> Try<()> {
    let volume = json::text(claim, "/spec/volumeName");
    if volume.is_empty() {
        return Ok(());
    }
    let object = format!("PersistentVolume/{volume}");
    let at = at(session, "PersistentVolume", None, volume)
        .await
        .map_err(|e| e.reading(&object))?;
    let found = match session.read(&at).await {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(()),
        Err(CallError::Refused(refusal)) if refusal.code == 403 => return Ok(()),
        Err(other) => return Err(other.reading(object)),
    };
    if json::text(&found, "/spec/claimRef/uid") != json::uid(claim) || !is_kept(&found) {
        return Ok(());
    }
    let patch = json!({"metadata": {"annotations": {marks::CLAIM: json::uid(claim)}}});
    write_volume(session, &at, patch).await
}

/// A volume that stays when its claim goes and was not made for it.
fn is_kept(volume: &Value) -> bool {
    json::text(volume, "/spec/persistentVolumeReclaimPolicy") == "Retain"
        && json::annotation(volume, "pv.kubernetes.io/provisioned-by").is_none()
}

async fn write_volume(session: &Session, at: &Located, patch: Value) -> Try<()> {
    match session
        .send(&Call::with(Method::PATCH, at.path(), media::MERGE, patch))
        .await
    {
        Ok(_) => Ok(()),
        Err(CallError::Refused(refusal)) if matches!(refusal.code, 403 | 404 | 409) => {
            tracing::warn!(volume = %at.object.name, why = %refusal.message, "the volume was not written");
            Ok(())
        }
        Err(other) => Err(other.writing(at.object.to_string())),
    }
}

/// Takes our claim's reference off volumes that were available before. `claims` are UIDs of claims that went.
pub(crate) async fn release(
    session: &Session,
    namespaces: &BTreeSet<String>,
    claims: &[&str],
) -> Try<Vec<Obstacle>> {
    let kind = session
        .builtin("v1", "PersistentVolume")
        .await
        .map_err(|e| e.reading("PersistentVolume"))?;
    let volumes = match session.list(&kind.collection(None), "").await {
        Ok(listed) => listed.items,
        // Credentials for namespaces alone cannot see volumes, and so cannot have made one available.
        Err(CallError::Refused(refusal)) if refusal.code == 403 => return Ok(Vec::new()),
        Err(other) => return Err(other.reading("PersistentVolume")),
    };
    let mut waiting = Vec::new();
    for volume in &volumes {
        let claim = json::text(volume, "/spec/claimRef/uid");
        let ours = json::annotation(volume, marks::CLAIM) == Some(claim) || claims.contains(&claim);
        let here = namespaces.contains(json::text(volume, "/spec/claimRef/namespace"));
        if claim.is_empty() || !ours || !here || !is_kept(volume) {
            continue;
        }
        let name = json::name(volume);
        if json::text(volume, "/status/phase") != "Released" {
            let message = "its claim is gone and it is not released yet".to_owned();
            waiting.extend(
                pending(
                    format!("PersistentVolume/{name}"),
                    "PersistentVolume",
                    message,
                )
                .obstacles(),
            );
            continue;
        }
        let at = at(session, "PersistentVolume", None, name)
            .await
            .map_err(|e| e.reading("PersistentVolume"))?;
        let patch = json!({
            "metadata": {"resourceVersion": json::text(volume, "/metadata/resourceVersion"),
                "annotations": {marks::CLAIM: null}},
            "spec": {"claimRef": null},
        });
        write_volume(session, &at, patch).await?;
    }
    Ok(waiting)
}

async fn at(
    session: &Session,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
) -> Result<Located, CallError> {
    let object = ObjectRef {
        api_version: "v1".into(),
        kind: kind.into(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    };
    Ok(Located {
        kind: session.builtin("v1", kind).await?,
        object,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(name: &str) -> Value {
        json!({"metadata": {"name": name}})
    }

    fn marked(name: &str, set: &str) -> Value {
        json!({"metadata": {"name": name, "annotations": {marks::STATEFUL_SET: set}}})
    }

    #[test]
    fn claims_without_a_mark_are_of_a_set_by_template_set_and_ordinal() {
        assert!(is_of_set(&claim("data-db-0"), "db"));
        assert!(is_of_set(&claim("my-data-a-b-11"), "a-b"));
        for other in ["data-db", "data-db-x", "datadb-0", "db-0", "data-other-0"] {
            assert!(!is_of_set(&claim(other), "db"), "{other}");
        }
    }

    #[test]
    fn a_name_that_fits_two_sets_is_of_the_one_that_its_mark_names() {
        let name = "data-web-db-0";
        assert!(!is_of_set(&marked(name, "web-db"), "db"));
        assert!(is_of_set(&marked(name, "web-db"), "web-db"));
        let set = |name: &str| json!({"metadata": {"name": name}, "spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}});
        assert!(is_made_for(&claim(name), &set("web-db")));
        assert!(!is_made_for(&claim(name), &set("db")));
        assert!(!is_made_for(&marked("data-db-0", "web-db"), &set("db")));
    }
}
