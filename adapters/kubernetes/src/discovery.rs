//! Which kinds a cluster serves, and where. Read per API version when first needed, and anew on a miss.

use crate::client::{Call, Session};
use crate::errors::CallError;
use crate::json;
use cairn_domain::object::ObjectRef;
use cairn_domain::ports::{KindFacts, Scope};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// A kind as a cluster serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub name: String,
    /// The resource, as paths name it.
    pub plural: String,
    pub namespaced: bool,
    pub verbs: Vec<String>,
    pub scalable: bool,
}

type Served = Arc<Vec<Arc<Kind>>>;

/// API versions that are remembered at most.
const REMEMBERED: usize = 256;

/// The kinds that are known of one cluster.
#[derive(Default)]
pub(crate) struct Kinds(Mutex<HashMap<String, Served>>);

/// An object with the kind under which it is served.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub kind: Arc<Kind>,
    /// With its namespace resolved.
    pub object: ObjectRef,
}

impl Kind {
    /// API group, empty for the core group.
    pub(crate) fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }

    /// Path of all objects of the kind, or of those in a namespace.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        let root = if self.api_version.contains('/') {
            "/apis/"
        } else {
            "/api/"
        };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => {
                format!(
                    "{root}{}/namespaces/{}/{}",
                    self.api_version,
                    encode(namespace),
                    self.plural
                )
            }
            None => format!("{root}{}/{}", self.api_version, self.plural),
        }
    }

    pub(crate) fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// What the domain wants to know of it.
    pub(crate) fn facts(&self) -> KindFacts {
        KindFacts {
            create_only: !self.can("patch"),
            scalable: self.scalable,
        }
    }

    /// Whether it belongs to this group and is named so.
    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        self.group() == group && self.name == kind
    }
}

impl Located {
    /// Path of the object.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.collection(), encode(&self.object.name))
    }

    /// Path of the objects of its kind beside it.
    pub(crate) fn collection(&self) -> String {
        self.kind.collection(self.object.namespace.as_deref())
    }
}

/// Writes a text as one segment of a path or one value of a query.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':') {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("writing to a String cannot fail");
        }
    }
    encoded
}

impl Kinds {
    fn known(&self, api_version: &str) -> Option<Served> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(api_version)
            .cloned()
    }

    fn remember(&self, api_version: &str, served: Served) {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kinds.len() >= REMEMBERED {
            kinds.clear();
        }
        kinds.insert(api_version.to_owned(), served);
    }

    /// Forgets an API version, after the cluster said that it does not serve something of it.
    pub(crate) fn forget(&self, api_version: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(api_version);
    }
}

