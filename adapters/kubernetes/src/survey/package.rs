//! What the package itself brings: kinds and namespaces that count as present before they are made.

use crate::discovery::Kind;
use crate::json;
use cairn_domain::ports::SurveyItem;
use serde_json::Value;
use std::sync::Arc;

/// Kinds, namespaces and other objects of a package.
pub(crate) struct Brought<'a> {
    items: &'a [SurveyItem],
}

impl<'a> Brought<'a> {
    pub(crate) fn new(items: &'a [SurveyItem]) -> Self {
        Self { items }
    }

    /// Whether the package makes this namespace.
    pub(crate) fn namespace(&self, name: &str) -> bool {
        self.object("Namespace", None, name, "")
    }

    /// Whether the package makes this object. `default` is the namespace of objects that name none.
    pub(crate) fn object(
        &self,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
        default: &str,
    ) -> bool {
        self.items
            .iter()
            .map(|item| &item.manifest)
            .any(|manifest| {
                let own = match json::namespace(manifest) {
                    "" => default,
                    own => own,
                };
                manifest["kind"] == kind
                    && json::name(manifest) == name
                    && namespace.is_none_or(|namespace| namespace == own)
            })
    }

    /// The kind as a definition in the package describes it.
    pub(crate) fn kind(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        let (group, version) = api_version.split_once('/')?;
        let definition = self
            .items
            .iter()
            .map(|item| &item.manifest)
            .find(|manifest| {
                manifest["kind"] == "CustomResourceDefinition"
                    && json::text(manifest, "/spec/group") == group
                    && json::text(manifest, "/spec/names/kind") == kind
            })?;
        let version = json::entries(definition, "/spec/versions")
            .iter()
            .find(|known| json::text(known, "/name") == version && json::truth(known, "/served"))?;
        Some(Arc::new(from_definition(api_version, definition, version)))
    }
}

fn from_definition(api_version: &str, definition: &Value, version: &Value) -> Kind {
    let verbs = [
        "create", "delete", "get", "list", "patch", "update", "watch",
    ];
    Kind {
        api_version: api_version.to_owned(),
        name: json::text(definition, "/spec/names/kind").to_owned(),
        plural: json::text(definition, "/spec/names/plural").to_owned(),
        namespaced: json::text(definition, "/spec/scope") != "Cluster",
        verbs: verbs.map(str::to_owned).to_vec(),
        scalable: version.pointer("/subresources/scale").is_some(),
    }
}
