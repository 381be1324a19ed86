//! Hooks: operations of the VNF's `Vnflcm` interface that a Kubernetes Job of the package implements (SOL001 6.7).
//!
//! `<operation>_start`, `<operation>_end`, `<operation>_rollback_start` and `<operation>_rollback_end`, at the node
//! template of the VNF. What a hook's Job must be is checked here, so that no operation finds out.

use std::collections::BTreeSet;

use cairn_domain::clocks::parse_duration_ms;
use cairn_domain::hook::{Hook, Items, Moment, OPERATIONS, ResultFrom};

use crate::archive::resolve;
use crate::error::{ErrorKind, PackageError, quoted};
use crate::manifests::{self, Manifest};
use crate::source::Source;
use crate::tosca::{Definitions, Located};
use crate::unsupported::{implementation, operations};
use crate::vnfd::VnfNode;
use crate::yaml::{Kind, Node};

/// Items that one hook may list.
const MOST_ITEMS: usize = 256;
/// Largest Job of a hook, as JSON, in bytes.
const LARGEST: usize = 64 * 1024;
/// Longest clock: 7 days, in milliseconds.
const LONGEST_MS: u64 = 7 * 24 * 3600 * 1000;
/// What a hook may be given.
const INPUTS: [&str; 5] = ["items", "parallel", "clock", "result", "register_vim"];

/// The operation and the moment that a hook's name stands for. SOL001's name of a package change means ours.
pub(crate) fn named(name: &str) -> Option<(&'static str, Moment)> {
    let (stem, moment) = Moment::ENDINGS
        .iter()
        .find_map(|(ending, moment)| Some((name.strip_suffix(ending)?, *moment)))?;
    let stem = if stem == "change_current_package" {
        "change_vnfpkg"
    } else {
        stem
    };
    let known = OPERATIONS.into_iter().find(|known| *known == stem)?;
    Some((known, moment))
}

/// Whether what implements a hook can be a Job: a file by its ending, or an artifact that names one.
pub(crate) fn may_be_job(file: &str) -> bool {
    manifests::is_manifest(file)
}

/// The hooks of the VNF, whose VDUs are `vdus`.
///
/// # Errors
/// [`ErrorKind::Descriptor`] or [`ErrorKind::Manifest`], with file and line.
pub(crate) fn read(
    definitions: &Definitions,
    source: &Source<'_>,
    vdus: &BTreeSet<&str>,
) -> Result<Vec<Hook>, PackageError> {
    let Some(vnf) = VnfNode::find(definitions) else {
        return Ok(Vec::new());
    };
    let mut hooks: Vec<Hook> = Vec::new();
    for node in vnf.templates() {
        for (name, body) in operations(*node) {
            let body = Located {
                file: node.file,
                node: body,
            };
            let (Some((operation, moment)), Some(by)) = (named(name), implementation(body.node))
            else {
                continue;
            };
            let file = file(*node, body, name, by, source)?;
            let hook = hook((name, operation, moment), body, file, source, vdus)?;
            let twice = hooks
                .iter()
                .any(|known| (known.operation.as_str(), known.moment) == (operation, moment));
            if twice {
                return Err(body.error(format!("hook {name} is declared twice")));
            }
            hooks.push(hook);
        }
    }
    Ok(hooks)
}

