//! How clusters are reached, and what is said when they are not.

use crate::bench::kubeconfig;
use cairn_domain::ids::{VimId, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::ports::{ContainerPlatform as _, PortError, Scope, SurveyOutcome, SurveyRequest};
use cairn_domain::secret::Secret;
use cairn_domain::vim::{ClusterAccess, Credential};
use cairn_domain::waits::Obstacle;
use cairn_kubernetes::{ConfiguredCluster, KubernetesPlatform, Settings};
use kube::config::Kubeconfig;
use serde_json::json;
use std::path::Path;

fn scope(access: ClusterAccess) -> Scope {
    Scope {
        access,
        instance: VnfInstanceId::parse("vnf").unwrap(),
        operation: VnfLcmOpOccId::parse("op").unwrap(),
        known_operations: Vec::new(),
        recorded_uids: Vec::new(),
        package_digest: String::new(),
        namespace: "default".into(),
        take_over: false,
        since: cairn_domain::time::Timestamp::from_millis(0),
        look_only: false,
    }
}

async fn survey(
    platform: &KubernetesPlatform,
    access: ClusterAccess,
) -> Result<String, Vec<Obstacle>> {
    match platform
        .survey(&scope(access), &SurveyRequest::default())
        .await
    {
        SurveyOutcome::Clear(survey) => Ok(survey.cluster_uid),
        SurveyOutcome::Blocked(obstacles) => Err(obstacles),
    }
}

/// Address and authority of the real cluster.
fn real() -> Option<(String, String, std::path::PathBuf)> {
    let path = kubeconfig()?;
    let config = Kubeconfig::read_from(&path).unwrap();
    let cluster = config.clusters[0].cluster.clone().unwrap();
    let ca = std::fs::read_to_string(path.parent().unwrap().join("pki/ca.crt")).unwrap();
    Some((cluster.server.unwrap(), ca, path))
}

fn direct(endpoint: &str, ca_pem: Option<String>, credential: Credential) -> ClusterAccess {
    ClusterAccess::Direct {
        endpoint: endpoint.into(),
        ca_pem,
        credential,
    }
}

fn certificate(path: &Path) -> Credential {
    let read = |name: &str| {
        std::fs::read_to_string(path.parent().unwrap().join("pki").join(name)).unwrap()
    };
    Credential::ClientCertificate {
        certificate: read("admin.crt"),
        key: Secret::new(read("admin.key")),
    }
}

#[tokio::test]
async fn a_client_certificate_opens_the_cluster() {
    let Some((endpoint, ca, path)) = real() else {
        return;
    };
    let platform = KubernetesPlatform::new(Settings::default());
    let access = direct(&endpoint, Some(ca), certificate(&path));
    let uid = survey(&platform, access.clone()).await.unwrap();
    assert_eq!(survey(&platform, access).await.unwrap(), uid);
}

#[tokio::test]
async fn a_wrong_token_is_told_apart_from_a_wrong_authority() {
    let Some((endpoint, ca, path)) = real() else {
        return;
    };
    let platform = KubernetesPlatform::new(Settings::default());
    let wrong = Credential::BearerToken(Secret::new("wrong"));
    let told = survey(&platform, direct(&endpoint, Some(ca), wrong))
        .await
        .unwrap_err();
    assert_eq!(told[0].reason, "Unauthorized");
    assert!(told[0].message.contains("credentials"), "{told:?}");
    let none = direct(&endpoint, None, certificate(&path));
    let told = survey(&platform, none).await.unwrap_err();
    assert_eq!(told[0].reason, "Unreachable");
    assert!(
        told[0].message.contains("not signed by a public authority"),
        "{told:?}"
    );
    // Somebody's certificate, but not of who signed the server's.
    let stranger = std::fs::read_to_string(path.with_file_name("pki/admin.crt")).unwrap();
    let other = direct(&endpoint, Some(stranger), certificate(&path));
    let told = survey(&platform, other).await.unwrap_err();
    assert_eq!(told[0].reason, "Unreachable");
    assert!(
        told[0]
            .message
            .contains("not signed by the given authority (interfaceInfo.ssl_ca_cert)"),
        "{told:?}"
    );
}

#[tokio::test]
async fn nobody_at_the_address_is_unreachable() {
    let platform = KubernetesPlatform::new(Settings::default());
    let told = survey(
        &platform,
        direct("http://127.0.0.1:1", None, Credential::None),
    )
    .await
    .unwrap_err();
    assert_eq!(
        (told[0].object.as_str(), told[0].reason.as_str()),
        ("cluster", "Unreachable")
    );
    let access = ClusterAccess::Configured(VimId::parse("unknown").unwrap());
    let told = survey(&platform, access).await.unwrap_err();
    assert!(told[0].message.contains("unknown"), "{told:?}");
}

#[tokio::test]
async fn a_token_file_is_read_anew_when_the_cluster_refuses() {
    let Some((endpoint, ca, path)) = real() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let token = text
        .split("token: ")
        .nth(1)
        .unwrap()
        .split(['}', '\n'])
        .next()
        .unwrap()
        .trim();
    std::fs::write(folder.path().join("ca.crt"), ca).unwrap();
    std::fs::write(folder.path().join("token"), "stale").unwrap();
    let file = folder.path().join("kubeconfig");
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         clusters: [{{name: a, cluster: {{server: '{endpoint}', certificate-authority: ca.crt}}}}]\n\
         users: [{{name: a, user: {{tokenFile: token}}}}]\n"
    );
    std::fs::write(&file, config).unwrap();
    let vim = VimId::parse("a").unwrap();
    let platform = KubernetesPlatform::new(Settings::default())
        .with_configured(vim.clone(), ConfiguredCluster::kubeconfig(&file));
    let told = survey(&platform, ClusterAccess::Configured(vim.clone()))
        .await
        .unwrap_err();
    assert_eq!(told[0].reason, "Unauthorized");
    std::fs::write(folder.path().join("token"), token).unwrap();
    survey(&platform, ClusterAccess::Configured(vim))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_kubeconfig_may_say_that_certificates_are_not_looked_at() {
    let Some((endpoint, _, path)) = real() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let token = text
        .split("token: ")
        .nth(1)
        .unwrap()
        .split(['}', '\n'])
        .next()
        .unwrap()
        .trim();
    let file = folder.path().join("kubeconfig");
    let vim = VimId::parse("a").unwrap();
    for (skip, is_open) in [("true", true), ("false", false)] {
        let config = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: '{endpoint}', insecure-skip-tls-verify: {skip}}}}}]\n\
             users: [{{name: a, user: {{token: {token}}}}}]\n"
        );
        std::fs::write(&file, config).unwrap();
        let platform = KubernetesPlatform::new(Settings::default())
            .with_configured(vim.clone(), ConfiguredCluster::kubeconfig(&file));
        let found = survey(&platform, ClusterAccess::Configured(vim.clone())).await;
        assert_eq!(found.is_ok(), is_open, "{found:?}");
    }
}

#[tokio::test]
async fn an_account_that_may_too_little_is_told_what_it_lacks() {
    let Some((endpoint, ca, _)) = real() else {
        return;
    };
    let Some(bench) = crate::bench::real("account").await else {
        return;
    };
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "little"}});
    bench
        .post(&bench.path("serviceaccounts", ""), account)
        .await;
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let path = format!("{}/token", bench.path("serviceaccounts", "little"));
    let token = bench.post(&path, request).await["status"]["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let access = direct(
        &endpoint,
        Some(ca),
        Credential::BearerToken(Secret::new(token)),
    );
    let told = survey(&bench.platform, access.clone()).await.unwrap_err();
    assert_eq!(told[0].reason, "Forbidden");
    assert!(
        told[0].message.contains("no permission") && told[0].message.contains("kube-system"),
        "{told:?}"
    );
    let workloads = vec![(
        "VDU1".to_owned(),
        bench.object(&crate::objects::deployment("web", 1, "cairn.test/web:1")),
    )];
    let refused = bench
        .platform
        .inventory(&scope(access), &workloads)
        .await
        .unwrap_err();
    assert!(matches!(refused, PortError::Refused(_)), "{refused}");
    bench.done().await;
}
