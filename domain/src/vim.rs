//! Where a VNF runs: `vimConnectionInfo` (SOL003 4.4.1.6) and registered VIMs.

use crate::ids::VimId;
use crate::secret::{SealedSecret, Secret, SecretRef, reference, seal};
use crate::vnfd::is_sensitive;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The types of VIM that Cairn drives (SOL003 annex), with the synonym that Tacker's clients send.
pub const VIM_TYPES: [&str; 2] = ["ETSINFV.KUBERNETES.V_1", "kubernetes"];

/// A VIM as it is registered or sent: JSON members as SOL003 names them, secrets sealed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VimConnectionInfo {
    /// Name of the VIM. Without an endpoint it must be a registered one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vim_id: Option<VimId>,
    /// One of [`VIM_TYPES`].
    pub vim_type: String,
    /// `endpoint` (URL) and `ssl_ca_cert` (PEM).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub interface_info: Map<String, Value>,
    /// `bearer_token`, or `client_certificate` and `client_key` (PEM); sealed.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub access_info: Map<String, Value>,
    /// What else is known of it: `registeredBy`, the operation whose hook registered it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// Member of `extra` that names the operation that registered a VIM.
pub const REGISTERED_BY: &str = "registeredBy";

/// Access to a cluster as a Secret holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundAccess {
    /// The address, where the Secret says one.
    pub endpoint: Option<String>,
    /// PEM, where the Secret holds one.
    pub ca_pem: Option<String>,
    /// How to authenticate.
    pub credential: Credential,
}

/// Why a connection cannot be used as it was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVim {
    /// The entry is not of the form of SOL003 4.4.1.6.
    #[error("vimConnectionInfo: {0}")]
    Malformed(String),
    /// The type is not one we drive.
    #[error("vimType {got:?} is not supported; use ETSINFV.KUBERNETES.V_1")]
    Type {
        /// What was sent.
        got: String,
    },
    /// There is neither an endpoint nor a name of a registered VIM.
    #[error("vimConnectionInfo needs interfaceInfo.endpoint, or the vimId of a registered VIM")]
    NoTarget,
    /// `accessInfo` names half a credential.
    #[error("accessInfo needs bearer_token, or client_certificate together with client_key")]
    Credential,
    /// `accessInfo` holds two credentials, as after a patch that adds one and leaves the other.
    #[error(
        "accessInfo holds bearer_token and a client certificate; give one of them, and in a PATCH set the members of the other to null"
    )]
    TwoCredentials,
    /// The endpoint, which answers show, holds a user or a password.
    #[error("interfaceInfo.endpoint must hold no user and password; credentials go to accessInfo")]
    UserInfo,
    /// The authority is not in PEM.
    #[error(
        "interfaceInfo.ssl_ca_cert must be one or more certificates in PEM (-----BEGIN CERTIFICATE-----)"
    )]
    NoCertificate,
    /// A member has the wrong form.
    #[error("vimConnectionInfo: {member} must be a text")]
    NotText {
        /// Name of the member.
        member: &'static str,
    },
}

/// What a credential is, with its secret still in the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SealedCredential {
    /// Nothing is sent.
    None,
    /// `Authorization: Bearer`.
    BearerToken(SecretRef),
    /// TLS client authentication.
    ClientCertificate {
        /// PEM, not secret.
        certificate: String,
        /// PEM, in the vault.
        key: SecretRef,
    },
}

/// A parsed entry: the address itself, or the name of a registered VIM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VimTarget {
    /// The registered VIM of this name.
    Registered(VimId),
    /// An address of its own.
    Direct {
        /// `https://host:port`.
        endpoint: String,
        /// PEM, one or more certificates.
        ca_pem: Option<String>,
        /// How to authenticate.
        credential: SealedCredential,
    },
}

/// How the platform adapter reaches a cluster: what the engine made of a [`VimTarget`] and the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterAccess {
    /// A cluster that the adapter was started with (kubeconfig or simulated).
    Configured(VimId),
    /// A cluster by address.
    Direct {
        /// `https://host:port`.
        endpoint: String,
        /// PEM, one or more certificates; absent: the public roots.
        ca_pem: Option<String>,
        /// How to authenticate.
        credential: Credential,
    },
}

/// A credential in the clear, for the adapter alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// Nothing is sent.
    None,
    /// `Authorization: Bearer`.
    BearerToken(Secret),
    /// TLS client authentication, PEM.
    ClientCertificate {
        /// The certificate.
        certificate: String,
        /// Its key.
        key: Secret,
    },
}

