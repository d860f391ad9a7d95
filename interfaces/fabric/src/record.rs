//! Addresses: a record of 64 bytes (`docs/design/fabric.md`, The address).

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of an address.
pub const RECORD: usize = 64;
/// Bytes of it that name a peer: those before the fingerprint.
pub(crate) const NAME: usize = 48;
const VERSION: u8 = 1;

const SM: u8 = 1;
const SOCK: u8 = 1 << 1;
const TCP: u8 = 1 << 2;
const TCP_FIRST: u8 = 1 << 3;
/// The last 32 bytes of the name are the URI itself: of an endpoint whose URI is not that of
/// `auto`.
const TEXT: u8 = 1 << 6;
const IPV6: u8 = 1 << 7;
/// The digits of the URI of `auto` (`docs/design/auto.md`).
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The address of an endpoint, as `fi_getname` gives it. It never changes while the endpoint is
/// open.
///
/// # Example
///
/// ```
/// use cci_fabric::Record;
///
/// let record = Record::of_uri("cci://K2Vb0c_S1xk.Jf83kQpa.x9E,sm=4711/0,sock=192.0.2.1:5000,tcp", 7).unwrap();
/// assert_eq!(record.uri().as_deref(), Some("cci://K2Vb0c_S1xk.Jf83kQpa.x9E,sm=4711/0,sock=192.0.2.1:5000,tcp"));
/// assert_eq!(Record::from_bytes(&record.to_bytes()), Some(record));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record([u8; RECORD]);

