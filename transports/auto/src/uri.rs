//! URIs (`docs/design/auto.md`, The URI).

use crate::host::Place;
use std::net::{IpAddr, SocketAddr};

/// The scheme, with what stands after it.
pub(crate) const SCHEME: &str = "cci://";
/// The longest URI, bytes: programs keep URIs in arrays.
pub(crate) const LONGEST: usize = 120;
/// Digits of identity, host and user.
const DIGITS: [usize; 3] = [11, 8, 3];
/// Stands before another address of the ways before it.
const MORE: char = '+';
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What a URI says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Uri<'a> {
    /// Of the endpoint, random.
    pub(crate) identity: u64,
    pub(crate) place: Place,
    /// Names of ways, and their URIs without the scheme.
    pub(crate) ways: Vec<(&'a str, &'a str)>,
    /// Other addresses at which the ways listen that have an address and a port, with the same
    /// ports.
    pub(crate) more: Vec<IpAddr>,
}

impl<'a> Uri<'a> {
    /// Reads a URI.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.strip_prefix(SCHEME)?.split(',');
        let mut words = parts.next()?.split('.').zip(DIGITS).map(|(digits, count)| number(digits, count));
        let [identity, host, user] = [words.next()??, words.next()??, words.next()??];
        let is_whole = text.split(',').next()?.matches('.').count() + 1 == DIGITS.len();
        let (mut ways, mut more) = (Vec::<(&str, &str)>::new(), Vec::new());
        for part in parts {
            if let Some(ip) = part.strip_prefix(MORE) {
                more.push(ip.parse().ok()?);
                continue;
            }
            let way = match part.split_once('=') {
                Some(way) => way,
                None => (part, ways.last()?.1),
            };
            if way.0.is_empty() || way.1.is_empty() {
                return None;
            }
            ways.push(way);
        }
        (is_whole && !ways.is_empty()).then_some(Self { identity, place: Place { host, user }, ways, more })
    }

    /// The URIs of a way without the scheme: one for each address at which it may listen.
    pub(crate) fn rests(&self, name: &str) -> Vec<String> {
        let Some((_, rest)) = self.ways.iter().find(|(way, _)| *way == name) else { return Vec::new() };
        let port = rest.parse().map(|at: SocketAddr| at.port());
        let others = port.iter().flat_map(|port| self.more.iter().map(|ip| SocketAddr::new(*ip, *port).to_string()));
        std::iter::once((*rest).to_owned()).chain(others).collect()
    }

    /// Writes the URI, with as many ways and then addresses as it has room for.
    pub(crate) fn write(&self) -> String {
        let mut text = String::from(SCHEME);
        for (at, (word, count)) in [self.identity, self.place.host, self.place.user].into_iter().zip(DIGITS).enumerate()
        {
            if at > 0 {
                text.push('.');
            }
            text.extend((0..count).rev().map(|digit| char::from(ALPHABET[(word >> (6 * digit) & 63) as usize])));
        }
        let mut before = "";
        for (name, rest) in &self.ways {
            let part = if *rest == before { format!(",{name}") } else { format!(",{name}={rest}") };
            if text.len() + part.len() > LONGEST {
                return text;
            }
            text.push_str(&part);
            before = rest;
        }
        for ip in &self.more {
            let part = format!(",{MORE}{ip}");
            if text.len() + part.len() > LONGEST {
                break;
            }
            text.push_str(&part);
        }
        text
    }
}

/// The number that so many digits stand for.
fn number(digits: &str, count: usize) -> Option<u64> {
    let digit = |byte: u8| ALPHABET.iter().position(|digit| *digit == byte);
    let mut number = 0u64;
    for byte in digits.bytes() {
        number = number.checked_mul(64)?.checked_add(digit(byte)? as u64)?;
    }
    (digits.len() == count).then_some(number)
}

