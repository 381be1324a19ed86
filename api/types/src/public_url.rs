//! The address under which clients know this server. Every link and `Location` is built here, byte-stable for
//! ever: clients keep `_links.self.href` as a key.

use std::fmt;

/// An absolute `http` or `https` URL, with a path prefix where a gateway adds one, without trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(String);

/// A text that cannot be a public base.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the public URL must be an absolute http or https URL without query or fragment, got {0:?}"
)]
pub struct InvalidPublicUrl(pub String);

impl PublicUrl {
    /// Takes a text for the public base.
    ///
    /// # Errors
    ///
    /// [`InvalidPublicUrl`] when it is relative, of another scheme, or holds blanks, `?` or `#`.
    pub fn parse(text: &str) -> Result<Self, InvalidPublicUrl> {
        let rest = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        let legal = rest.is_some_and(|rest| {
            !rest.is_empty()
                && !rest.starts_with(['/', ':'])
                && rest
                    .chars()
                    .all(|c| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '"' | '<' | '>'))
        });
        if !legal {
            return Err(InvalidPublicUrl(text.chars().take(200).collect()));
        }
        Ok(Self(text.trim_end_matches('/').to_owned()))
    }

    /// An address below the base; `path` begins with a slash.
    #[must_use]
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// Of a VNF instance.
    #[must_use]
    pub fn vnf_instance(&self, id: &str) -> String {
        format!("{}/vnflcm/v2/vnf_instances/{}", self.0, segment(id))
    }

    /// Of an operation occurrence.
    #[must_use]
    pub fn vnf_lcm_op_occ(&self, id: &str) -> String {
        format!("{}/vnflcm/v2/vnf_lcm_op_occs/{}", self.0, segment(id))
    }

    /// Of a subscription.
    #[must_use]
    pub fn subscription(&self, id: &str) -> String {
        format!("{}/vnflcm/v2/subscriptions/{}", self.0, segment(id))
    }

    /// Of a VNF package, under the major version that the client spoke.
    #[must_use]
    pub fn vnf_package(&self, major: &str, id: &str) -> String {
        format!("{}/vnfpkgm/{major}/vnf_packages/{}", self.0, segment(id))
    }

    /// Of a registered VIM.
    #[must_use]
    pub fn vim(&self, id: &str) -> String {
        format!("{}/cairn/v1/vims/{}", self.0, segment(id))
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A path segment: what RFC 3986 does not call unreserved is percent-encoded.
fn segment(text: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push(char::from(HEX[usize::from(byte >> 4)]));
            encoded.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_keep_the_prefix_and_have_no_trailing_slash() {
        let url = PublicUrl::parse("https://gw.example/vnfm/").unwrap();
        assert_eq!(
            url.vnf_instance("a-1"),
            "https://gw.example/vnfm/vnflcm/v2/vnf_instances/a-1"
        );
        assert_eq!(
            url.vim("a:b"),
            "https://gw.example/vnfm/cairn/v1/vims/a%3Ab"
        );
    }

    #[test]
    fn what_is_no_base_is_refused() {
        for bad in [
            "",
            "gw.example",
            "ftp://a",
            "http://",
            "http:///x",
            "http://a/?q",
            "http://a b",
        ] {
            assert!(PublicUrl::parse(bad).is_err(), "{bad}");
        }
    }
}