impl Session {
    /// The kind of this name, or none if the cluster says that it serves none such.
    pub(crate) async fn kind(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<Arc<Kind>>, CallError> {
        let find = |served: &Served| served.iter().find(|known| known.name == kind).cloned();
        if let Some(found) = self
            .cluster
            .kinds
            .known(api_version)
            .as_ref()
            .and_then(find)
        {
            return Ok(Some(found));
        }
        Ok(find(&self.served(api_version).await?))
    }

    /// A kind of Kubernetes itself, which every cluster serves.
    pub(crate) async fn builtin(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<Arc<Kind>, CallError> {
        self.kind(api_version, kind).await?.ok_or_else(|| {
            CallError::Setup(format!(
                "the cluster does not serve {kind} of {api_version}: it is no usable Kubernetes"
            ))
        })
    }

    /// Reads the kinds of an API version anew; none where the cluster does not serve it.
    pub(crate) async fn served(&self, api_version: &str) -> Result<Served, CallError> {
        let root = if api_version.contains('/') {
            "/apis/"
        } else {
            "/api/"
        };
        let version: Vec<String> = api_version.split('/').map(encode).collect();
        let served = match self
            .send(&Call::get(format!("{root}{}", version.join("/"))))
            .await
        {
            Ok(answer) => Arc::new(read(api_version, &answer.body)),
            Err(CallError::Refused(refusal)) if refusal.code == 404 => Served::default(),
            Err(other) => return Err(other),
        };
        self.cluster
            .kinds
            .remember(api_version, Arc::clone(&served));
        Ok(served)
    }

    /// All API versions that the cluster serves, the preferred one of each group.
    pub(crate) async fn api_versions(&self) -> Result<Vec<String>, CallError> {
        let groups = self.send(&Call::get("/apis")).await?.body;
        let preferred = json::entries(&groups, "/groups")
            .iter()
            .map(|group| json::text(group, "/preferredVersion/groupVersion").to_owned());
        Ok(std::iter::once("v1".to_owned())
            .chain(preferred.filter(|v| !v.is_empty()))
            .collect())
    }

    /// The object with the kind under which it is served; none where the kind is not served.
    pub(crate) async fn locate(
        &self,
        scope: &Scope,
        object: &ObjectRef,
    ) -> Result<Option<Located>, CallError> {
        let Some(kind) = self.kind(&object.api_version, &object.kind).await? else {
            return Ok(None);
        };
        let namespace = kind.namespaced.then(|| match object.namespace.as_deref() {
            None | Some("") => scope.namespace.clone(),
            Some(namespace) => namespace.to_owned(),
        });
        Ok(Some(Located {
            kind,
            object: ObjectRef {
                namespace,
                ..object.clone()
            },
        }))
    }

    /// Reads an object. None only where the cluster says with authority that there is none.
    pub(crate) async fn read(&self, at: &Located) -> Result<Option<Value>, CallError> {
        match self.send(&Call::get(at.path())).await {
            Ok(answer) => Ok(Some(answer.body)),
            Err(CallError::Refused(refusal)) if refusal.says_absent(&at.object.name) => Ok(None),
            Err(error) => {
                self.forget_if_not_served(at, &error);
                Err(error)
            }
        }
    }

    /// Drops what is remembered of a kind that the cluster does not serve any more.
    pub(crate) fn forget_if_not_served(&self, at: &Located, error: &CallError) {
        if error.refusal().is_some_and(|refusal| refusal.code == 404) {
            self.cluster.kinds.forget(&at.kind.api_version);
        }
    }

    /// Reads the list at a path with its query, page by page.
    pub(crate) async fn list(&self, path: &str, query: &str) -> Result<Listed, CallError> {
        let mut listed = Listed::default();
        let mut more = String::new();
        loop {
            let page = self
                .send(&Call::get(format!("{path}?limit=500{query}{more}")))
                .await?
                .body;
            if listed.resource_version.is_empty() {
                json::text(&page, "/metadata/resourceVersion")
                    .clone_into(&mut listed.resource_version);
            }
            listed
                .items
                .extend_from_slice(json::entries(&page, "/items"));
            match json::text(&page, "/metadata/continue") {
                "" => return Ok(listed),
                token => more = format!("&continue={}", encode(token)),
            }
        }
    }
}

/// A list as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listed {
    pub items: Vec<Value>,
    /// From where a watch sees what happens afterwards.
    pub resource_version: String,
}

fn read(api_version: &str, list: &Value) -> Vec<Arc<Kind>> {
    let resources = json::entries(list, "/resources");
    let scalable = |plural: &str| {
        resources
            .iter()
            .any(|r| json::text(r, "/name").strip_suffix("/scale") == Some(plural))
    };
    resources
        .iter()
        .filter(|resource| !json::text(resource, "/name").contains('/'))
        .map(|resource| {
            let plural = json::text(resource, "/name").to_owned();
            Arc::new(Kind {
                api_version: api_version.to_owned(),
                name: json::text(resource, "/kind").to_owned(),
                scalable: scalable(&plural),
                plural,
                namespaced: json::truth(resource, "/namespaced"),
                verbs: json::entries(resource, "/verbs")
                    .iter()
                    .filter_map(|verb| verb.as_str().map(str::to_owned))
                    .collect(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn verbs_and_subresources_decide_what_a_kind_can() {
        let kinds = read(
            "apps/v1",
            &json!({"resources": [
                {"name": "deployments", "kind": "Deployment", "namespaced": true, "verbs": ["get", "patch"]},
                {"name": "deployments/scale", "kind": "Scale", "namespaced": true, "verbs": ["get", "patch"]},
                {"name": "reviews", "kind": "Review", "namespaced": false, "verbs": ["create"]},
            ]}),
        );
        assert_eq!(kinds.len(), 2);
        assert_eq!(
            kinds[0].facts(),
            KindFacts {
                create_only: false,
                scalable: true
            }
        );
        assert_eq!(
            kinds[1].facts(),
            KindFacts {
                create_only: true,
                scalable: false
            }
        );
        assert_eq!(
            kinds[0].collection(Some("a")),
            "/apis/apps/v1/namespaces/a/deployments"
        );
        assert_eq!(kinds[1].collection(Some("a")), "/apis/apps/v1/reviews");
    }

    #[test]
    fn names_are_written_so_that_a_path_stays_one() {
        assert_eq!(encode("system:a/b?c"), "system:a%2Fb%3Fc");
    }
}
