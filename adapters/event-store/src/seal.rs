//! Encryption and keyed digests. Keys for each purpose are derived from the one in the key file.

use crate::KeyFile;
use cairn_domain::object::Digest;
use cairn_domain::ports::PortError;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{hkdf, hmac};
use std::fmt::Write;

/// AES-256-GCM under a derived key, and HMAC-SHA-256 under another.
pub(crate) struct Sealer {
    content: LessSafeKey,
    digest: hmac::Key,
    proof: hmac::Key,
    random: SystemRandom,
}

impl Sealer {
    pub(crate) fn new(key: &KeyFile) -> Self {
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, b"cairn key file 1").extract(key.bytes());
        Self {
            content: LessSafeKey::new(content_key(&root)),
            digest: hmac_key(&root, b"digest"),
            proof: hmac_key(&root, b"proof"),
            random: SystemRandom::new(),
        }
    }

    /// What a database keeps to recognise its key.
    pub(crate) fn proof(&self) -> String {
        hex(hmac::sign(&self.proof, b"this is the key").as_ref())
    }

    /// The name of a body: whoever reads the database cannot guess a body and compare.
    pub(crate) fn digest(&self, bytes: &[u8]) -> Digest {
        Digest(hex(hmac::sign(&self.digest, bytes).as_ref()))
    }

    /// Encrypts. `place` says where the result lies, so that it is worth nothing anywhere else.
    pub(crate) fn seal(&self, place: &str, plain: &[u8]) -> Result<Vec<u8>, PortError> {
        let unusable = |_| PortError::Unavailable("encryption failed".to_owned());
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(unusable)?;
        let mut sealed = plain.to_vec();
        self.content
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(place.as_bytes()),
                &mut sealed,
            )
            .map_err(unusable)?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Decrypts what [`Sealer::seal`] made for the same place.
    pub(crate) fn open(&self, place: &str, sealed: &[u8]) -> Result<Vec<u8>, PortError> {
        let corrupt = || PortError::Corrupt(format!("{place} cannot be decrypted"));
        let (nonce, content) = sealed.split_at_checked(NONCE_LEN).ok_or_else(corrupt)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| corrupt())?;
        let mut content = content.to_vec();
        let plain = self
            .content
            .open_in_place(nonce, Aad::from(place.as_bytes()), &mut content)
            .map_err(|_| corrupt())?;
        Ok(plain.to_vec())
    }
}

fn content_key(root: &hkdf::Prk) -> UnboundKey {
    root.expand(&[b"content"], &AES_256_GCM)
        .expect("one key is not longer than HKDF can give")
        .into()
}

fn hmac_key(root: &hkdf::Prk, purpose: &[u8]) -> hmac::Key {
    root.expand(&[purpose], hmac::HMAC_SHA256)
        .expect("one key is not longer than HKDF can give")
        .into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_at_its_place_under_its_key_only() {
        let sealer = Sealer::new(&KeyFile::from_bytes([1; 32]));
        let other = Sealer::new(&KeyFile::from_bytes([2; 32]));
        let hidden = sealer.seal("here", b"text").unwrap();
        assert_eq!(sealer.open("here", &hidden).unwrap(), b"text");
        assert!(!hidden.windows(4).any(|w| w == b"text"));
        for refused in [
            sealer.open("there", &hidden),
            other.open("here", &hidden),
            sealer.open("here", &hidden[..20]),
            sealer.open("here", b""),
        ] {
            assert!(matches!(refused, Err(PortError::Corrupt(_))));
        }
        assert_ne!(sealer.digest(b"a"), other.digest(b"a"));
        assert_ne!(sealer.proof(), other.proof());
    }
}
