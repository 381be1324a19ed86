//! Small packages, made for one test.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use tempfile::TempDir;

/// A package in the making.
#[derive(Clone, Debug)]
pub struct PackageBuilder {
    /// The VNFD's id.
    pub vnfd_id: String,
    product: String,
    software: String,
    manifests: Vec<Value>,
    vdus: Vec<Vdu>,
    clocks: String,
    sensitive: String,
    template_annotations: Value,
    hooks: Vec<Hook>,
}

#[derive(Clone, Debug)]
struct Hook {
    name: String,
    job: Value,
    inputs: String,
}

#[derive(Clone, Debug)]
struct Vdu {
    name: String,
    initial: u32,
    levels: u32,
}

/// A package with short clocks and nothing in it.
#[must_use]
pub fn package() -> PackageBuilder {
    PackageBuilder {
        vnfd_id: fresh_id(),
        product: "Probe".to_owned(),
        software: "1.0".to_owned(),
        manifests: Vec::new(),
        vdus: Vec::new(),
        clocks: "{progressing: 90s, blocked: 1s, infrastructure: 1s, unclassified: 1s}".to_owned(),
        sensitive: String::new(),
        template_annotations: json!({}),
        hooks: Vec::new(),
    }
}

fn fresh_id() -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "ids of tests are not made by the product"
    )]
    let id = uuid::Uuid::new_v4();
    id.to_string()
}

impl PackageBuilder {
    /// The next version of the product: the same under a VNFD of its own.
    #[must_use]
    pub fn next_version(&self) -> Self {
        Self {
            vnfd_id: fresh_id(),
            software: "2.0".to_owned(),
            ..self.clone()
        }
    }

