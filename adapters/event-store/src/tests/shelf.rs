//! Packages and VIMs.

use super::fixture::*;
use cairn_db::args;
use cairn_db::testing::databases;
use cairn_domain::ids::{VimId, VnfPkgId, VnfdId};
use cairn_domain::ports::{OnboardingState, PackageRecord, PortError, PortResult, Vims};
use cairn_domain::secret::{Secret, SecretRef};
use cairn_domain::vim::VimConnectionInfo;
use cairn_domain::vnf_instance::{VnfInfo, VnfInstanceEvent};
use cairn_domain::vnfd::Vnfd;
use serde_json::{Map, json};

fn record(id: &str, state: OnboardingState) -> PackageRecord {
    PackageRecord {
        id: VnfPkgId::parse(id).unwrap(),
        onboarding_state: state,
        enabled: false,
        vnfd: None,
        checksum: None,
        artifacts: Vec::new(),
        failure: None,
        user_defined_data: Map::new(),
        created_at: at(0),
    }
}

fn vnfd() -> Vnfd {
    serde_json::from_value(json!({
        "vnfd_id": "vnfd-1", "provider": "Example", "product_name": "Sample",
        "software_version": "1.0", "descriptor_version": "1.0", "product_info_name": null,
        "vnfm_info": [], "localization_languages": [], "default_localization_language": null,
        "flavours": {}, "default_flavour": "simple", "metadata": {}, "extensions": {},
        "vnf_configurable_properties": {}, "sensitive": [], "clocks": {},
    }))
    .unwrap()
}

pub(crate) fn onboarded(id: &str) -> PackageRecord {
    PackageRecord {
        vnfd: Some(vnfd()),
        ..record(id, OnboardingState::Onboarded)
    }
}

