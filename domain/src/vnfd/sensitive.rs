//! Which parameter names are secret.

/// Sounds of a secret: a name that contains one of these, in any case, is never shown.
const SOUNDS: [&str; 4] = ["password", "secret", "token", "key"];

/// Whether the value under `name` is a secret, by its sound or because it is listed.
#[must_use]
pub fn is_sensitive(name: &str, listed: &[String]) -> bool {
    let lower = name.to_lowercase();
    SOUNDS.iter().any(|sound| lower.contains(sound)) || is_listed(name, listed)
}

/// Whether `name` is listed as secret: `listed` is the VNFD's `cairn.sensitive`, in which upper and lower case count as
/// the same, and `a.b` also hides the member `b`.
#[must_use]
pub fn is_listed(name: &str, listed: &[String]) -> bool {
    let name = name.to_lowercase();
    listed.iter().any(|entry| {
        let entry = entry.to_lowercase();
        entry == name || entry.rsplit('.').next() == Some(name.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_sound_secret_or_are_listed_are_sensitive() {
        let listed = vec!["pin".to_owned(), "subscriber.imsi".to_owned()];
        for name in [
            "password",
            "dbPassword",
            "client_SECRET",
            "bearer_token",
            "sshKey",
            "PIN",
            "imsi",
            "subscriber.imsi",
        ] {
            assert!(is_sensitive(name, &listed), "{name}");
        }
        for name in ["", "namespace", "pins", "subscriber", "replicas"] {
            assert!(!is_sensitive(name, &listed), "{name}");
        }
    }
}
