//! Access to a cluster as a Secret holds it: a kubeconfig, as Cluster API writes it, or single members.

use crate::client::Session;
use crate::discovery::Located;
use crate::errors::{Halt, Try};
use crate::json;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_domain::object::ObjectRef;
use cairn_domain::ports::Scope;
use cairn_domain::secret::Secret;
use cairn_domain::vim::{Credential, FoundAccess};
use cairn_domain::waits::Obstacle;
use kube::config::Kubeconfig;
use serde_json::Value;
use std::collections::BTreeMap;

/// A Secret in the namespace of the VNF.
pub(crate) async fn secret_at(session: &Session, scope: &Scope, name: &str) -> Try<Located> {
    let object = ObjectRef {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: Some(scope.namespace.clone()),
        name: name.to_owned(),
    };
    let kind = session
        .builtin("v1", "Secret")
        .await
        .map_err(|e| e.reading(object.to_string()))?;
    Ok(Located { kind, object })
}

/// The access that a Secret holds.
pub(crate) async fn access_in(session: &Session, scope: &Scope, name: &str) -> Try<FoundAccess> {
    let at = secret_at(session, scope, name).await?;
    let object = at.object.to_string();
    let refused = |reason: &str, message: String| {
        Halt::InTheWay(vec![Obstacle {
            object: object.clone(),
            source: "Secret".into(),
            reason: reason.into(),
            message,
            progress: 0,
        }])
    };
    let Some(secret) = session.read(&at).await.map_err(|e| e.reading(&object))? else {
        let message = "a hook's result names this Secret, and it does not exist".to_owned();
        return Err(refused("ResultMissing", message));
    };
    read(&secret).map_err(|why| refused("NoAccess", why))
}

fn read(secret: &Value) -> Result<FoundAccess, String> {
    let texts = texts(secret)?;
    let text = |names: &[&str]| {
        let mut found = names.iter().filter_map(|name| texts.get(*name));
        found.find(|text| !text.trim().is_empty()).cloned()
    };
    if let Some(kubeconfig) = text(&["value", "kubeconfig"]) {
        return of_kubeconfig(&kubeconfig);
    }
    let token = text(&["bearer_token", "token"]);
    let certificate = text(&["client_certificate", "tls.crt"]);
    let key = text(&["client_key", "tls.key"]);
    Ok(FoundAccess {
        endpoint: text(&["endpoint"]).map(|text| text.trim().to_owned()),
        ca_pem: text(&["ssl_ca_cert", "ca.crt"]),
        credential: credential(token, certificate, key)?,
    })
}

fn texts(secret: &Value) -> Result<BTreeMap<String, String>, String> {
    let mut texts = BTreeMap::new();
    let members = secret["data"].as_object().into_iter().flatten();
    for (name, value) in members {
        let bytes = STANDARD
            .decode(value.as_str().unwrap_or_default())
            .map_err(|_| format!("its member {name} is not base64"))?;
        // What is no text is none of the members that are read here.
        if let Ok(text) = String::from_utf8(bytes) {
            texts.insert(name.clone(), text);
        }
    }
    Ok(texts)
}

fn credential(
    token: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
) -> Result<Credential, String> {
    match (token, certificate, key) {
        (Some(token), _, _) => Ok(Credential::BearerToken(Secret::new(token.trim()))),
        (None, Some(certificate), Some(key)) => Ok(Credential::ClientCertificate {
            certificate,
            key: Secret::new(key),
        }),
        (None, _, _) => Err(
            "it holds no access: it needs a kubeconfig under value or kubeconfig, or bearer_token or token, or client_certificate and client_key"
                .to_owned(),
        ),
    }
}

fn of_kubeconfig(text: &str) -> Result<FoundAccess, String> {
    // The parser's own words may quote what it read.
    let config =
        Kubeconfig::from_yaml(text).map_err(|_| "its kubeconfig cannot be read".to_owned())?;
    // The members' types are private to kube's secrets crate; as JSON they can be read.
    let config =
        serde_json::to_value(&config).map_err(|_| "its kubeconfig cannot be read".to_owned())?;
    let named = |list: &str, name: &str| {
        json::entries(&config, list)
            .iter()
            .find(|entry| json::text(entry, "/name") == name)
            .cloned()
            .unwrap_or_default()
    };
    let context = named("/contexts", json::text(&config, "/current-context"));
    let cluster = named("/clusters", json::text(&context, "/context/cluster"));
    let user = named("/users", json::text(&context, "/context/user"));
    let endpoint = json::text(&cluster, "/cluster/server");
    if endpoint.is_empty() {
        return Err(
            "its kubeconfig has no current context with a cluster and its server".to_owned(),
        );
    }
    let decoded = |value: &Value, pointer: &str| match json::text(value, pointer) {
        "" => Ok(None),
        text => STANDARD
            .decode(text)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .map(Some)
            .ok_or_else(|| format!("{pointer} of its kubeconfig is no PEM in base64")),
    };
    let token = Some(json::text(&user, "/user/token").to_owned()).filter(|text| !text.is_empty());
    let certificate = decoded(&user, "/user/client-certificate-data")?;
    let key = decoded(&user, "/user/client-key-data")?;
    if token.is_none() && (certificate.is_none() || key.is_none()) {
        return Err(
            "the user of its kubeconfig has neither token nor client-certificate-data with client-key-data"
                .to_owned(),
        );
    }
    Ok(FoundAccess {
        endpoint: Some(endpoint.to_owned()),
        ca_pem: decoded(&cluster, "/cluster/certificate-authority-data")?,
        credential: credential(token, certificate, key)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secret(members: &[(&str, &str)]) -> Value {
        let data: serde_json::Map<String, Value> = members
            .iter()
            .map(|(name, text)| ((*name).to_owned(), json!(STANDARD.encode(text))))
            .collect();
        json!({"data": data})
    }

    #[test]
    fn a_kubeconfig_of_cluster_api_is_understood() {
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             clusters: [{{name: k, cluster: {{server: 'https://e:6443', certificate-authority-data: {ca}}}}}]\n\
             users: [{{name: u, user: {{client-certificate-data: {crt}, client-key-data: {key}}}}}]\n",
            ca = STANDARD.encode("CA"),
            crt = STANDARD.encode("CRT"),
            key = STANDARD.encode("KEY"),
        );
        let found = read(&secret(&[("value", &kubeconfig)])).unwrap();
        assert_eq!(found.endpoint.as_deref(), Some("https://e:6443"));
        assert_eq!(found.ca_pem.as_deref(), Some("CA"));
        let Credential::ClientCertificate { certificate, key } = found.credential else {
            panic!("a certificate");
        };
        assert_eq!((certificate.as_str(), key.reveal()), ("CRT", "KEY"));
    }

    #[test]
    fn single_members_are_understood_and_their_absence_is_told_without_them() {
        let found = read(&secret(&[("token", "hush\n"), ("ca.crt", "CA")])).unwrap();
        assert_eq!(
            found.credential,
            Credential::BearerToken(Secret::new("hush"))
        );
        assert_eq!(
            (found.endpoint, found.ca_pem.as_deref()),
            (None, Some("CA"))
        );
        let refused = read(&secret(&[("client_key", "hush")])).unwrap_err();
        assert!(refused.contains("bearer_token") && !refused.contains("hush"));
        let broken = read(&secret(&[("value", "hush: [")])).unwrap_err();
        assert!(!broken.contains("hush"), "{broken}");
    }
}
