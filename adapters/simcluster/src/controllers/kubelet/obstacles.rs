//! What keeps containers from being started.

use serde_json::Value;

use crate::controllers::Pass;
use crate::json;

pub(super) enum Obstacle {
    /// A volume that cannot be mounted: the pod stays at `ContainerCreating`.
    Volume(String),
    Image {
        reason: &'static str,
        message: String,
    },
    /// A reference in the container's environment that leads nowhere.
    Config(String),
}

/// The first obstacle, in the order in which a kubelet meets them.
pub(super) fn find(pass: &Pass<'_>, pod: &Value) -> Option<Obstacle> {
    volume(pass, pod)
        .or_else(|| image(pod))
        .or_else(|| environment(pass, pod))
}

fn is_there(pass: &Pass<'_>, pod: &Value, storage: &str, name: &str) -> bool {
    pass.state
        .get(storage, json::namespace(pod), name)
        .is_some()
}

fn volume(pass: &Pass<'_>, pod: &Value) -> Option<Obstacle> {
    let failed = |volume: &str, kind: &str, name: &str| {
        let text = format!(
            "MountVolume.SetUp failed for volume \"{volume}\" : {kind} \"{name}\" not found"
        );
        Some(Obstacle::Volume(text))
    };
    for volume in json::list(pod, "/spec/volumes") {
        let of = json::text(volume, "/name");
        if !is_mounted(pod, of) {
            continue;
        }
        let (map, secret) = (
            json::text(volume, "/configMap/name"),
            json::text(volume, "/secret/secretName"),
        );
        let optional =
            json::flag(volume, "/configMap/optional") || json::flag(volume, "/secret/optional");
        if !map.is_empty() && !optional && !is_there(pass, pod, "configmaps", map) {
            return failed(of, "configmap", map);
        }
        if !secret.is_empty() && !optional && !is_there(pass, pod, "secrets", secret) {
            return failed(of, "secret", secret);
        }
        for source in json::list(volume, "/projected/sources") {
            let map = json::text(source, "/configMap/name");
            let optional = json::flag(source, "/configMap/optional");
            if !map.is_empty() && !optional && !is_there(pass, pod, "configmaps", map) {
                return failed(of, "configmap", map);
            }
        }
    }
    None
}

/// A volume that no container mounts is never set up.
fn is_mounted(pod: &Value, volume: &str) -> bool {
    ["/spec/initContainers", "/spec/containers"]
        .iter()
        .flat_map(|list| json::list(pod, list))
        .flat_map(|container| json::list(container, "/volumeMounts"))
        .any(|mount| json::text(mount, "/name") == volume)
}

pub(super) fn first_image(pod: &Value) -> &str {
    json::text(pod, "/spec/containers/0/image")
}

fn image(pod: &Value) -> Option<Obstacle> {
    let bad = json::list(pod, "/spec/containers")
        .iter()
        .map(|container| json::text(container, "/image"))
        .find(|image| !is_image_name(image));
    if let Some(bad) = bad {
        let message = format!(
            "Failed to apply default image tag \"{bad}\": couldn't parse image name \"{bad}\": \
             invalid reference format{}",
            if bad.contains(|c: char| c.is_ascii_uppercase()) {
                format!(
                    ": repository name ({}) must be lowercase",
                    bad.split(':').next().unwrap_or(bad)
                )
            } else {
                String::new()
            }
        );
        return Some(Obstacle::Image {
            reason: "InvalidImageName",
            message,
        });
    }
    let image = first_image(pod);
    match json::annotation(pod, "simcluster.cairn.dev/pull")? {
        "fail" => {
            let message = format!(
                "rpc error: code = NotFound desc = failed to pull and unpack image \"{image}\": \
                 failed to resolve reference \"{image}\": {image}: not found"
            );
            Some(Obstacle::Image {
                reason: "ErrImagePull",
                message,
            })
        }
        "never" => {
            let message =
                format!("Container image \"{image}\" is not present with pull policy of Never");
            Some(Obstacle::Image {
                reason: "ErrImageNeverPull",
                message,
            })
        }
        _ => None,
    }
}

/// Repositories are in lower case; tags are not.
fn is_image_name(image: &str) -> bool {
    let (repository, tag) = match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (image, "latest"),
    };
    let path = repository.split('@').next().unwrap_or(repository);
    let path = path
        .split_once('/')
        .filter(|(host, _)| host.contains(['.', ':']))
        .map_or(path, |(_, p)| p);
    let good = |c: char| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '/' | ':')
    };
    let good_tag = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !path.is_empty() && path.chars().all(good) && !path.contains("//") && tag.chars().all(good_tag)
}

fn environment(pass: &Pass<'_>, pod: &Value) -> Option<Obstacle> {
    for container in json::list(pod, "/spec/containers") {
        for source in json::list(container, "/envFrom") {
            let found = reference(
                pass,
                pod,
                source,
                "/configMapRef",
                "configmaps",
                "configmap",
            )
            .or_else(|| reference(pass, pod, source, "/secretRef", "secrets", "secret"));
            if found.is_some() {
                return found;
            }
        }
        for env in json::list(container, "/env") {
            let map = "/valueFrom/configMapKeyRef";
            let secret = "/valueFrom/secretKeyRef";
            let found = reference(pass, pod, env, map, "configmaps", "configmap")
                .or_else(|| reference(pass, pod, env, secret, "secrets", "secret"));
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

fn reference(
    pass: &Pass<'_>,
    pod: &Value,
    source: &Value,
    pointer: &str,
    storage: &str,
    kind: &str,
) -> Option<Obstacle> {
    let reference = json::at(source, pointer);
    if reference.is_null() || json::flag(reference, "/optional") {
        return None;
    }
    let (name, key) = (
        json::text(reference, "/name"),
        json::text(reference, "/key"),
    );
    let Some(found) = pass.state.get(storage, json::namespace(pod), name) else {
        return Some(Obstacle::Config(format!("{kind} \"{name}\" not found")));
    };
    let pointer = format!("/data/{}", json::escape(key));
    if key.is_empty() || json::has(&found, &pointer) {
        return None;
    }
    let of = if kind == "secret" {
        "Secret"
    } else {
        "ConfigMap"
    };
    let text = format!(
        "couldn't find key {key} in {of} {}/{name}",
        json::namespace(pod)
    );
    Some(Obstacle::Config(text))
}

#[cfg(test)]
mod tests {
    use super::is_image_name;

    #[test]
    fn image_names_are_judged_as_a_registry_client_does() {
        for good in [
            "web",
            "web:1.0",
            "registry.example:5000/a/b:V1",
            "a/b@sha256:00ff",
        ] {
            assert!(is_image_name(good), "{good}");
        }
        for bad in ["Web:1", "a b", "a//b", "UPPER/case:1"] {
            assert!(!is_image_name(bad), "{bad}");
        }
    }
}