fn hook(
    (name, operation, moment): (&str, &'static str, Moment),
    body: Located<'_>,
    file: String,
    source: &Source<'_>,
    vdus: &BTreeSet<&str>,
) -> Result<Hook, PackageError> {
    let job = job(&file, name, source)?;
    let inputs = Inputs {
        hook: name,
        given: body.get("inputs"),
        body,
        vdus,
    };
    inputs.must_be_known()?;
    let items = inputs.items()?;
    if matches!(items, Items::PerVnfc { .. }) && operation == "instantiate" {
        return Err(inputs.wrong(
            "items",
            "{per: vnfc} cannot be used with instantiate: no VNFC exists when its plan is made; use {per: vdu}",
        ));
    }
    let hook = Hook {
        operation: operation.to_owned(),
        moment,
        name: name.to_owned(),
        file,
        job: job.value,
        items,
        parallel: inputs.flag("parallel")?,
        clock_ms: inputs.clock()?,
        result: inputs.result()?,
        register_vim: inputs.flag("register_vim")?,
    };
    if hook.register_vim && (moment.is_rollback() || matches!(hook.result, ResultFrom::Secret(_))) {
        return Err(inputs.wrong(
            "register_vim",
            "needs a termination message as result, and a hook that is none of a rollback",
        ));
    }
    Ok(hook)
}

/// The path of the file that implements a hook: named as such, or through an artifact of the node.
fn file(
    node: Located<'_>,
    body: Located<'_>,
    name: &str,
    by: &str,
    source: &Source<'_>,
) -> Result<String, PackageError> {
    let artifact = node
        .node
        .at(&["artifacts", by, "file"])
        .and_then(Node::text);
    let reference = artifact.unwrap_or(by);
    let places = [resolve(body.file, reference), resolve("", reference)];
    let found = places
        .into_iter()
        .flatten()
        .find(|path| source.files.contains_key(path));
    found.ok_or_else(|| {
        body.error(format!(
            "hook {name} is implemented by {}, which is not in the package",
            quoted(reference)
        ))
    })
}

fn job(file: &str, name: &str, source: &Source<'_>) -> Result<Manifest, PackageError> {
    let wrong = |line: Option<usize>, why: &str| {
        let error = PackageError::new(ErrorKind::Manifest, format!("hook {name}: {why}"));
        let error = error.in_file(file);
        line.map_or(error.clone(), |line| error.at_line(line))
    };
    let mut found = manifests::read(file, source)?.into_iter();
    let (Some(job), None) = (found.next(), found.next()) else {
        return Err(wrong(None, "the file must hold one object, a Job"));
    };
    let wrong = |why: &str| wrong(Some(job.line), why);
    if (job.api_version(), job.kind()) != ("batch/v1", "Job") {
        return Err(wrong("the object must be a Job of batch/v1"));
    }
    if job.namespace().is_some() {
        return Err(wrong(
            "the Job must not name a namespace: it runs where the VNF goes",
        ));
    }
    if !is_name(job.name()) {
        return Err(wrong(
            "metadata.name must be at most 63 lower-case letters, digits and hyphens",
        ));
    }
    let pod = job.value.pointer("/spec/template/spec");
    let containers = pod.and_then(|pod| pod["containers"].as_array());
    if containers.is_none_or(Vec::is_empty) {
        return Err(wrong("spec.template.spec.containers is missing or empty"));
    }
    let restarts = pod.and_then(|pod| pod["restartPolicy"].as_str());
    if !matches!(restarts, Some("Never" | "OnFailure")) {
        return Err(wrong(
            "spec.template.spec.restartPolicy must be Never or OnFailure",
        ));
    }
    if job.value["spec"]["suspend"] == true {
        return Err(wrong("spec.suspend is true: the Job would never run"));
    }
    if job.value.to_string().len() > LARGEST {
        return Err(wrong("the Job is larger than 64 KiB"));
    }
    Ok(job)
}

/// A label of RFC 1123, which names of pods are made from.
fn is_name(name: &str) -> bool {
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&name.len())
        && name.chars().all(inside)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// The inputs of a hook.
struct Inputs<'a> {
    hook: &'a str,
    given: Option<Located<'a>>,
    body: Located<'a>,
    /// The VDUs of the VNFD.
    vdus: &'a BTreeSet<&'a str>,
}