/// Whether an address, with a port or without, leads to the host that uses it: no other host can go
/// there.
pub(crate) fn is_loopback(rest: &str) -> bool {
    let host = rest.rsplit_once(':').map_or(rest, |(host, _)| host);
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place { host: 0x1234_5678_9abc, user: 0x2_beef };

    fn uri<'a>(ways: &[(&'a str, &'a str)]) -> Uri<'a> {
        Uri { identity: u64::MAX - 5, place: PLACE, ways: ways.to_vec(), more: Vec::new() }
    }

    #[test]
    fn what_is_written_is_read() {
        for ways in [
            &[("sm", "4711/0")][..],
            &[("sm", "4711/0"), ("sock", "192.0.2.1:5000"), ("tcp", "192.0.2.1:5000")],
            &[("sock", "[2001:db8::1]:1"), ("tcp", "[2001:db8::1]:2")],
        ] {
            let uri = uri(ways);
            assert_eq!(Uri::parse(&uri.write()), Some(uri));
        }
        assert!(uri(&[("sock", "a:1"), ("tcp", "a:1")]).write().ends_with(",sock=a:1,tcp"));
    }

    #[test]
    fn the_longest_ways_of_one_port_fit() {
        let address = "[2001:db80:1234:5678:9abc:def0:1234:5678]:65535";
        let ways = [("sm", "4194304/4294967295"), ("sock", address), ("tcp", address)];
        let text = uri(&ways).write();
        assert!(text.len() <= LONGEST, "{} bytes", text.len());
        assert_eq!(Uri::parse(&text).expect("a URI").ways, ways);
        // What does not fit is left out, and nothing after it stands for something else.
        let other = "[2001:db80:1234:5678:9abc:def0:1234:5679]:65535";
        let text = uri(&[ways[0], ways[1], ("tcp", other), ("more", other)]).write();
        assert!(text.len() <= LONGEST);
        assert_eq!(Uri::parse(&text).expect("a URI").ways, ways[..2]);
    }

    #[test]
    fn several_addresses_are_those_of_each_way_that_has_a_port() {
        let ways = [("sm", "4711/0"), ("sock", "10.0.1.1:5000"), ("tcp", "10.0.1.1:5001")];
        let more = ["10.0.2.1", "2001:db8::1"].map(|ip| ip.parse().expect("an IP")).to_vec();
        let uri = Uri { more, ..uri(&ways) };
        let text = uri.write();
        assert!(text.ends_with(",tcp=10.0.1.1:5001,+10.0.2.1,+2001:db8::1"), "{text}");
        assert_eq!(Uri::parse(&text).as_ref(), Some(&uri));
        assert_eq!(uri.rests("sm"), ["4711/0"]);
        assert_eq!(uri.rests("sock"), ["10.0.1.1:5000", "10.0.2.1:5000", "[2001:db8::1]:5000"]);
        assert_eq!(uri.rests("tcp")[2], "[2001:db8::1]:5001");
        assert_eq!(uri.rests("pigeon"), [""; 0]);
        // As many as fit.
        let many = Uri { more: (0..20).map(|last| IpAddr::from([10, 0, 2, last])).collect(), ..uri.clone() }.write();
        let kept = Uri::parse(&many).expect("a URI").more.len();
        assert!((3..20).contains(&kept) && many.len() <= LONGEST, "{kept} in {many}");
        assert!(many.len() + ",+10.0.2.1".len() > LONGEST);
    }

    #[test]
    fn what_is_no_uri_is_refused() {
        let whole = uri(&[("sm", "1/2")]).write();
        let head = whole.split(',').next().expect("a head").to_owned();
        for text in [
            "",
            "cci",
            "cci:",
            "cci://",
            "cci://\0",
            "sm://1/2",
            "cci://,sm=1",
            "cci://a.b.c,sm=1",
            &head,
            &format!("{head},"),
            &format!("{head},sm"),
            &format!("{head},sm="),
            &format!("{head},=1"),
            &format!("{head},+10.0.0.1"),
            &format!("{whole},+"),
            &format!("{whole},+10.0.0.1:5"),
            &format!("{head}.AAA,sm=1"),
            &whole.replacen("cci", "CCI", 1),
            &whole[..whole.len() - 7],
            &whole.replacen('.', "", 1),
        ] {
            assert_eq!(Uri::parse(text), None, "{text:?}");
        }
        // Twelve digits of an identity would be more than 64 bits, and eleven can be.
        assert_eq!(number("___________", 11), None);
    }

    #[test]
    fn loop_back_addresses_are_known() {
        for (rest, is) in [
            ("127.0.0.1:5000", true),
            ("127.9.9.9:5000", true),
            ("[::1]:5000", true),
            ("localhost:5000", true),
            ("192.0.2.1:5000", false),
            ("[2001:db8::1]:5000", false),
            ("node7:5000", false),
        ] {
            assert_eq!(is_loopback(rest), is, "{rest}");
        }
    }
}
