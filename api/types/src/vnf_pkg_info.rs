//! `VnfPkgInfo` (SOL003 10.5.2.2, SOL005 9.5.2.5).

use crate::link::Link;
use crate::problem_details::ProblemDetails;
use crate::public_url::PublicUrl;
use cairn_domain::ports::{OnboardingState, PackageArtifact, PackageRecord};
use cairn_domain::vnfd::Vnfd;
use serde::Serialize;
use serde_json::{Map, Value};

/// SOL003 10.5.2.2.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VnfPkgInfo {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    product: Option<Product>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<Checksum>,
    package_security_option: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    additional_artifacts: Vec<VnfPackageArtifactInfo>,
    onboarding_state: OnboardingState,
    operational_state: &'static str,
    usage_state: &'static str,
    vnfm_info: Vec<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    user_defined_data: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    onboarding_failure_details: Option<ProblemDetails>,
    #[serde(rename = "_links")]
    links: Links,
}

/// What the VNFD says of the product; there once the package is ONBOARDED.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Product {
    vnfd_id: String,
    vnf_provider: String,
    vnf_product_name: String,
    vnf_software_version: String,
    vnfd_version: String,
}

/// SOL003 4.4.1.8.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Checksum {
    algorithm: &'static str,
    hash: String,
}

/// SOL003 10.5.3.3.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct VnfPackageArtifactInfo {
    artifact_path: String,
    checksum: Checksum,
    is_encrypted: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Links {
    #[serde(rename = "self")]
    myself: Link,
    #[serde(skip_serializing_if = "Option::is_none")]
    vnfd: Option<Link>,
    package_content: Link,
}

impl VnfPkgInfo {
    /// The record as it is shown under `/vnfpkgm/{major}`; `in_use`: an instance of it exists.
    #[must_use]
    pub fn of(record: &PackageRecord, in_use: bool, url: &PublicUrl, major: &str) -> Self {
        let PackageRecord {
            id,
            onboarding_state,
            enabled,
            vnfd,
            checksum,
            artifacts,
            failure,
            user_defined_data,
            created_at: _,
        } = record;
        let myself = url.vnf_package(major, id.as_str());
        Self {
            id: id.to_string(),
            product: vnfd.as_ref().map(product),
            checksum: checksum.clone().map(sha256),
            package_security_option: "OPTION_1",
            additional_artifacts: artifacts.iter().map(artifact).collect(),
            onboarding_state: *onboarding_state,
            operational_state: operational_state(*enabled),
            usage_state: if in_use { "IN_USE" } else { "NOT_IN_USE" },
            vnfm_info: vnfd
                .as_ref()
                .map_or_else(Vec::new, |vnfd| vnfd.vnfm_info.clone()),
            user_defined_data: user_defined_data.clone(),
            onboarding_failure_details: failure.clone().map(ProblemDetails::from),
            links: Links {
                vnfd: vnfd.as_ref().map(|_| Link::to(format!("{myself}/vnfd"))),
                package_content: Link::to(format!("{myself}/package_content")),
                myself: Link::to(myself),
            },
        }
    }
}

/// SOL003 10.5.4.4 `PackageOperationalStateType`.
#[must_use]
pub fn operational_state(enabled: bool) -> &'static str {
    if enabled { "ENABLED" } else { "DISABLED" }
}

fn product(vnfd: &Vnfd) -> Product {
    Product {
        vnfd_id: vnfd.vnfd_id.clone(),
        vnf_provider: vnfd.provider.clone(),
        vnf_product_name: vnfd.product_name.clone(),
        vnf_software_version: vnfd.software_version.clone(),
        vnfd_version: vnfd.descriptor_version.clone(),
    }
}

fn artifact(artifact: &PackageArtifact) -> VnfPackageArtifactInfo {
    let PackageArtifact {
        path,
        sha256: hash,
        size: _,
    } = artifact;
    VnfPackageArtifactInfo {
        artifact_path: path.clone(),
        checksum: sha256(hash.clone()),
        is_encrypted: false,
    }
}

fn sha256(hash: String) -> Checksum {
    Checksum {
        algorithm: "SHA-256",
        hash,
    }
}
