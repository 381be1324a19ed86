//! Paths of the Kubernetes API.

use bytes::Bytes;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Health,
    Version,
    CoreVersions,
    Groups,
    Group(String),
    /// Group (empty for core) and version.
    Resources(String, String),
    OpenApiIndex,
    OpenApi(String, String),
    Resource(At),
    Nowhere,
}

/// A place among the objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct At {
    pub group: String,
    pub version: String,
    pub plural: String,
    pub namespace: String,
    /// Empty for the collection.
    pub name: String,
    pub subresource: String,
}

impl Target {
    /// Plural and subresource, for faults.
    pub fn resource(&self) -> (&str, &str) {
        match self {
            Self::Resource(at) => (&at.plural, &at.subresource),
            _ => ("", ""),
        }
    }

    /// The object's name, from the path or else from the body.
    pub fn name(&self, body: &Bytes) -> String {
        match self {
            Self::Resource(at) if at.name.is_empty() => super::body_name(body),
            Self::Resource(at) => at.name.clone(),
            _ => String::new(),
        }
    }
}

pub(crate) fn parse(path: &str) -> Target {
    let parts: Vec<String> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(decode)
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Target::Health,
        ["version"] => Target::Version,
        ["api"] => Target::CoreVersions,
        ["apis"] => Target::Groups,
        ["apis", group] => Target::Group((*group).to_owned()),
        ["api", version] => Target::Resources(String::new(), (*version).to_owned()),
        ["apis", group, version] => Target::Resources((*group).to_owned(), (*version).to_owned()),
        ["openapi", "v3"] => Target::OpenApiIndex,
        ["openapi", "v3", "api", version] => Target::OpenApi(String::new(), (*version).to_owned()),
        ["openapi", "v3", "apis", group, version] => {
            Target::OpenApi((*group).to_owned(), (*version).to_owned())
        }
        ["api", version, rest @ ..] => below("", version, rest),
        ["apis", group, version, rest @ ..] => below(group, version, rest),
        _ => Target::Nowhere,
    }
}

fn below(group: &str, version: &str, rest: &[&str]) -> Target {
    let at = |namespace: &str, plural: &str, name: &str, subresource: &str| {
        Target::Resource(At {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
        })
    };
    match rest {
        ["namespaces", name, sub @ ("status" | "finalize")] if group.is_empty() => {
            at("", "namespaces", name, sub)
        }
        ["namespaces", namespace, plural] => at(namespace, plural, "", ""),
        ["namespaces", namespace, plural, name] => at(namespace, plural, name, ""),
        ["namespaces", namespace, plural, name, sub] => at(namespace, plural, name, sub),
        [plural] => at("", plural, "", ""),
        [plural, name] => at("", plural, name, ""),
        [plural, name, sub] => at("", plural, name, sub),
        _ => Target::Nowhere,
    }
}

/// Percent decoding; a broken escape stays as it is.
pub(crate) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let hex = bytes
            .get(index + 1..index + 3)
            .filter(|_| bytes[index] == b'%')
            .and_then(|pair| std::str::from_utf8(pair).ok())
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        if let Some(byte) = hex {
            decoded.push(byte);
            index += 3;
        } else {
            decoded.push(bytes[index]);
            index += 1;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> At {
        match parse(path) {
            Target::Resource(at) => at,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn paths_of_objects_and_subresources() {
        let scale = place("/apis/apps/v1/namespaces/a/deployments/b/scale");
        assert_eq!(
            (scale.namespace.as_str(), scale.subresource.as_str()),
            ("a", "scale")
        );
        assert_eq!(place("/api/v1/namespaces/a").name, "a");
        assert_eq!(place("/api/v1/namespaces/a/status").plural, "namespaces");
        assert_eq!(place("/api/v1/pods").plural, "pods");
        let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aadmin";
        assert_eq!(place(role).name, "system:admin");
        assert_eq!(
            parse("/apis/apps/v1"),
            Target::Resources("apps".into(), "v1".into())
        );
    }
}
