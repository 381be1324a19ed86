//! Which addresses a callback may have: a subscriber must not make this server call its own neighbours (SSRF).
//! The rules look at resolved addresses, and the connection is made to exactly those that passed.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What is allowed beyond public addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressRules {
    /// Private, link-local, unique-local and loopback addresses.
    pub allow_private: bool,
    /// Loopback addresses alone, for a server that itself listens on loopback only.
    pub allow_loopback: bool,
}

/// What kind of address one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Public,
    Private,
    Loopback,
    /// Multicast, unspecified, reserved: nobody's callback.
    Nobody,
}

impl AddressRules {
    /// Whether this address may be called.
    #[must_use]
    pub fn allow(&self, address: IpAddr) -> bool {
        match reach(address) {
            Reach::Public => true,
            Reach::Private => self.allow_private,
            Reach::Loopback => self.allow_private || self.allow_loopback,
            Reach::Nobody => false,
        }
    }
}

fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(v4) => reach_v4(v4),
        IpAddr::V6(v6) => embedded(v6).map_or_else(|| reach_v6(v6), reach_v4),
    }
}

fn reach_v4(v4: Ipv4Addr) -> Reach {
    let [a, b, c, _] = v4.octets();
    match (a, b, c) {
        (127, _, _) => Reach::Loopback,
        // RFC 1918, RFC 3927, RFC 6598 (carriers), RFC 2544 (benchmarks), RFC 6890.
        (10, _, _)
        | (172, 16..=31, _)
        | (192, 168, _)
        | (169, 254, _)
        | (100, 64..=127, _)
        | (198, 18..=19, _)
        | (192, 0, 0) => Reach::Private,
        (0 | 224..=255, _, _) => Reach::Nobody,
        _ => Reach::Public,
    }
}

fn reach_v6(v6: Ipv6Addr) -> Reach {
    let first = v6.segments()[0];
    if v6.is_loopback() {
        Reach::Loopback
    } else if v6.is_unspecified() || v6.is_multicast() {
        Reach::Nobody
    } else if first & 0xfe00 == 0xfc00 || first & 0xff80 == 0xfe80 {
        // fc00::/7 unique-local; fe80::/10 link-local and fec0::/10, the old site-local.
        Reach::Private
    } else {
        Reach::Public
    }
}

/// The IPv4 address inside a mapped (`::ffff:a.b.c.d`), compatible (`::a.b.c.d`), translated (`64:ff9b::/96`)
/// or 6to4 (`2002::/16`) one: the packet ends up there.
fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let last = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(last(high, low))
        }
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => Some(last(high, low)),
        [0x2002, high, low, ..] => Some(last(high, low)),
        _ => None,
    }
}

/// Resolves names and lets only allowed addresses through.
pub(crate) struct GuardedResolver {
    pub(crate) rules: AddressRules,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = self.rules;
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| rules.allow(address.ip()))
                .collect();
            if allowed.is_empty() {
                return Err(refused(name.as_str()).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// What a subscriber is told.
pub(crate) fn refused(host: &str) -> String {
    format!(
        "{host} is a loopback, private or reserved address; such callbacks are not allowed here"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(rules: AddressRules, address: &str) -> bool {
        rules.allow(address.parse().unwrap())
    }

    #[test]
    fn only_public_addresses_are_called_by_default() {
        for inner in [
            "127.0.0.1",
            "127.9.9.9",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "::127.0.0.1",
            "fec0::1",
        ] {
            assert!(!allowed(AddressRules::default(), inner), "{inner}");
        }
        for outer in [
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "2001:4860:4860::8888",
            "::ffff:8.8.8.8",
        ] {
            assert!(allowed(AddressRules::default(), outer), "{outer}");
        }
    }

    #[test]
    fn loopback_and_private_are_allowed_apart() {
        let loopback = AddressRules {
            allow_loopback: true,
            allow_private: false,
        };
        assert!(allowed(loopback, "127.0.0.1") && allowed(loopback, "::1"));
        assert!(!allowed(loopback, "10.0.0.1"));
        let private = AddressRules {
            allow_loopback: false,
            allow_private: true,
        };
        assert!(allowed(private, "127.0.0.1") && allowed(private, "10.0.0.1"));
        assert!(!allowed(private, "0.0.0.0") && !allowed(private, "ff02::1"));
    }
}
