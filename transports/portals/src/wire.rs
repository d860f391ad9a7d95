//! Addresses, and what goes into match bits (`docs/design/over-portals.md`).

use crate::sys::Process;
use cci_over::MOST_ENDPOINTS;
use cci_proto::decimal;
use std::net::Ipv4Addr;

/// The portal index of messages.
pub(crate) const MESSAGES: u32 = 40;
/// The portal index of registrations.
pub(crate) const REGISTRATIONS: u32 = 41;
/// The bits that a target does not compare: the sender's token.
pub(crate) const TOKEN: u64 = u32::MAX as u64;
/// The number of the process's own entry.
pub(crate) const NOBODY: u32 = MOST_ENDPOINTS + 1;

const SCHEME: &str = "portals://";

/// For which match entries of an endpoint a put is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Reliable = 0,
    Unreliable = 1,
    Setup = 2,
    Wake = 3,
    Sentinel = 4,
}

impl From<cci_over::Class> for Class {
    fn from(class: cci_over::Class) -> Self {
        match class {
            cci_over::Class::Reliable => Self::Reliable,
            cci_over::Class::Unreliable => Self::Unreliable,
            cci_over::Class::Setup => Self::Setup,
        }
    }
}

/// An endpoint of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) process: Process,
    pub(crate) number: u32,
}

impl Address {
    /// The match bits of a class, with this token.
    #[inline]
    pub(crate) fn bits(number: u32, class: Class, token: u32) -> u64 {
        u64::from(number) << 40 | (class as u64) << 36 | u64::from(token)
    }

    pub(crate) fn class(bits: u64) -> Option<cci_over::Class> {
        match bits >> 36 & 0xf {
            0 => Some(cci_over::Class::Reliable),
            1 => Some(cci_over::Class::Unreliable),
            2 => Some(cci_over::Class::Setup),
            _ => None,
        }
    }

    /// The endpoint that a URI names.
    pub(crate) fn of_uri(uri: &str) -> Option<Self> {
        let (process, number) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let (nid, pid) = process.split_once(':')?;
        let nid = nid.parse::<Ipv4Addr>().ok()?.to_bits();
        let number = decimal(number).filter(|number| *number <= MOST_ENDPOINTS)?;
        Some(Self { process: Process { nid, pid: decimal(pid)? }, number })
    }

    pub(crate) fn uri(&self) -> String {
        let Self { process: Process { nid, pid }, number } = self;
        format!("{SCHEME}{}:{pid}/{number}", Ipv4Addr::from_bits(*nid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_its_uri() {
        let address = Address { process: Process { nid: 0x7f00_0001, pid: 12 }, number: 7 };
        assert_eq!(address.uri(), "portals://127.0.0.1:12/7");
        assert_eq!(Address::of_uri(&address.uri()), Some(address));
        for wrong in ["", "portals://", "portals://1", "portals://127.0.0.1:1", "portals://127.0.0.1:1/16777215"] {
            assert_eq!(Address::of_uri(wrong), None, "{wrong}");
        }
    }
}
