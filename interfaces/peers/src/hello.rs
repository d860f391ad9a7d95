//! What two peers tell each other before the connection is an interface's
//! (`docs/design/peers-by-name.md`, The format).

use crate::name::Name;

const HELLO: [u8; 8] = *b"ccipeer1";
const WELCOME: [u8; 8] = *b"ccipeerw";

/// The payload of a request for a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Which process asks: random.
    pub(crate) process: u64,
    /// The number of this attempt, ascending.
    pub(crate) serial: u32,
    /// How many connections with the target, of its process now, the asking side has had.
    pub(crate) links: u32,
    /// Who is asked.
    pub(crate) target: Name,
    /// Who asks.
    pub(crate) own: Name,
}

impl Hello {
    pub(crate) fn emit(&self) -> Vec<u8> {
        let mut bytes = HELLO.to_vec();
        bytes.extend(self.process.to_le_bytes());
        bytes.extend(self.serial.to_le_bytes());
        bytes.extend(self.links.to_le_bytes());
        self.target.emit(&mut bytes);
        self.own.emit(&mut bytes);
        bytes
    }

    /// Reads a payload. `None`: the request is not from a peer.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&HELLO)?;
        let (process, rest) = rest.split_first_chunk()?;
        let (serial, rest) = rest.split_first_chunk()?;
        let (links, rest) = rest.split_first_chunk()?;
        let (target, rest) = Name::parse(rest)?;
        let (own, rest) = Name::parse(rest)?;
        let hello = Self {
            process: u64::from_le_bytes(*process),
            serial: u32::from_le_bytes(*serial),
            links: u32::from_le_bytes(*links),
            target,
            own,
        };
        rest.is_empty().then_some(hello)
    }
}

/// The first message of who has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Welcome {
    /// Which process it is.
    pub(crate) process: u64,
    /// How many connections with the other one, of its process now, it has had, with this one.
    pub(crate) links: u32,
}

impl Welcome {
    pub(crate) fn emit(self) -> Vec<u8> {
        [&WELCOME[..], &self.process.to_le_bytes(), &self.links.to_le_bytes()].concat()
    }

    /// Reads the first message.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (process, links) = bytes.strip_prefix(&WELCOME)?.split_first_chunk()?;
        Some(Self { process: u64::from_le_bytes(*process), links: u32::from_le_bytes(links.try_into().ok()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_read_as_written_and_nothing_else_is() {
        let hello = Hello { process: 7, serial: 8, links: 9, target: Name::Number(1), own: Name::Rank(2) };
        let bytes = hello.emit();
        assert_eq!(Hello::parse(&bytes), Some(hello));
        for length in 0..bytes.len() {
            assert_eq!(Hello::parse(&bytes[..length]), None, "{length} bytes");
        }
        assert_eq!(Hello::parse(&[&bytes[..], &[0]].concat()), None);
        let welcome = Welcome { process: u64::MAX - 1, links: 3 };
        let bytes = welcome.emit();
        assert_eq!(Welcome::parse(&bytes), Some(welcome));
        assert_eq!(Welcome::parse(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Welcome::parse(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(Welcome::parse(b"Ccipeerw123456781234"), None);
    }

    #[test]
    fn the_longest_hello_fits_a_request() {
        let longest = || Name::Service { host: "h".repeat(253).into(), number: u32::MAX };
        let hello = Hello { process: 0, serial: 0, links: 0, target: longest(), own: longest() };
        assert!(hello.emit().len() <= cci::CONN_REQ_LEN, "{}", hello.emit().len());
    }
}
