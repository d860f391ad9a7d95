//! What peers are called.

use std::fmt;
use std::str::FromStr;

/// The longest name of a host, bytes.
const LONGEST_HOST: usize = 253;
/// Bytes of a record.
///
/// # Example
///
/// ```
/// use cci_peers::{Name, RECORD};
///
/// assert_eq!(Name::Record(Box::new([0; RECORD])).to_string().len(), "record:".len() + 2 * RECORD);
/// ```
pub const RECORD: usize = 48;

/// What a peer is called. All processes that connect to each other call each peer the same, and
/// names are ordered: of two that connect at once, the connect of the lower one counts.
///
/// # Example
///
/// ```
/// use cci_peers::Name;
///
/// for (text, name) in [
///     ("job:3", Name::Rank(3)),
///     ("17", Name::Number(17)),
///     ("node7:2", Name::Service { host: "node7".into(), number: 2 }),
/// ] {
///     assert_eq!(text.parse(), Ok(name.clone()));
///     assert_eq!(name.to_string(), text);
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the kinds are those of the wire format")]
pub enum Name {
    /// A rank of the parallel job.
    Rank(u32),
    /// A number from a table.
    Number(u64),
    /// A small number of a host.
    Service {
        /// The host, as all processes write it: at most 253 bytes.
        host: Box<str>,
        /// Which of the host's.
        number: u32,
    },
    /// An address that says itself where the peer is: a record whose bytes an interface makes.
    Record(Box<[u8; RECORD]>),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rank(rank) => write!(f, "job:{rank}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Service { host, number } => write!(f, "{host}:{number}"),
            Self::Record(bytes) => {
                f.write_str("record:")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

/// A text that is no [`Name`].
///
/// # Example
///
/// ```
/// let no: cci_peers::NoName = "node7".parse::<cci_peers::Name>().unwrap_err();
/// assert_eq!(no.to_string(), "'node7' is no name of a peer; write job:RANK, a number, or HOST:NUMBER");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoName(String);

impl NoName {
    pub(crate) fn of(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for NoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no name of a peer; write job:RANK, a number, or HOST:NUMBER", self.0)
    }
}

impl std::error::Error for NoName {}

impl FromStr for Name {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        let no = || NoName::of(text);
        let Some((host, number)) = text.rsplit_once(':') else {
            return text.parse().map(Self::Number).map_err(|_| no());
        };
        if host == "record" && number.len() == 2 * RECORD {
            let digits = number.as_bytes().as_chunks::<2>().0.iter().map(|pair| std::str::from_utf8(pair).ok());
            let bytes = digits.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<Vec<u8>>>();
            let bytes: Box<[u8]> = bytes.ok_or_else(no)?.into();
            return bytes.try_into().map(Self::Record).map_err(|_| no());
        }
        let number = number.parse().map_err(|_| no())?;
        if host == "job" {
            return Ok(Self::Rank(number));
        }
        let is_host = !host.is_empty() && host.len() <= LONGEST_HOST && !host.contains(char::is_whitespace);
        if is_host { Ok(Self::Service { host: host.into(), number }) } else { Err(no()) }
    }
}

impl Name {
    /// Whether the name fits the format.
    pub(crate) fn is_short(&self) -> bool {
        !matches!(self, Self::Service { host, .. } if host.len() > LONGEST_HOST)
    }

    /// Appends kind, length and bytes.
    pub(crate) fn emit(&self, to: &mut Vec<u8>) {
        let (kind, bytes) = match self {
            Self::Rank(rank) => (0, rank.to_le_bytes().to_vec()),
            Self::Number(number) => (1, number.to_le_bytes().to_vec()),
            Self::Service { host, number } => (2, [&number.to_le_bytes()[..], host.as_bytes()].concat()),
            Self::Record(bytes) => (3, bytes.to_vec()),
        };
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        to.push(kind);
        to.extend(length.to_le_bytes());
        to.extend(bytes);
    }

    /// The name at the beginning, and what follows.
    pub(crate) fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (kind, rest) = bytes.split_first()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (own, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
        let name = match kind {
            0 => Self::Rank(u32::from_le_bytes(own.try_into().ok()?)),
            1 => Self::Number(u64::from_le_bytes(own.try_into().ok()?)),
            2 => {
                let (number, host) = own.split_first_chunk()?;
                let host = std::str::from_utf8(host).ok()?;
                Self::Service { host: host.into(), number: u32::from_le_bytes(*number) }
            }
            3 => Self::Record(Box::new(own.try_into().ok()?)),
            _ => return None,
        };
        name.is_short().then_some((name, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_written_and_a_shorter_one_is_none() {
        let record = Name::Record(Box::new(std::array::from_fn(|at| at as u8 * 5)));
        assert_eq!(record.to_string().parse(), Ok(record.clone()));
        for name in [Name::Rank(7), Name::Number(u64::MAX), Name::Service { host: "näher".into(), number: 5 }, record]
        {
            let mut bytes = Vec::new();
            name.emit(&mut bytes);
            bytes.push(9);
            assert_eq!(Name::parse(&bytes), Some((name, &[9][..])));
            for length in 0..bytes.len() - 1 {
                assert_eq!(Name::parse(&bytes[..length]), None, "{length} bytes");
            }
        }
        assert_eq!(Name::parse(&[3, 0, 0]), None);
        assert_eq!(Name::parse(&[4, 0, 0]), None);
        assert_eq!(Name::parse(&[0, 5, 0, 1, 1, 1, 1, 1]), None, "a rank of five bytes");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let (long, digits) = (format!("{}:1", "h".repeat(254)), format!("record:{}x", "0".repeat(95)));
        for text in ["", "job:", "job:-1", "x", "a b:1", ":1", "node:4294967296", &long, &digits, "record:00ff"] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
    }
}
