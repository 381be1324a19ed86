//! Hashes of files, in hexadecimal.

use ring::digest;

/// Algorithms that a package may state its hashes in (SOL004 4.3.2 asks for SHA-256 or SHA-512).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Algorithm {
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    /// The algorithm of that name; `SHA-256`, `sha256` and `Sha_256` are one.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let plain: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect();
        match plain.as_str() {
            "sha256" => Some(Self::Sha256),
            "sha384" => Some(Self::Sha384),
            "sha512" => Some(Self::Sha512),
            _ => None,
        }
    }

    /// The hash of `bytes` in lower-case hexadecimal.
    pub(crate) fn hex(self, bytes: &[u8]) -> String {
        let algorithm = match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        };
        hex(digest::digest(algorithm, bytes).as_ref())
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_the_published_ones() {
        assert_eq!(
            Algorithm::Sha256.hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert!(
            Algorithm::Sha512
                .hex(b"abc")
                .starts_with("ddaf35a193617aba")
        );
        assert!(
            Algorithm::Sha384
                .hex(b"abc")
                .starts_with("cb00753f45a35e8b")
        );
    }

    #[test]
    fn names_are_read_in_any_spelling() {
        for name in ["SHA-256", "sha256", "Sha_256"] {
            assert_eq!(Algorithm::named(name), Some(Algorithm::Sha256));
        }
        assert_eq!(Algorithm::named("MD5"), None);
    }
}