impl Record {
    /// The bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; RECORD] {
        self.0
    }

    /// Reads a record: the first 64 bytes. `None`: they are none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let record = Self(*bytes.first_chunk()?);
        record.uri().is_some().then_some(record)
    }

    /// The record of an endpoint at this URI; `identity`: a random number, for URIs that have none.
    /// `None`: the URI does not fit.
    #[must_use]
    pub fn of_uri(uri: &str, identity: u64) -> Option<Self> {
        let record = match uri.strip_prefix("cci://") {
            Some(rest) => Self::of_auto(rest),
            None => Self::of_text(uri, identity),
        };
        record.filter(|record| record.uri().is_some())
    }

    /// The record of a place where an endpoint is to listen, which has no identity yet.
    ///
    /// # Example
    ///
    /// ```
    /// use cci_fabric::Record;
    ///
    /// let place = "192.0.2.1:5000".parse().unwrap();
    /// let record = Record::of_place(place);
    /// assert_eq!(Record::place_of(&record.to_bytes()), Some(place));
    /// ```
    #[must_use]
    pub fn of_place(place: SocketAddr) -> Self {
        let mut record = Self([0; RECORD]);
        (record.0[0], record.0[1]) = (VERSION, SOCK | TCP);
        let port = place.port().to_be_bytes();
        record.put(4, &port);
        record.put(6, &port);
        record.put_addresses(&[place.ip()]);
        record
    }

    /// Where an endpoint is to listen, of the bytes of a record that has no identity; port 0: any.
    #[must_use]
    pub fn place_of(bytes: &[u8]) -> Option<SocketAddr> {
        let record = Self(*bytes.first_chunk()?);
        let first = *record.addresses(record.0[2])?.first()?;
        let port = u16::from_be_bytes(*record.0[4..].first_chunk()?);
        let is_place = record.identity() == 0 && record.0[0] == VERSION && record.0[1] & !IPV6 == SOCK | TCP;
        is_place.then(|| SocketAddr::new(first, port))
    }

    fn of_text(uri: &str, identity: u64) -> Option<Self> {
        let mut record = Self([0; RECORD]);
        (record.0[0], record.0[1]) = (VERSION, TEXT);
        record.put(8, &identity.to_le_bytes());
        let room = record.0.get_mut(16..16 + uri.len()).filter(|_| 16 + uri.len() < NAME && !uri.contains('\0'))?;
        room.copy_from_slice(uri.as_bytes());
        Some(record)
    }

    fn of_auto(rest: &str) -> Option<Self> {
        let mut record = Self([0; RECORD]);
        record.0[0] = VERSION;
        let mut parts = rest.split(',');
        let mut words = parts.next()?.split('.');
        let (identity, host, user) = (digits(words.next()?)?, digits(words.next()?)?, digits(words.next()?)?);
        record.put(8, &identity.to_le_bytes());
        record.put(16, &host.to_le_bytes()[..6]);
        record.put(22, &(user as u16).to_le_bytes());
        record.0[3] = (user >> 16) as u8 & 3;
        let (mut addresses, mut before) = (Vec::<IpAddr>::new(), "");
        for part in parts {
            if let Some(ip) = part.strip_prefix('+') {
                addresses.push(ip.parse().ok()?);
                continue;
            }
            let (way, text) = part.split_once('=').unwrap_or((part, before));
            before = text;
            match way {
                "sm" => {
                    let (process, number) = text.split_once('/')?;
                    record.put(24, &process.parse::<u32>().ok()?.to_le_bytes());
                    record.put(28, &number.parse::<u32>().ok()?.to_le_bytes());
                    record.0[1] |= SM;
                }
                "sock" | "tcp" => {
                    let (bit, at) = if way == "sock" { (SOCK, 4) } else { (TCP, 6) };
                    let address: SocketAddr = text.parse().ok()?;
                    if bit == TCP || record.0[1] & TCP == 0 {
                        record.0[1] |= bit;
                    } else {
                        record.0[1] |= bit | TCP_FIRST;
                    }
                    record.put(at, &address.port().to_be_bytes());
                    if addresses.is_empty() {
                        addresses.push(address.ip());
                    }
                }
                // A way that this version does not know is left out.
                _ => {}
            }
        }
        // Addresses without a port lead nowhere.
        if record.0[1] & (SOCK | TCP) != 0 {
            record.put_addresses(&addresses);
        }
        Some(record)
    }

    /// Those of the first one's family, not those of one link alone, as many as there is room for.
    fn put_addresses(&mut self, addresses: &[IpAddr]) {
        let Some(first) = addresses.first() else { return };
        let kept = addresses.iter().enumerate().filter(|(at, ip)| *at == 0 || !is_link_local(ip)).map(|(_, ip)| ip);
        match first {
            IpAddr::V6(ip) => {
                self.0[1] |= IPV6;
                self.0[2] = 1;
                self.put(32, &ip.octets());
            }
            IpAddr::V4(_) => {
                let kept = kept.filter_map(|ip| if let IpAddr::V4(ip) = ip { Some(ip.octets()) } else { None });
                let kept: Vec<u8> = kept.take(4).flatten().collect();
                self.0[2] = (kept.len() / 4) as u8;
                self.put(32, &kept);
            }
        }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn word(&self, at: usize) -> u32 {
        self.0[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Random, of the endpoint.
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.0[8..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// The URI to connect to; `None`: these bytes are no record.
    #[must_use]
    pub fn uri(&self) -> Option<String> {
        let [version, ways, count, upper, ..] = self.0;
        if version != VERSION {
            return None;
        }
        if ways == TEXT {
            let text = &self.0[16..NAME];
            let text = &text[..text.iter().position(|byte| *byte == 0)?];
            return std::str::from_utf8(text).ok().filter(|text| text.contains("://")).map(str::to_owned);
        }
        if ways & (SM | SOCK | TCP) == 0 || ways & TEXT != 0 || upper > 3 {
            return None;
        }
        let host = self.0[16..24].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)) & ((1 << 48) - 1);
        let user = u64::from(upper) << 16 | u64::from(self.word(20) >> 16);
        let mut uri = String::from("cci://");
        write_digits(&mut uri, self.identity(), 11);
        uri.push('.');
        write_digits(&mut uri, host, 8);
        uri.push('.');
        write_digits(&mut uri, user, 3);
        if ways & SM != 0 {
            let _ = write!(uri, ",sm={}/{}", self.word(24), self.word(28));
        }
        let addresses = self.addresses(count)?;
        self.write_ports(&mut uri, *addresses.first().unwrap_or(&IpAddr::V4(Ipv4Addr::LOCALHOST)))?;
        for more in addresses.iter().skip(1) {
            let _ = write!(uri, ",+{more}");
        }
        Some(uri)
    }

    /// The ways that have ports, in their order.
    fn write_ports(&self, uri: &mut String, first: IpAddr) -> Option<()> {
        let ways = self.0[1];
        let port = |at: usize| self.0[at..].first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes));
        let mut named = vec![("sock", SOCK, port(4)), ("tcp", TCP, port(6))];
        if ways & TCP_FIRST != 0 {
            named.reverse();
        }
        let mut before = None;
        for (name, _, port) in named.into_iter().filter(|(_, bit, _)| ways & bit != 0) {
            if self.0[2] == 0 || port == 0 {
                return None;
            }
            let _ = match before {
                Some(same) if same == port => write!(uri, ",{name}"),
                _ => write!(uri, ",{name}={}", SocketAddr::new(first, port)),
            };
            before = Some(port);
        }
        Some(())
    }

    fn addresses(&self, count: u8) -> Option<Vec<IpAddr>> {
        let bytes = &self.0[32..48];
        if self.0[1] & IPV6 != 0 {
            let ip = Ipv6Addr::from(*bytes.first_chunk::<16>()?);
            return (count == 1).then(|| vec![ip.into()]);
        }
        let ips = bytes.as_chunks::<4>().0.iter().take(count.into()).map(|octets| Ipv4Addr::from(*octets).into());
        (count <= 4).then(|| ips.collect())
    }

    /// What peers are told: the record without its fingerprint.
    pub(crate) fn name(&self) -> cci_peers::Name {
        let mut name = [0; NAME];
        name.copy_from_slice(&self.0[..NAME]);
        cci_peers::Name::Record(Box::new(name))
    }

    /// The record of a peer that calls itself so; `None`: it is none.
    pub(crate) fn of_name(name: &cci_peers::Name) -> Option<Self> {
        let cci_peers::Name::Record(name) = name else { return None };
        let mut bytes = [0; RECORD];
        bytes[..NAME].copy_from_slice(&name[..]);
        Self::from_bytes(&bytes)
    }
}