impl<'a> Inputs<'a> {
    fn get(&self, name: &str) -> Option<Located<'a>> {
        self.given?.get(name)
    }

    fn wrong(&self, input: &str, why: &str) -> PackageError {
        let place = self.get(input).or(self.given).unwrap_or(self.body);
        self.at(place, input, why)
    }

    fn at(&self, place: Located<'_>, input: &str, why: &str) -> PackageError {
        place.error(format!("hook {}: input {input} {why}", self.hook))
    }

    fn must_be_known(&self) -> Result<(), PackageError> {
        for (name, _) in self.given.into_iter().flat_map(Located::members) {
            if !INPUTS.contains(&name.as_str()) {
                let why = format!("is not known; inputs are {}", INPUTS.join(", "));
                return Err(self.wrong(name, &why));
            }
        }
        Ok(())
    }

    fn items(&self) -> Result<Items, PackageError> {
        let must = "must be a list of texts, {per: vdu} or {per: vnfc}";
        let Some(stated) = self.get("items") else {
            return Ok(Items::Once);
        };
        if let Some(items) = stated.node.sequence() {
            return self.listed(items);
        }
        let per = stated.get("per").and_then(|per| per.node.text());
        match per {
            Some("vdu") => {
                self.only(stated, "items", &["per"])?;
                Ok(Items::PerVdu)
            }
            Some("vnfc") => {
                self.only(stated, "items", &["per", "vdu"])?;
                let vdu = stated.get("vdu").map(|vdu| self.vdu(vdu)).transpose()?;
                Ok(Items::PerVnfc { vdu })
            }
            Some(_) | None => Err(self.wrong("items", must)),
        }
    }

    /// Refuses members of an input that mean nothing: one that is misspelt would be left out in silence.
    fn only(&self, stated: Located<'a>, input: &str, known: &[&str]) -> Result<(), PackageError> {
        match stated
            .members()
            .find(|(name, _)| !known.contains(&name.as_str()))
        {
            Some((name, place)) => {
                let why = format!(
                    "has the member {}, which is not known; here it may have {}",
                    quoted(name),
                    known.join(" and ")
                );
                Err(self.at(place, input, &why))
            }
            None => Ok(()),
        }
    }

    /// A VDU that the VNFD has: for another one the hook would never run.
    fn vdu(&self, stated: Located<'a>) -> Result<String, PackageError> {
        match stated.node.text() {
            Some(vdu) if self.vdus.contains(vdu) => Ok(vdu.to_owned()),
            other => {
                let vdus: Vec<&str> = self.vdus.iter().copied().collect();
                let there = if vdus.is_empty() {
                    "none".to_owned()
                } else {
                    vdus.join(", ")
                };
                let why = format!(
                    "names the VDU {}, which the VNFD does not have; it has {there}",
                    quoted(other.unwrap_or_default())
                );
                Err(self.at(stated, "items", &why))
            }
        }
    }

    fn listed(&self, items: &[Node]) -> Result<Items, PackageError> {
        let mut listed: Vec<String> = Vec::with_capacity(items.len());
        for item in items {
            let text = item.text().filter(|text| {
                (1..=253).contains(&text.len()) && !text.chars().any(char::is_control)
            });
            let Some(text) = text else {
                return Err(self.wrong("items", "must be texts of 1 to 253 characters"));
            };
            if listed.iter().any(|known| known == text) {
                let why = format!("names {} twice", quoted(text));
                return Err(self.wrong("items", &why));
            }
            listed.push(text.to_owned());
        }
        if listed.is_empty() || listed.len() > MOST_ITEMS {
            return Err(self.wrong("items", &format!("must be 1 to {MOST_ITEMS}")));
        }
        Ok(Items::Listed(listed))
    }

    fn flag(&self, name: &str) -> Result<bool, PackageError> {
        match self.get(name).map(|flag| flag.node.to_json()) {
            None => Ok(false),
            Some(serde_json::Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(self.wrong(name, "must be true or false")),
        }
    }

    fn clock(&self) -> Result<Option<u64>, PackageError> {
        let Some(stated) = self.get("clock") else {
            return Ok(None);
        };
        let read = stated.node.text().and_then(parse_duration_ms);
        match read.filter(|ms| (1..=LONGEST_MS).contains(ms)) {
            Some(ms) => Ok(Some(ms)),
            None => Err(self.wrong(
                "clock",
                "must be a duration such as 30s, 5m or 1h, at most 7 days",
            )),
        }
    }

    fn result(&self) -> Result<ResultFrom, PackageError> {
        let must = "must be termination-message or {secret: NAME}";
        let Some(stated) = self.get("result") else {
            return Ok(ResultFrom::Optional);
        };
        match &stated.node.kind {
            Kind::Scalar { text, .. } if text == "termination-message" => {
                Ok(ResultFrom::TerminationMessage)
            }
            Kind::Mapping(_) => {
                self.only(stated, "result", &["secret"])?;
                let name = stated.get("secret").and_then(|name| name.node.text());
                let legal = |name: &&str| name.split('.').all(is_name) && name.len() <= 253;
                match name.filter(legal) {
                    Some(name) => Ok(ResultFrom::Secret(name.to_owned())),
                    None => Err(self.wrong("result", must)),
                }
            }
            Kind::Scalar { .. } | Kind::Sequence(_) => Err(self.wrong("result", must)),
        }
    }
}