    /// Changes the manifest of this kind and name.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn changed(mut self, kind: &str, name: &str, change: impl FnOnce(&mut Value)) -> Self {
        let found = self.manifests.iter_mut().find(|m| is(m, kind, name));
        change(found.expect("there is such a manifest"));
        self
    }

    /// Without the manifest of this kind and name.
    #[must_use]
    pub fn without(mut self, kind: &str, name: &str) -> Self {
        self.manifests.retain(|m| !is(m, kind, name));
        self.vdus
            .retain(|vdu| vdu.name != name || !matches!(kind, "Deployment" | "StatefulSet"));
        self
    }

    /// With these clocks instead of the short ones, as a YAML map.
    #[must_use]
    pub fn clocks(mut self, clocks: &str) -> Self {
        clocks.clone_into(&mut self.clocks);
        self
    }

    /// With secret parameters of these names.
    #[must_use]
    pub fn sensitive(mut self, names: &str) -> Self {
        names.clone_into(&mut self.sensitive);
        self
    }

    /// What the simulated cluster is told about the pods of the workloads added after this.
    #[must_use]
    pub fn pods(mut self, annotations: Value) -> Self {
        self.template_annotations = annotations;
        self
    }

    /// With a manifest.
    #[must_use]
    pub fn manifest(mut self, manifest: Value) -> Self {
        self.manifests.push(manifest);
        self
    }

    /// With a `ConfigMap`.
    #[must_use]
    pub fn config_map(self, name: &str) -> Self {
        self.manifest(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"colour": "blue"}}),
        )
    }

    /// With a `Secret` that holds this text.
    #[must_use]
    pub fn secret(self, name: &str, text: &str) -> Self {
        self.manifest(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {"text": text}}),
        )
    }

    /// With a `Service` that selects the pods of a workload.
    #[must_use]
    pub fn service(self, name: &str) -> Self {
        self.manifest(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}}),
        )
    }

    /// With a Deployment that scales by 1 from this many pods, aspect `NAME_aspect`, levels 0 to 4.
    #[must_use]
    pub fn deployment(self, name: &str, replicas: u32) -> Self {
        self.workload("Deployment", name, replicas)
    }

    /// With a workload of this kind that scales as [`PackageBuilder::deployment`] does.
    #[must_use]
    pub fn workload(mut self, kind: &str, name: &str, replicas: u32) -> Self {
        let mut spec = json!({"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}, "annotations": self.template_annotations},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main",
                    "image": "cairn.test/web:1", "imagePullPolicy": "IfNotPresent",
                    "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}}]}}});
        if kind == "StatefulSet" {
            spec["serviceName"] = json!(name);
        }
        self.manifests
            .push(json!({"apiVersion": "apps/v1", "kind": kind,
            "metadata": {"name": name}, "spec": spec}));
        self.vdus.push(Vdu {
            name: name.to_owned(),
            initial: replicas,
            levels: 4,
        });
        self
    }

    /// With a hook of this name: its Job, and its inputs as a YAML map.
    #[must_use]
    pub fn hook(mut self, name: &str, job: Value, inputs: &str) -> Self {
        self.hooks.push(Hook {
            name: name.to_owned(),
            job,
            inputs: inputs.to_owned(),
        });
        self
    }

    /// Changes the last manifest.
    #[must_use]
    pub fn last(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(self.manifests.last_mut().expect("there is a manifest"));
        self
    }

    /// The CSAR.
    ///
    /// # Panics
    /// When onboarding would refuse it.
    #[must_use]
    pub fn csar(&self) -> Vec<u8> {
        let folder = TempDir::new().expect("a temporary folder");
        self.write(folder.path());
        cairn_packages::build(folder.path()).unwrap_or_else(|e| panic!("the package is wrong: {e}"))
    }

    /// Writes the files of the package into a folder.
    pub fn write(&self, folder: &Path) {
        let put = |path: &str, text: &str| {
            let path = folder.join(path);
            let parent = path.parent().expect("a folder");
            std::fs::create_dir_all(parent).expect("a folder can be made");
            std::fs::write(path, text).expect("a file can be written");
        };
        put(
            "TOSCA-Metadata/TOSCA.meta",
            "TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nCreated-By: test\n\
             Entry-Definitions: Definitions/vnfd.yaml\nETSI-Entry-Manifest: vnf.mf\n",
        );
        put(
            "vnf.mf",
            &format!("metadata:\n  vnf_product_name: {}\n", self.product),
        );
        put("Definitions/vnfd.yaml", &self.vnfd());
        // JSON is YAML; one file for each, in order.
        for (index, manifest) in self.manifests.iter().enumerate() {
            put(
                &format!("Files/kubernetes/{index:03}.yaml"),
                &format!("{manifest:#}\n"),
            );
        }
        for Hook { name, job, .. } in &self.hooks {
            put(&format!("Files/hooks/{name}.yaml"), &format!("{job:#}\n"));
        }
    }

    /// The interface of the VNF that names its hooks.
    fn interface(&self) -> String {
        if self.hooks.is_empty() {
            return String::new();
        }
        let mut text = "      interfaces:\n        Vnflcm:\n".to_owned();
        for Hook { name, inputs, .. } in &self.hooks {
            writeln!(
                text,
                "          {name}: {{implementation: Files/hooks/{name}.yaml, inputs: {inputs}}}"
            )
            .expect("text grows");
        }
        text
    }

    fn vnfd(&self) -> String {
        let mut text = format!(
            "tosca_definitions_version: tosca_simple_yaml_1_3\n\
             metadata: {{cairn.clocks: {}{}}}\n\
             node_types: {{test.VNF: {{derived_from: tosca.nodes.nfv.VNF}}}}\n\
             topology_template:\n  \
             substitution_mappings: {{node_type: test.VNF, properties: {{flavour_id: default}}}}\n  \
             node_templates:\n    VNF:\n      type: test.VNF\n      properties:\n        \
             descriptor_id: {}\n        provider: Test\n        product_name: {}\n        \
             software_version: '{}'\n        descriptor_version: '1.0'\n        flavour_id: default\n",
            self.clocks,
            if self.sensitive.is_empty() {
                String::new()
            } else {
                format!(", cairn.sensitive: '{}'", self.sensitive)
            },
            self.vnfd_id,
            self.product,
            self.software,
        );
        text.push_str(&self.interface());
        for vdu in &self.vdus {
            write!(
                text,
                "    {id}:\n      type: tosca.nodes.nfv.Vdu.OsContainerDeployableUnit\n      properties:\n        \
                 name: {name}\n        vdu_profile: {{min_number_of_instances: 0, max_number_of_instances: {max}}}\n",
                id = vdu.id(),
                name = vdu.name,
                max = vdu.initial + vdu.levels
            )
            .expect("text grows");
        }
        if !self.vdus.is_empty() {
            text.push_str("  policies:\n");
        }
        for vdu in &self.vdus {
            let (id, name) = (vdu.id(), &vdu.name);
            write!(
                text,
                "    - {name}_aspects:\n        type: tosca.policies.nfv.ScalingAspects\n        properties:\n          \
                 aspects: {{{name}_aspect: {{name: {name}_aspect, max_scale_level: {max}, step_deltas: [one]}}}}\n    \
                 - {name}_initial:\n        type: tosca.policies.nfv.VduInitialDelta\n        properties: {{initial_delta: {{number_of_instances: {initial}}}}}\n        \
                 targets: [{id}]\n    \
                 - {name}_deltas:\n        type: tosca.policies.nfv.VduScalingAspectDeltas\n        properties: {{aspect: {name}_aspect, deltas: {{one: {{number_of_instances: 1}}}}}}\n        \
                 targets: [{id}]\n",
                max = vdu.levels,
                initial = vdu.initial,
            )
            .expect("text grows");
        }
        text
    }
}

fn is(manifest: &Value, kind: &str, name: &str) -> bool {
    manifest["kind"] == kind && manifest["metadata"]["name"] == name
}

impl Vdu {
    fn id(&self) -> String {
        self.name.to_uppercase()
    }
}
