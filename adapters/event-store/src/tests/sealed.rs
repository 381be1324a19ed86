//! Bodies, secrets, and the key that they lie under.

use super::fixture::*;
use crate::{EventStore, KeyFile, StoreError, Stores};
use cairn_db::args;
use cairn_db::testing::{TestDatabase, databases};
use cairn_domain::object::Digest;
use cairn_domain::ports::{Blobs, EventLog, PortError, Unit, Vault};
use cairn_domain::secret::{Secret, SecretRef};

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_every_size_come_back_and_lie_encrypted() {
    for test in databases().await {
        let database = test.open().await;
        let blobs = stores(&test).await.blobs;
        for size in [0, 1, 256 * 1024 - 28, 256 * 1024 - 27, 8 * 1024 * 1024] {
            let body: Vec<u8> = (0..size)
                .map(|n: usize| u8::try_from(n % 251).unwrap())
                .collect();
            let digest = blobs.put(&body).await.unwrap();
            assert_eq!(digest, blobs.name(&body));
            assert_eq!(blobs.put(&body).await.unwrap(), digest, "may be repeated");
            assert!(blobs.get(&digest).await.unwrap() == body, "{size} bytes");
        }
        let longest = database
            .fetch_optional("SELECT max(length(content)) FROM blob_chunks", args![])
            .await
            .unwrap();
        assert_eq!(longest.unwrap().int(0).unwrap(), 256 * 1024);
        let digest = blobs.put(b"a manifest with a password").await.unwrap();
        let row = database
            .fetch_optional(
                "SELECT content FROM blob_chunks WHERE digest = $1",
                args![digest.0.as_str()],
            )
            .await
            .unwrap();
        let kept = row.unwrap().bytes(0).unwrap();
        assert!(!kept.windows(8).any(|window| window == b"password"));
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_or_changed_body_is_corrupt() {
    for test in databases().await {
        let database = test.open().await;
        let stores = stores(&test).await;
        let missing = stores.blobs.get(&Digest("0".into())).await;
        assert!(matches!(missing, Err(PortError::Corrupt(_))));
        let body = vec![7; 600 * 1024];
        let digest = stores.blobs.put(&body).await.unwrap();
        let other = stores.blobs.put(&vec![8; 600 * 1024]).await.unwrap();
        for change in [
            "DELETE FROM blob_chunks WHERE digest = $1 AND chunk = 2",
            "UPDATE blob_chunks SET content = (SELECT content FROM blob_chunks \
             WHERE digest <> $1 AND chunk = 0) WHERE digest = $1 AND chunk = 0",
        ] {
            database
                .execute(change, args![digest.0.as_str()])
                .await
                .unwrap();
            let read = stores.blobs.get(&digest).await;
            assert!(matches!(read, Err(PortError::Corrupt(_))), "{change}");
        }
        assert!(stores.blobs.get(&other).await.is_ok());
        let misnamed = Unit {
            blobs: vec![(digest, b"else".to_vec())],
            ..Unit::default()
        };
        assert!(matches!(
            stores.events.append(misnamed).await,
            Err(PortError::Corrupt(_))
        ));
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_and_bodies_of_a_unit_are_written_with_it_or_not_at_all() {
    for test in databases().await {
        let stores = stores(&test).await;
        let body = b"manifest".to_vec();
        let name = stores.blobs.name(&body);
        let secret = (SecretRef("s1".into()), Secret::new("hunter2"));
        let with = |appends| Unit {
            secrets: vec![secret.clone()],
            blobs: vec![(name.clone(), body.clone())],
            ..unit(appends)
        };
        let mut stale = of_instance(&stores.events, "i", vec![created("i")]).await;
        stale.expected_version = 3;
        assert!(matches!(
            stores.events.append(with(vec![stale])).await,
            Err(PortError::Conflict(_))
        ));
        assert!(stores.vault.reveal(&secret.0).await.is_err());
        assert!(stores.blobs.get(&name).await.is_err());

        let right = of_instance(&stores.events, "i", vec![created("i")]).await;
        stores.events.append(with(vec![right])).await.unwrap();
        assert_eq!(
            stores.vault.reveal(&secret.0).await.unwrap().reveal(),
            "hunter2"
        );
        assert_eq!(stores.blobs.get(&name).await.unwrap(), body);

        stores
            .vault
            .put(std::slice::from_ref(&secret))
            .await
            .unwrap();
        let missing = stores.vault.reveal(&SecretRef("s2".into())).await;
        assert!(matches!(missing, Err(PortError::Corrupt(_))));
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_is_refused_and_history_needs_none() {
    for test in databases().await {
        let log = stores(&test).await.events;
        let first = of_instance(&log, "i", vec![created("i")]).await;
        append(&log, vec![first]).await.unwrap();
        let refused = Stores::open(test.open().await, &key(2)).await;
        assert!(matches!(refused.map(drop), Err(StoreError::WrongKey)));
        Stores::open(test.open().await, &key(1)).await.unwrap();

        let keyless = EventStore::without_key(test.open().await);
        assert_eq!(
            keyless.of_instance(&instance_id("i")).await.unwrap().len(),
            1
        );
        let secrets = vec![(SecretRef("s".into()), Secret::new("x"))];
        let refused = keyless
            .append(Unit {
                secrets,
                ..Unit::default()
            })
            .await;
        assert!(matches!(refused, Err(PortError::Unavailable(_))));
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_file_is_made_for_an_empty_sqlite_file_only() {
    let test = TestDatabase::sqlite();
    let path = test.folder().unwrap().join("cairn.key");
    let database = test.open().await;
    let made = KeyFile::load_or_create(&path, &database).await.unwrap();
    Stores::open(database.clone(), &made).await.unwrap();
    let bits = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
    assert_eq!(bits & 0o777, 0o600);
    let again = KeyFile::load_or_create(&path, &database).await.unwrap();
    Stores::open(database.clone(), &again).await.unwrap();

    std::fs::remove_file(&path).unwrap();
    let lost = KeyFile::load_or_create(&path, &database).await;
    assert!(matches!(lost, Err(StoreError::KeyMissing { .. })));
    assert!(!path.exists());
    for bad in ["", "c2hvcnQ=", "no base64 at all"] {
        std::fs::write(&path, bad).unwrap();
        let refused = KeyFile::load_or_create(&path, &database).await;
        assert!(
            matches!(refused, Err(StoreError::KeyMalformed { .. })),
            "{bad:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_demands_a_key_file() {
    let Some(test) = TestDatabase::postgres().await else {
        return;
    };
    let folder = TestDatabase::sqlite();
    let path = folder.folder().unwrap().join("cairn.key");
    let refused = KeyFile::load_or_create(&path, &test.open().await).await;
    assert!(matches!(refused, Err(StoreError::KeyMissing { .. })));
    assert!(!path.exists());
    test.remove().await;
}

#[test]
fn a_key_shows_nothing_of_itself() {
    assert_eq!(format!("{:?}", key(7)), "KeyFile(…)");
}
