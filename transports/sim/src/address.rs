//! Addresses and URIs of endpoints and groups.

use crate::network::NodeIndex;
use cci_proto::{Address, decimal};

/// Where a frame goes, or comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimAddress {
    /// An endpoint.
    Endpoint(NodeIndex, u16),
    /// A group, by its number in the network.
    Group(u32),
}

impl SimAddress {
    /// As the engine keeps it: a kind, then two numbers.
    pub(crate) fn to_address(self) -> Address {
        let (kind, number, port) = match self {
            Self::Endpoint(node, port) => (1, node.0, port),
            Self::Group(group) => (2, group, 0),
        };
        let mut address = Address::default();
        address.0[0] = kind;
        address.0[4..8].copy_from_slice(&number.to_be_bytes());
        address.0[8..10].copy_from_slice(&port.to_be_bytes());
        address
    }

    /// `None` for an address of another transport.
    pub(crate) fn of_address(address: &Address) -> Option<Self> {
        let bytes = &address.0;
        let number = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        match bytes[0] {
            1 => Some(Self::Endpoint(NodeIndex(number), u16::from_be_bytes([bytes[8], bytes[9]]))),
            2 => Some(Self::Group(number)),
            _ => None,
        }
    }
}

/// What the tag of a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// From a port to a port.
    Unicast(u16, u16),
    /// From a port to a group.
    Multicast(u16, u32),
    /// Nobody listens at the port that this comes from; to a port.
    Refusal(u16, u16),
}

impl Tag {
    pub(crate) fn to_word(self) -> u64 {
        let word = |kind: u64, from: u16, to: u32| kind << 48 | u64::from(from) << 32 | u64::from(to);
        match self {
            Self::Unicast(from, to) => word(1, from, to.into()),
            Self::Multicast(from, group) => word(2, from, group),
            Self::Refusal(from, to) => word(3, from, to.into()),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "parts of a word")]
    pub(crate) fn of_word(word: u64) -> Option<Self> {
        let (from, to) = ((word >> 32) as u16, word as u32);
        match word >> 48 {
            1 => Some(Self::Unicast(from, to as u16)),
            2 => Some(Self::Multicast(from, to)),
            3 => Some(Self::Refusal(from, to as u16)),
            _ => None,
        }
    }
}

/// Whether a network can have this name: it stands in URIs.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(fits)
}

/// The number of a node and the port in a URI of an endpoint of this network.
pub(crate) fn endpoint(uri: &str, network: &str) -> Option<(u32, u16)> {
    let rest = uri.strip_prefix("sim://")?.strip_prefix(network)?.strip_prefix('/')?;
    let (node, port) = rest.split_once(':')?;
    Some((decimal(node)?, decimal(port)?))
}

/// The name of the group in a URI of a group of this network.
pub(crate) fn group<'u>(uri: &'u str, network: &str) -> Option<&'u str> {
    let rest = uri.strip_prefix("sim://")?.strip_prefix(network)?.strip_prefix('/')?;
    rest.strip_prefix("group/").filter(|name| is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_tags_come_back_as_they_were() {
        for place in [SimAddress::Endpoint(NodeIndex(70_000), 65_535), SimAddress::Group(3)] {
            assert_eq!(SimAddress::of_address(&place.to_address()), Some(place));
        }
        assert_eq!(SimAddress::of_address(&Address::default()), None);
        for tag in [Tag::Unicast(1, 65_535), Tag::Multicast(2, 1 << 31), Tag::Refusal(65_535, 9)] {
            assert_eq!(Tag::of_word(tag.to_word()), Some(tag));
        }
        assert_eq!(Tag::of_word(0), None);
    }

    #[test]
    fn a_uri_names_an_endpoint_or_a_group_of_its_network() {
        assert_eq!(endpoint("sim://n/3:1", "n"), Some((3, 1)));
        assert_eq!(group("sim://n/group/all", "n"), Some("all"));
        for wrong in [
            "sim://m/3:1",
            "sim://n3:1",
            "sim://n/3",
            "sim://n/+3:1",
            "sim://n/3:65536",
            "sm://n/3:1",
            "sim://n/group/x",
            "",
        ] {
            assert_eq!(endpoint(wrong, "n"), None, "{wrong}");
        }
        for wrong in ["sim://n/group/", "sim://n/group/a/b", "sim://n/3:1", "sim://m/group/a"] {
            assert_eq!(group(wrong, "n"), None, "{wrong}");
        }
    }
}
