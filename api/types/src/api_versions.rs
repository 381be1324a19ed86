//! `ApiVersionInformation` (SOL013 9.2).

use serde::Serialize;

/// The `vnflcm` version that is spoken (SOL003 v3.3.1).
pub const VNFLCM: &str = "2.0.0";
/// The `vnfpkgm` version that is spoken (SOL003 v3.3.1).
pub const VNFPKGM: &str = "2.1.0";

/// Which versions an API is served in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiVersionInformation {
    /// Prefix of the API's URIs.
    pub uri_prefix: String,
    /// The versions.
    pub api_versions: Vec<ApiVersion>,
}

/// One version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiVersion {
    /// Its number.
    pub version: &'static str,
    /// It will be withdrawn.
    pub is_deprecated: bool,
}

impl ApiVersionInformation {
    /// Of `vnflcm`, below the path of the public base.
    #[must_use]
    pub fn vnflcm(url: &crate::PublicUrl) -> Self {
        Self::of(url, "vnflcm", VNFLCM)
    }

    /// Of `vnfpkgm`.
    #[must_use]
    pub fn vnfpkgm(url: &crate::PublicUrl) -> Self {
        Self::of(url, "vnfpkgm", VNFPKGM)
    }

    fn of(url: &crate::PublicUrl, api: &str, version: &'static str) -> Self {
        Self {
            uri_prefix: url.at(&format!("/{api}/v2")),
            api_versions: vec![ApiVersion {
                version,
                is_deprecated: false,
            }],
        }
    }
}
