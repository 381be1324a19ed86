//! What events refer to outside the log: never deleted under them, and rotated while they do.

use super::fixture::{append, at, created, of_instance, op_id, product, stores};
use super::shelf::{onboarded, status, vim};
use cairn_db::testing::databases;
use cairn_domain::ids::VimId;
use cairn_domain::ports::{EventLog, PortError, PortResult, Reliance, Unit, Vault, Vims};
use cairn_domain::secret::{Secret, SecretRef};
use cairn_domain::vim::{SealedCredential, VimChange, VimTarget};
use cairn_domain::vnf_instance::{VnfInfo, VnfInstanceEvent};
use serde_json::{Map, json};

/// How often the race is run.
const ROUNDS: usize = 20;

/// Of the two that race one wins: never both, never none.
fn one_wins(created: &PortResult<()>, deleted: &PortResult<()>) {
    match (created, deleted) {
        (Ok(()), Err(PortError::Refused(problem))) => assert_eq!(problem.status, 409),
        (Err(PortError::Conflict(_)), Ok(())) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_not_deleted_under_an_instance_that_is_being_created() {
    for test in databases().await {
        let stores = stores(&test).await;
        let id = product().vnf_pkg_id;
        for round in 0..ROUNDS {
            let mut package = onboarded(id.as_str());
            package.enabled = false;
            stores.packages.create(&package).await.unwrap();
            let name = format!("i{round}");
            let unit = Unit {
                relies_on: vec![Reliance::Package(id.clone())],
                appends: vec![of_instance(&stores.events, &name, vec![created(&name)]).await],
                ..Unit::default()
            };
            let (made, deleted) =
                tokio::join!(stores.events.append(unit), stores.packages.delete(&id));
            let made = made.map(drop);
            one_wins(&made, &deleted);
            if made.is_ok() {
                let gone = VnfInstanceEvent::VnfIdentifierDeleted {
                    at: at(3),
                    by: "anonymous".into(),
                    tenant: cairn_domain::ids::Tenant::default_tenant(),
                };
                let gone = of_instance(&stores.events, &name, vec![gone]).await;
                append(&stores.events, vec![gone]).await.unwrap();
                stores.packages.delete(&id).await.unwrap();
            }
        }
        test.remove().await;
    }
}

/// The record of an instance names this VIM, or none.
fn names(vim: Option<&str>) -> VnfInstanceEvent {
    let entry = |id: &str| {
        Map::from_iter([(
            "a".to_owned(),
            json!({"vimId": id, "vimType": "kubernetes"}),
        )])
    };
    VnfInstanceEvent::VnfInfoModified {
        at: at(1),
        op: op_id("o"),
        info: VnfInfo {
            vim_connection_info: vim.map(entry).unwrap_or_default(),
            ..VnfInfo::default()
        },
        overlay: Map::new(),
        product: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vim_is_not_deleted_under_an_instance_that_begins_to_use_it() {
    for test in databases().await {
        let stores = stores(&test).await;
        let id = VimId::parse("site-1").unwrap();
        let new = of_instance(&stores.events, "i", vec![created("i")]).await;
        append(&stores.events, vec![new]).await.unwrap();
        for round in 0..ROUNDS {
            let reference = format!("r{round}");
            let secrets = vec![(SecretRef(reference.clone()), Secret::new("token"))];
            stores
                .vims
                .register(id.clone(), vim(&reference), secrets, at(0))
                .await
                .unwrap();
            let unit = Unit {
                relies_on: vec![Reliance::Vim(id.clone())],
                appends: vec![of_instance(&stores.events, "i", vec![names(Some("site-1"))]).await],
                ..Unit::default()
            };
            let (made, deleted) = tokio::join!(stores.events.append(unit), stores.vims.remove(&id));
            let made = made.map(drop);
            one_wins(&made, &deleted);
            if made.is_ok() {
                let unused = of_instance(&stores.events, "i", vec![names(None)]).await;
                append(&stores.events, vec![unused]).await.unwrap();
                stores.vims.remove(&id).await.unwrap();
            }
        }
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_credentials_of_a_vim_in_use_are_rotated() {
    for test in databases().await {
        let stores = stores(&test).await;
        let id = VimId::parse("site-1").unwrap();
        let sealed = |name: &str, text: &str| vec![(SecretRef(name.into()), Secret::new(text))];
        let change = |reference: &str| VimChange {
            interface_info: None,
            access_info: json!({"bearer_token": {"$secret": reference}})
                .as_object()
                .cloned(),
        };
        let missing = stores.vims.change(&id, change("r2"), Vec::new()).await;
        assert_eq!(status(missing.map(drop)), 404);
        stores
            .vims
            .register(id.clone(), vim("r1"), sealed("r1", "old"), at(0))
            .await
            .unwrap();
        let used = vec![created("i"), names(Some("site-1"))];
        let used = of_instance(&stores.events, "i", used).await;
        append(&stores.events, vec![used]).await.unwrap();

        let changed = stores
            .vims
            .change(&id, change("r2"), sealed("r2", "new"))
            .await
            .unwrap();
        assert_eq!(stores.vims.get(&id).await.unwrap(), Some(changed.clone()));
        let VimTarget::Direct {
            endpoint,
            credential: SealedCredential::BearerToken(token),
            ..
        } = changed.target().unwrap()
        else {
            panic!("{changed:?}")
        };
        assert_eq!(endpoint, "https://cluster.example:6443");
        assert_eq!(stores.vault.reveal(&token).await.unwrap().reveal(), "new");

        let unusable = VimChange {
            interface_info: Some(Map::new()),
            access_info: json!({"client_certificate": "x"}).as_object().cloned(),
        };
        let refused = stores.vims.change(&id, unusable, Vec::new()).await;
        assert_eq!(status(refused.map(drop)), 422);
        assert_eq!(stores.vims.get(&id).await.unwrap(), Some(changed));
        test.remove().await;
    }
}