pub(crate) fn status<T: std::fmt::Debug>(result: PortResult<T>) -> u16 {
    match result {
        Err(PortError::Refused(problem)) => problem.status,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_kept_changed_and_deleted() {
    for test in databases().await {
        let packages = stores(&test).await.packages;
        let id = VnfPkgId::parse("pkg-2").unwrap();
        let new = record("pkg-2", OnboardingState::Created);
        packages.create(&new).await.unwrap();
        assert_eq!(status(packages.create(&new).await), 409);
        assert_eq!(packages.get(&id).await.unwrap(), Some(new));
        assert_eq!(packages.content(&id).await.unwrap(), None);

        let content = vec![5; 700_000];
        let done = onboarded("pkg-2");
        let refuses = |_: PackageRecord| Err(PortError::Unavailable("not now".into()));
        packages.onboard(&id, b"x", refuses).await.unwrap_err();
        assert_eq!(packages.content(&id).await.unwrap(), None);
        let becomes = packages.onboard(&id, &content, |_| Ok(done.clone()));
        assert_eq!(becomes.await.unwrap(), done);
        assert!(packages.content(&id).await.unwrap() == Some(content));
        assert_eq!(
            packages
                .by_vnfd(&VnfdId::parse("vnfd-1").unwrap())
                .await
                .unwrap(),
            Some(done.clone())
        );
        assert_eq!(
            packages
                .by_vnfd(&VnfdId::parse("x").unwrap())
                .await
                .unwrap(),
            None
        );

        packages
            .create(&record("pkg-3", OnboardingState::Processing))
            .await
            .unwrap();
        let third = VnfPkgId::parse("pkg-3").unwrap();
        let second = packages.change(&third, |_| Ok(onboarded("pkg-3")));
        assert_eq!(
            status(second.await),
            409,
            "one ONBOARDED package for each VNFD"
        );
        assert_eq!(packages.list().await.unwrap().len(), 2);

        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enabled_package_is_disabled_before_it_is_deleted() {
    for test in databases().await {
        let packages = stores(&test).await.packages;
        let id = VnfPkgId::parse("pkg-2").unwrap();
        let disabled = onboarded("pkg-2");
        let enabled = PackageRecord {
            enabled: true,
            ..disabled.clone()
        };
        packages.create(&enabled).await.unwrap();
        packages.onboard(&id, b"csar", Ok).await.unwrap();
        assert_eq!(status(packages.delete(&id).await), 409);
        packages.change(&id, |_| Ok(disabled)).await.unwrap();
        packages.delete(&id).await.unwrap();
        assert_eq!(packages.content(&id).await.unwrap(), None);
        assert_eq!(status(packages.delete(&id).await), 404);
        assert_eq!(status(packages.change(&id, Ok).await), 404);
        test.remove().await;
    }
}

/// The record with one more entry in its `userDefinedData`.
fn with(mut record: PackageRecord, key: &str) -> PackageRecord {
    record.user_defined_data.insert(key.to_owned(), json!(true));
    record
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_another_is_in_the_middle_of_waits_and_builds_on_it() {
    for test in databases().await {
        let packages = stores(&test).await.packages;
        let id = VnfPkgId::parse("pkg-2").unwrap();
        let new = record("pkg-2", OnboardingState::Created);
        packages.create(&new).await.unwrap();
        let database = test.open().await;
        for (round, (first, second)) in [("a", "b"), ("c", "d")].into_iter().enumerate() {
            let before = packages.get(&id).await.unwrap().unwrap();
            let other = serde_json::to_string(&with(before, first)).unwrap();
            let mut tx = database.begin().await.unwrap();
            let sql = "UPDATE packages SET record = $2 WHERE id = $1";
            tx.execute(sql, args![id.as_str(), other]).await.unwrap();
            let ours = async {
                let add = |now| Ok(with(now, second));
                match round {
                    0 => packages.change(&id, add).await,
                    _ => packages.onboard(&id, b"csar", add).await,
                }
            };
            let (ours, committed) = tokio::join!(ours, tx.commit());
            committed.unwrap();
            let keys = ours.unwrap().user_defined_data;
            assert!(keys.contains_key(first) && keys.contains_key(second));
        }
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_in_use_stays() {
    for test in databases().await {
        let stores = stores(&test).await;
        let id = product().vnf_pkg_id;
        let mut used = onboarded(id.as_str());
        used.enabled = false;
        stores.packages.create(&used).await.unwrap();
        let instance = of_instance(&stores.events, "i", vec![created("i")]).await;
        append(&stores.events, vec![instance]).await.unwrap();
        assert_eq!(status(stores.packages.delete(&id).await), 409);
        let gone = VnfInstanceEvent::VnfIdentifierDeleted {
            at: at(3),
            by: "anonymous".into(),
            tenant: cairn_domain::ids::Tenant::default_tenant(),
        };
        let gone = of_instance(&stores.events, "i", vec![gone]).await;
        append(&stores.events, vec![gone]).await.unwrap();
        stores.packages.delete(&id).await.unwrap();
        test.remove().await;
    }
}

pub(crate) fn vim(token: &str) -> VimConnectionInfo {
    VimConnectionInfo::parse(&json!({
        "vimType": "kubernetes",
        "interfaceInfo": {"endpoint": "https://cluster.example:6443"},
        "accessInfo": {"bearer_token": {"$secret": token}},
    }))
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vim_is_registered_once_and_stays_while_it_is_used() {
    for test in databases().await {
        let stores = stores(&test).await;
        let id = VimId::parse("site-1").unwrap();
        let sealed = |name: &str, text: &str| vec![(SecretRef(name.into()), Secret::new(text))];
        let vims = &stores.vims;
        vims.register(id.clone(), vim("r1"), sealed("r1", "token"), at(0))
            .await
            .unwrap();
        // The same once more: its secret comes under a fresh reference, and is compared in the clear.
        vims.register(id.clone(), vim("r2"), sealed("r2", "token"), at(1))
            .await
            .unwrap();
        let other = vims
            .register(id.clone(), vim("r3"), sealed("r3", "else"), at(2))
            .await;
        assert_eq!(status(other), 409);
        assert_eq!(vims.get(&id).await.unwrap(), Some(vim("r1")));
        assert_eq!(vims.list().await.unwrap(), [(id.clone(), vim("r1"))]);

        let named = VnfInfo {
            vim_connection_info: Map::from_iter([(
                "a".to_owned(),
                json!({"vimId": "site-1", "vimType": "kubernetes"}),
            )]),
            ..VnfInfo::default()
        };
        let modified = VnfInstanceEvent::VnfInfoModified {
            at: at(1),
            op: op_id("o"),
            info: named,
            overlay: Map::new(),
            product: None,
        };
        let instance = of_instance(&stores.events, "i", vec![created("i"), modified]).await;
        append(&stores.events, vec![instance]).await.unwrap();
        assert_eq!(status(vims.remove(&id).await), 409);
        let unnamed = VnfInstanceEvent::VnfInfoModified {
            at: at(2),
            op: op_id("o"),
            info: VnfInfo::default(),
            overlay: Map::new(),
            product: None,
        };
        let instance = of_instance(&stores.events, "i", vec![unnamed]).await;
        append(&stores.events, vec![instance]).await.unwrap();
        vims.remove(&id).await.unwrap();
        assert_eq!(status(vims.remove(&id).await), 404);
        assert_eq!(vims.get(&id).await.unwrap(), None);
        test.remove().await;
    }
}