impl VimConnectionInfo {
    /// Reads one entry of a `vimConnectionInfo` map, or the body of a registration.
    ///
    /// # Errors
    ///
    /// [`InvalidVim`] saying which member is wrong.
    pub fn parse(entry: &Value) -> Result<Self, InvalidVim> {
        let info: Self = serde_json::from_value(entry.clone())
            .map_err(|e| InvalidVim::Malformed(e.to_string()))?;
        info.check()?;
        Ok(info)
    }

    /// Whether it can be used: its type, its address, its credential.
    fn check(&self) -> Result<(), InvalidVim> {
        if !VIM_TYPES.contains(&self.vim_type.as_str()) {
            return Err(InvalidVim::Type {
                got: self.vim_type.clone(),
            });
        }
        let VimTarget::Direct {
            endpoint, ca_pem, ..
        } = self.target()?
        else {
            return Ok(());
        };
        let (_, rest) = endpoint.split_once("://").unwrap_or_default();
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(InvalidVim::UserInfo);
        }
        match ca_pem {
            Some(pem) if !is_certificates(&pem) => Err(InvalidVim::NoCertificate),
            Some(_) | None => Ok(()),
        }
    }

    /// Where it points to. With an endpoint it stands alone and `vimId` is a mere name.
    ///
    /// # Errors
    ///
    /// [`InvalidVim`] saying which member is wrong or missing.
    pub fn target(&self) -> Result<VimTarget, InvalidVim> {
        let Some(endpoint) = text(&self.interface_info, "endpoint")? else {
            return self
                .vim_id
                .clone()
                .map(VimTarget::Registered)
                .ok_or(InvalidVim::NoTarget);
        };
        if !endpoint.starts_with("https://") && !endpoint.starts_with("http://") {
            return Err(InvalidVim::Malformed(
                "interfaceInfo.endpoint must be a URL".into(),
            ));
        }
        Ok(VimTarget::Direct {
            endpoint,
            ca_pem: text(&self.interface_info, "ssl_ca_cert")?,
            credential: self.credential()?,
        })
    }

    fn credential(&self) -> Result<SealedCredential, InvalidVim> {
        let token = self.access_info.get("bearer_token").and_then(reference);
        let key = self.access_info.get("client_key").and_then(reference);
        let certificate = text(&self.access_info, "client_certificate")?;
        match (token, certificate, key) {
            (Some(token), None, None) => Ok(SealedCredential::BearerToken(token)),
            (None, Some(certificate), Some(key)) => {
                Ok(SealedCredential::ClientCertificate { certificate, key })
            }
            (None, None, None) => Ok(SealedCredential::None),
            (Some(_), _, _) => Err(InvalidVim::TwoCredentials),
            (None, Some(_), None) | (None, None, Some(_)) => Err(InvalidVim::Credential),
        }
    }
}

/// A change of a registered VIM: each part that is given replaces the old one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VimChange {
    /// Where it is.
    pub interface_info: Option<Map<String, Value>>,
    /// With which credential it is reached; sealed.
    pub access_info: Option<Map<String, Value>>,
}

impl VimChange {
    /// The VIM after it.
    ///
    /// # Errors
    ///
    /// [`InvalidVim`] saying which member is wrong or missing.
    pub fn applied_to(self, info: VimConnectionInfo) -> Result<VimConnectionInfo, InvalidVim> {
        let changed = VimConnectionInfo {
            interface_info: self.interface_info.unwrap_or(info.interface_info),
            access_info: self.access_info.unwrap_or(info.access_info),
            ..info
        };
        changed.check()?;
        Ok(changed)
    }
}

/// Takes the secrets out of an `accessInfo`: everything but the certificate, which every handshake shows. What is not
/// read may be a credential of any name.
pub fn seal_access(
    access_info: &mut Value,
    fresh: &mut dyn FnMut() -> SecretRef,
) -> Vec<SealedSecret> {
    seal(access_info, &|name| name != "client_certificate", fresh)
}

/// Takes the secrets out of a `vimConnectionInfo` map. The keys of the entries are names that users chose, and hide
/// nothing, whatever they sound like.
pub fn seal_vims(vims: &mut Value, fresh: &mut dyn FnMut() -> SecretRef) -> Vec<SealedSecret> {
    let mut sealed = Vec::new();
    for entry in vims.as_object_mut().into_iter().flat_map(Map::values_mut) {
        let access = entry
            .as_object_mut()
            .and_then(|members| members.remove("accessInfo"));
        sealed.extend(seal(entry, &|name| is_sensitive(name, &[]), fresh));
        if let (Some(mut access), Some(members)) = (access, entry.as_object_mut()) {
            sealed.extend(seal_access(&mut access, fresh));
            members.insert("accessInfo".to_owned(), access);
        }
    }
    sealed
}