fn is_link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

fn digits(text: &str) -> Option<u64> {
    text.bytes().try_fold(0_u64, |number, byte| {
        let digit = ALPHABET.iter().position(|digit| *digit == byte)?;
        number.checked_mul(64)?.checked_add(digit as u64)
    })
}

fn write_digits(text: &mut String, number: u64, count: u32) {
    text.extend((0..count).rev().map(|digit| char::from(ALPHABET[(number >> (6 * digit) & 63) as usize])));
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "cci://K2Vb0c_S1xk.Jf83kQpa.x9E";

    fn of(ways: &str) -> Option<Record> {
        Record::of_uri(&format!("{HEAD}{ways}"), 0)
    }

    #[test]
    fn a_record_makes_the_uri_again() {
        for ways in [
            ",sm=4711/0",
            ",sm=4194304/4294967295,sock=192.0.2.1:5000,tcp",
            ",sock=10.0.0.1:1,tcp=10.0.0.1:2,+10.0.0.2,+10.0.0.3",
            ",sm=1/2,tcp=10.0.0.1:5,sock",
            ",tcp=[2001:db8::1]:7",
        ] {
            let record = of(ways).unwrap_or_else(|| panic!("no record of {ways}"));
            assert_eq!(record.uri(), Some(format!("{HEAD}{ways}")));
            assert_eq!(Record::from_bytes(&record.to_bytes()), Some(record));
            assert_eq!(Record::of_name(&record.name()), Some(record));
        }
        let record = Record::of_uri("sm://4711/3", 77).expect("short");
        assert_eq!((record.uri().as_deref(), record.identity()), (Some("sm://4711/3"), 77));
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let kept = of(",sock=10.0.0.1:1,+169.254.0.9,+2001:db8::1,+10.0.0.2,+10.0.0.3,+10.0.0.4,+10.0.0.5");
        let wanted = format!("{HEAD},sock=10.0.0.1:1,+10.0.0.2,+10.0.0.3,+10.0.0.4");
        assert_eq!(kept.and_then(|record| record.uri()), Some(wanted));
        let without_port = of(",sm=1/2,+10.0.0.2,+10.0.0.3").expect("a record");
        assert_eq!(Some(without_port), of(",sm=1/2"));
        assert_eq!(of(",pigeon=1").map(|record| record.uri()), None);
        let port = format!("{HEAD},sock=10.0.0.1:0,tcp=10.0.0.1:2");
        for wrong in [port, format!("sock://{}", "9".repeat(40)), "sm:/4711".into(), "sm://4711\0".into()] {
            assert_eq!(Record::of_uri(&wrong, 0), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let good = of(",sm=1/2,sock=10.0.0.1:1").expect("a record").to_bytes();
        assert_eq!(Record::from_bytes(&good[..63]), None);
        // A version, ways, counts and ports that are none.
        for (at, byte) in [(0, 0), (0, 2), (1, 0), (1, 0x47), (2, 0), (2, 5), (3, 4), (4, 0)] {
            let mut bytes = good;
            bytes[at] = byte;
            if at == 4 {
                bytes[5] = 0;
            }
            assert_eq!(Record::from_bytes(&bytes), None, "byte {at} is {byte:#x}");
        }
        let text = Record::of_uri("sm://1/2", 0).expect("a record").to_bytes();
        for (at, byte) in [(16, 0), (20, 0xff), (18, b'x')] {
            let mut bytes = text;
            bytes[at] = byte;
            assert_eq!(Record::from_bytes(&bytes), None, "byte {at} is {byte:#x}");
        }
    }

    #[test]
    fn any_bytes_are_a_uri_or_none() {
        let mut random = fastrand::Rng::with_seed(52);
        for _ in 0..10_000 {
            let mut bytes = [0; RECORD];
            bytes.fill_with(|| random.u8(..));
            (bytes[0], bytes[1]) = (VERSION, bytes[1] & !0x38);
            if let Some(record) = Record::from_bytes(&bytes) {
                assert!(record.uri().is_some_and(|uri| uri.len() <= 120));
            }
        }
    }
}
