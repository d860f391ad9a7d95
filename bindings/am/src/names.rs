//! Names of endpoints: a process, a number in it, and the URI.

use crate::refusal::Refusal;
use std::sync::OnceLock;

/// The most endpoints that a process gives names to: the number has 15 bits in `ammpi.h`.
const MOST: u32 = (1 << 15) - 1;

/// The name of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    sealed: Sealed,
    uri: Box<str>,
}

/// A name as programs hold it: the check tells it from an invented one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// The process that has the endpoint.
    pub(crate) process: u32,
    pub(crate) number: u32,
    /// 24 bits that stand for the host.
    pub(crate) host: u32,
    pub(crate) check: u16,
    /// In the dialect whose names have it.
    pub(crate) uri: Option<Box<str>>,
}

impl Sealed {
    /// Whether a process has given it.
    pub(crate) fn is_genuine(&self) -> bool {
        self.check == check(self.process, self.number)
    }
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn check(process: u32, number: u32) -> u16 {
    let words = [process.to_le_bytes(), number.to_le_bytes()].concat();
    let hash = hash(&words);
    (hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) as u16
}

/// 24 bits that stand for this host: those of its kernel's boot identifier.
pub(crate) fn host() -> u32 {
    static HOST: OnceLock<u32> = OnceLock::new();
    *HOST.get_or_init(|| {
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        (hash(&boot) as u32 & 0x00ff_ffff).max(1)
    })
}

impl Name {
    /// Gives the endpoint at this URI a name.
    pub(crate) fn give((process, number): (u32, u32), uri: &str) -> Result<Self, Refusal> {
        if number > MOST {
            return Err(Refusal::Resource("no name is left for an endpoint; this process has made 32,767"));
        }
        let check = check(process, number);
        let sealed = Sealed { process, number, host: host(), check, uri: None };
        Ok(Self { sealed, uri: uri.into() })
    }

    /// A name that a program has passed, with its URI.
    pub(crate) fn found(sealed: Sealed, uri: Box<str>) -> Self {
        Self { sealed: Sealed { uri: None, ..sealed }, uri }
    }

    /// What a requester introduces itself with.
    pub(crate) fn introduction(&self) -> String {
        let Sealed { process, number, host, check, .. } = self.sealed;
        format!("{process} {number} {host} {check} {}", self.uri)
    }

    /// The name in an introduction.
    pub(crate) fn introduced(text: &str) -> Option<Self> {
        let mut words = text.splitn(5, ' ');
        let mut number = || words.next()?.parse().ok();
        let (process, place, host, check): (u32, u32, u32, u32) = (number()?, number()?, number()?, number()?);
        let check = u16::try_from(check).ok()?;
        let sealed = Sealed { process, number: place, host, check, uri: None };
        Some(Self { sealed, uri: words.next()?.into() })
    }

    pub(crate) fn sealed(&self) -> &Sealed {
        &self.sealed
    }

    /// Empty where nobody has the name.
    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_introduction_is_the_name_again() {
        let name = Name::give((1, 7), "sm://1/2 with a blank").expect("a name");
        assert_eq!(Name::introduced(&name.introduction()), Some(name));
        assert_eq!(Name::introduced("1 2 3 70000 x"), None);
        assert_eq!(Name::introduced("1 2 3"), None);
    }
}