/// Whether a text is one or more certificates in PEM: what stands between the marks is base64. Whether that is a
/// certificate, who reads it will say.
fn is_certificates(pem: &str) -> bool {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let is_base64 = |body: &str| {
        let mut bytes = body.bytes().filter(|b| !b.is_ascii_whitespace()).peekable();
        bytes.peek().is_some()
            && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='))
    };
    let mut parts = pem.split(BEGIN);
    let before = parts.next().unwrap_or_default();
    let mut bodies = parts.peekable();
    !before.contains("-----BEGIN")
        && bodies.peek().is_some()
        && bodies.all(|part| {
            part.split_once(END)
                .is_some_and(|(body, _)| is_base64(body))
        })
}

fn text(members: &Map<String, Value>, name: &'static str) -> Result<Option<String>, InvalidVim> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(InvalidVim::NotText { member: name }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(interface: &Value, access: &Value) -> Value {
        json!({"vimType": "ETSINFV.KUBERNETES.V_1", "interfaceInfo": interface, "accessInfo": access})
    }

    #[test]
    fn an_entry_with_an_endpoint_stands_alone() {
        let info = VimConnectionInfo::parse(&entry(
            &json!({"endpoint": "https://a:6443"}),
            &json!({"bearer_token": {"$secret": "s1"}}),
        ))
        .unwrap();
        assert_eq!(
            info.target().unwrap(),
            VimTarget::Direct {
                endpoint: "https://a:6443".into(),
                ca_pem: None,
                credential: SealedCredential::BearerToken(SecretRef("s1".into())),
            }
        );
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_the_member() {
        for (bad, why) in [
            (
                json!({"vimType": "OPENSTACK"}),
                "vimType \"OPENSTACK\" is not supported",
            ),
            (
                json!({"vimType": "kubernetes"}),
                "needs interfaceInfo.endpoint",
            ),
            (
                entry(&json!({"endpoint": 7}), &json!({})),
                "endpoint must be a text",
            ),
            (
                entry(
                    &json!({"endpoint": "https://a"}),
                    &json!({"client_certificate": "x"}),
                ),
                "together with client_key",
            ),
            (
                entry(
                    &json!({"endpoint": "https://a"}),
                    &json!({"bearer_token": {"$secret": "s1"}, "client_certificate": "x"}),
                ),
                "set the members of the other to null",
            ),
            (
                entry(&json!({"endpoint": "https://u:pw@a:6443"}), &json!({})),
                "no user and password",
            ),
            (json!({"vimId": "a"}), "missing field `vimType`"),
            (
                entry(
                    &json!({"endpoint": "https://a", "ssl_ca_cert": "/etc/ssl/ca.pem"}),
                    &json!({}),
                ),
                "ssl_ca_cert must be one or more certificates in PEM",
            ),
            (
                entry(
                    &json!({"endpoint": "https://a",
                        "ssl_ca_cert": "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----"}),
                    &json!({}),
                ),
                "ssl_ca_cert must be one or more certificates in PEM",
            ),
        ] {
            let refused = VimConnectionInfo::parse(&bad).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused} should say {why}");
        }
    }

    #[test]
    fn several_certificates_and_words_between_them_are_an_authority() {
        let one = "# mine\n-----BEGIN CERTIFICATE-----\nMIIB+/==\n-----END CERTIFICATE-----\n";
        assert!(is_certificates(&format!("{one}\n{one}")));
        assert!(!is_certificates(&format!(
            "-----BEGIN PRIVATE KEY-----\n{one}"
        )));
        assert!(!is_certificates(""));
    }

    #[test]
    fn a_change_replaces_the_parts_that_it_gives_and_is_checked_whole() {
        let info = VimConnectionInfo::parse(&entry(
            &json!({"endpoint": "https://a:6443"}),
            &json!({"bearer_token": {"$secret": "s1"}}),
        ))
        .unwrap();
        let members = |value: Value| value.as_object().cloned();
        let certificate = VimChange {
            interface_info: None,
            access_info: members(
                json!({"client_certificate": "x", "client_key": {"$secret": "s2"}}),
            ),
        };
        let changed = certificate.applied_to(info.clone()).unwrap();
        assert_eq!(changed.interface_info, info.interface_info);
        assert!(matches!(
            changed.target().unwrap(),
            VimTarget::Direct {
                credential: SealedCredential::ClientCertificate { .. },
                ..
            }
        ));
        let half = VimChange {
            interface_info: members(json!({"endpoint": "nowhere"})),
            access_info: None,
        };
        assert!(half.applied_to(info).is_err());
    }
}
