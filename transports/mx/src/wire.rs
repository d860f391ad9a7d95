//! Addresses, match bits, and what the networks of two endpoints send each other
//! (`docs/design/over-mx.md`).

use cci_over::{Class, Header, Verb, words};
use cci_proto::decimal;
use std::net::Ipv4Addr;

const SCHEME: &str = "mx://";
/// Where the verb is in match bits.
const VERB: u32 = 36;
const VERBS: u64 = 0xf << VERB;
/// In place of the verb of a message that may be lost.
const LOSSY: u64 = 15 << VERB;

/// `mx_endpoint_addr_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) [u64; 2]);

#[cfg(test)]
impl Address {
    pub(crate) const NONE: Self = Self([0; 2]);
}

/// An endpoint: its NIC and id, and the address by which messages reach it, once that is known. A
/// later endpoint may have the same id: with a session none but this one is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) nic: u64,
    pub(crate) id: u32,
    pub(crate) session: Option<u32>,
    pub(crate) address: Option<Address>,
}

impl Place {
    /// The endpoint that a URI names.
    pub(crate) fn of_uri(uri: &str) -> Option<Self> {
        let (nic, id) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let (id, session) = match id.split_once('/') {
            Some((id, session)) => (id, Some(u32::from_str_radix(session, 16).ok()?)),
            None => (id, None),
        };
        let nic = match nic.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => nic.parse::<Ipv4Addr>().ok()?.to_bits().into(),
        };
        Some(Self { nic, id: decimal(id)?, session, address: None })
    }

    /// Our library's NICs are IPv4 addresses; others are shown as they are.
    pub(crate) fn uri(self) -> String {
        let Self { nic, id, session, .. } = self;
        let session = session.map_or_else(String::new, |session| format!("/{session:x}"));
        match u32::try_from(nic) {
            Ok(nic) => format!("{SCHEME}{}/{id}{session}", Ipv4Addr::from_bits(nic)),
            Err(_) => format!("{SCHEME}{nic:#x}/{id}{session}"),
        }
    }
}

/// The match bits of a message.
pub(crate) fn bits(header: u64, class: Class) -> u64 {
    if class == Class::Unreliable && is_of(header, Verb::Message) { header & !VERBS | LOSSY } else { header }
}

/// The header and the class of match bits.
pub(crate) fn header(bits: u64) -> (u64, Class) {
    if bits & VERBS == LOSSY {
        return (bits & !VERBS | (Verb::Message as u64) << VERB, Class::Unreliable);
    }
    let is_setup = is_of(bits, Verb::Request) || is_of(bits, Verb::Withdraw);
    (bits, if is_setup { Class::Setup } else { Class::Reliable })
}

fn is_of(bits: u64, verb: Verb) -> bool {
    bits & VERBS == (verb as u64) << VERB
}

/// Whether match bits are those of data.
pub(crate) fn is_data(bits: u64) -> bool {
    is_of(bits, Verb::Data)
}

/// Match bits of data, from random ones: no control message has them.
pub(crate) fn data(random: u64) -> u64 {
    random & !VERBS | (Verb::Data as u64) << VERB
}

/// What the networks of two endpoints send each other. The token is of the initiator's transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// The initiator would write so many bytes into a registration.
    Write { token: u64, bits: u64, offset: u64, len: u64 },
    /// The target has posted a receive with these match bits.
    Ready { token: u64, data: u64 },
    /// The initiator has posted a receive for a part of a registration.
    Read { token: u64, bits: u64, offset: u64, len: u64, data: u64 },
    /// The target does not have that, or does not allow it.
    Refused { token: u64 },
}

impl Own {
    pub(crate) fn emit(self) -> [u8; 48] {
        let words: [u64; 6] = match self {
            Self::Write { token, bits, offset, len } => [0, token, bits, offset, len, 0],
            Self::Ready { token, data } => [1, token, data, 0, 0, 0],
            Self::Read { token, bits, offset, len, data } => [2, token, bits, offset, len, data],
            Self::Refused { token } => [3, token, 0, 0, 0, 0],
        };
        let mut bytes = [0; 48];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let [kind, token, first, second, third, fourth] = words(bytes)?;
        Some(match kind {
            0 => Self::Write { token, bits: first, offset: second, len: third },
            1 => Self::Ready { token, data: first },
            2 => Self::Read { token, bits: first, offset: second, len: third, data: fourth },
            3 => Self::Refused { token },
            _ => return None,
        })
    }
}

/// The header that brings [`Own`].
pub(crate) fn own_header(remote: u32, tag: u64) -> u64 {
    Header { to: remote, verb: Verb::Own, sequence: 0, tag: cci_over::short_tag(tag) }.word()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_its_uri() {
        let place = Place { nic: 0x7f00_0001, id: 7, session: None, address: None };
        assert_eq!(place.uri(), "mx://127.0.0.1/7");
        assert_eq!(Place::of_uri(&place.uri()), Some(place));
        let far = Place { nic: 0x0060_dd47_1234, ..place };
        assert_eq!(Place::of_uri(&far.uri()), Some(far));
        let once = Place { session: Some(0xabc), ..place };
        assert_eq!((once.uri().as_str(), Place::of_uri("mx://127.0.0.1/7/abc")), ("mx://127.0.0.1/7/abc", Some(once)));
        for wrong in [
            "",
            "mx://127.0.0.1/1/",
            "mx://127.0.0.1/1/1/1",
            "mx://",
            "mx://1",
            "mx://127.0.0.1",
            "mx://127.0.0.1/-1",
            "mx://0x/1",
        ] {
            assert_eq!(Place::of_uri(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn match_bits_tell_what_may_be_lost_and_what_is_data() {
        let of = |verb| Header { to: 0xab_cdef, verb, sequence: 3, tag: 9 }.word();
        for (verb, class) in [
            (Verb::Message, Class::Reliable),
            (Verb::Message, Class::Unreliable),
            (Verb::Request, Class::Setup),
            (Verb::Withdraw, Class::Setup),
            (Verb::Own, Class::Reliable),
        ] {
            assert_eq!(header(bits(of(verb), class)), (of(verb), class));
            assert!(!is_data(bits(of(verb), class)));
        }
        assert!(is_data(data(u64::MAX)) && is_data(data(0)));
    }

    #[test]
    fn what_networks_send_each_other_comes_back() {
        let all = [
            Own::Write { token: 1, bits: 2, offset: 3, len: 4 },
            Own::Ready { token: 1, data: 2 },
            Own::Read { token: 1, bits: 2, offset: 3, len: 4, data: 5 },
            Own::Refused { token: 1 },
        ];
        for own in all {
            assert_eq!(Own::parse(&own.emit()), Some(own));
        }
        assert_eq!(Own::parse(&[9; 48]), None);
        assert_eq!(Own::parse(&[0; 47]), None);
    }
}
