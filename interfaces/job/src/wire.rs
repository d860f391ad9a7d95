//! The frames between a rank and the store: `length u32 | kind u8 | body`, little-endian.

use crate::place::Local;
use crate::seal::{Nonce, Share};
use crate::secret::Secret;
use cci_mem::secrets::clear;
use cci_seal::KEY;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// The version of the protocol.
pub(crate) const VERSION: u8 = 2;

/// The most bytes of a value.
pub(crate) const LONGEST_VALUE: usize = 65_536;

/// The most bytes of a frame to the store, behind its length.
pub(crate) const LONGEST_REQUEST: usize = LONGEST_VALUE + 512;

const CHALLENGE: u8 = 1;
const HELLO: u8 = 2;
const WELCOME: u8 = 3;
const PUBLISH: u8 = 4;
const LOOK_UP: u8 = 5;
const EXCHANGE: u8 = 6;
const DONE: u8 = 7;
const VALUE: u8 = 8;
const VALUES: u8 = 9;
const REFUSED: u8 = 10;
const END: u8 = 11;
const ENDING: u8 = 12;

/// Stands behind the secret of a WELCOME where connections between ranks are to be in clear.
const PLAIN: u8 = 1;

/// Bytes of a secret with that.
const IN_CLEAR: usize = KEY + 1;

/// What a rank sends first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// The rank has a secret.
    pub(crate) share: Option<Share>,
}

/// What the store answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Welcome {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) local: Local,
    pub(crate) key: Key,
}

/// What a WELCOME says of the secret.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Key {
    /// The job has none.
    None,
    /// The answer to the rank's share.
    Share(Share),
    /// The secret itself: the connection is that of a launcher's rank alone.
    Secret(Secret),
    /// The secret, of a job whose connections between ranks are in clear all the same.
    Plain(Secret),
}

impl Key {
    /// The secret, if it was sent.
    pub(crate) fn secret(self) -> Option<Secret> {
        match self {
            Self::Secret(secret) | Self::Plain(secret) => Some(secret),
            Self::None | Self::Share(_) => None,
        }
    }

    /// Whether connections between ranks are in clear though the job has a secret.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }
}

impl Welcome {
    /// Its fields beside the key, as they are sent.
    pub(crate) fn numbers(&self) -> [u8; 20] {
        let Local { rank, size, processors } = self.local;
        let mut bytes = [0; 20];
        for (place, number) in bytes.chunks_exact_mut(4).zip([self.rank, self.size, rank, size, processors]) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }
}

/// What a rank asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Hello(Hello),
    Publish {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    LookUp {
        limit: Duration,
        rank: u32,
        key: Vec<u8>,
    },
    Exchange {
        limit: Duration,
        value: Vec<u8>,
    },
    /// The job is to end with this status. Nothing answers it.
    End {
        status: u8,
    },
}

/// Why the store refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The limit of the request is over.
    TimedOut,
    /// The limit of another rank is over.
    GivenUp,
    /// What is waited for has gone.
    Gone,
    /// The rank has published this key before.
    Published,
    /// The rank has published as much as it may.
    Full,
}

const REFUSALS: [Refusal; 5] = [Refusal::TimedOut, Refusal::GivenUp, Refusal::Gone, Refusal::Published, Refusal::Full];

/// What the store sends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Challenge(Nonce),
    Welcome(Welcome),
    Done,
    Value(Vec<u8>),
    Values(Vec<Vec<u8>>),
    Refused(Refusal, Vec<u32>),
    /// A rank has ended the job with this status: no answer to anything.
    Ending(u8),
}

/// Bytes of frames, which are overwritten when they are dropped: those of a WELCOME may have the
/// secret.
#[derive(Debug, Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    /// Makes room for so many bytes more, and leaves no copy where these ones were.
    pub(crate) fn reserve(&mut self, more: usize) {
        let needed = self.0.len() + more;
        if needed > self.0.capacity() {
            let mut larger = Vec::with_capacity(needed.max(2 * self.0.capacity()));
            larger.extend_from_slice(&self.0);
            *self = Self(larger);
        }
    }

    /// Removes so many bytes at the beginning.
    pub(crate) fn remove(&mut self, length: usize) {
        clear(&mut self.0[..length]);
        self.0.drain(..length);
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        clear(&mut self.0);
    }
}

/// A frame on its way, which many ranks may share.
#[derive(Clone, Debug)]
pub(crate) struct Frame(Arc<Bytes>);

impl From<Vec<u8>> for Frame {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Bytes(bytes)))
    }
}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// The request is malformed: the rank's connection is to be closed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// A frame of these parts, which may be secret: it is made in one piece, and nothing is left of
/// them elsewhere.
fn frame(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut bytes = Vec::with_capacity(4 + length);
    let length = u32::try_from(length).expect("checked limits are below 4 GiB");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.push(kind);
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

/// At least as long as the limit: nobody is given up before it has passed.
fn milliseconds(limit: Duration) -> [u8; 4] {
    u32::try_from(limit.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX).to_le_bytes()
}

/// A key behind its length, which callers have checked.
fn with_length(key: &[u8]) -> Vec<u8> {
    [&[u8::try_from(key.len()).expect("a checked key")][..], key].concat()
}

impl Request {
    /// The frame.
    pub(crate) fn emit(&self) -> Vec<u8> {
        match self {
            Self::Hello(hello) => {
                let numbers = [hello.rank.to_le_bytes(), hello.size.to_le_bytes()];
                let share = hello.share.as_ref().map_or(&[][..], |share| &share[..]);
                frame(HELLO, &[&[VERSION], numbers.as_flattened(), share])
            }
            Self::Publish { key, value } => frame(PUBLISH, &[&with_length(key), value]),
            Self::LookUp { limit, rank, key } => {
                frame(LOOK_UP, &[&milliseconds(*limit), &rank.to_le_bytes(), &with_length(key)])
            }
            Self::Exchange { limit, value } => frame(EXCHANGE, &[&milliseconds(*limit), value]),
            Self::End { status } => frame(END, &[&[*status]]),
        }
    }

    /// Understands what stands behind the length of a frame.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let request = match rest.byte()? {
            HELLO => Self::Hello(rest.hello()?),
            PUBLISH => Self::Publish { key: rest.key()?, value: rest.value()? },
            LOOK_UP => Self::LookUp { limit: rest.limit()?, rank: rest.number()?, key: rest.key()? },
            EXCHANGE => Self::Exchange { limit: rest.limit()?, value: rest.value()? },
            END => Self::End { status: rest.byte()? },
            _ => return None,
        };
        rest.0.is_empty().then_some(request)
    }
}

impl Reply {
    /// The frame.
    pub(crate) fn emit(&self) -> Vec<u8> {
        match self {
            Self::Challenge(nonce) => frame(CHALLENGE, &[&[VERSION], nonce]),
            Self::Welcome(welcome) => {
                let key = match &welcome.key {
                    Key::None => &[][..],
                    Key::Share(share) => share,
                    // A forked child has none, and is no store.
                    Key::Secret(secret) | Key::Plain(secret) => secret.bytes().map_or(&[][..], |bytes| bytes),
                };
                let plain: &[u8] = if welcome.key.is_plain() { &[PLAIN] } else { &[] };
                frame(WELCOME, &[&welcome.numbers(), key, plain])
            }
            Self::Done => frame(DONE, &[]),
            Self::Value(value) => frame(VALUE, &[value]),
            Self::Values(values) => {
                let with_length = |value: &Vec<u8>| {
                    let length = u32::try_from(value.len()).expect("a checked value");
                    [&length.to_le_bytes(), &value[..]].concat()
                };
                frame(VALUES, &[&values.iter().flat_map(with_length).collect::<Vec<u8>>()])
            }
            Self::Refused(why, ranks) => {
                let number = REFUSALS.iter().position(|known| known == why).expect("all are listed");
                let ranks: Vec<u8> = ranks.iter().flat_map(|rank| rank.to_le_bytes()).collect();
                frame(REFUSED, &[&[u8::try_from(number).expect("five")], &ranks])
            }
            Self::Ending(status) => frame(ENDING, &[&[*status]]),
        }
    }

    /// Understands what stands behind the length of a frame.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let reply = match rest.byte()? {
            CHALLENGE if rest.byte()? == VERSION => Self::Challenge(rest.array()?),
            WELCOME => Self::Welcome(rest.welcome()?),
            DONE => Self::Done,
            VALUE => Self::Value(rest.value()?),
            VALUES => Self::Values(rest.values()?),
            REFUSED => Self::Refused(*REFUSALS.get(usize::from(rest.byte()?))?, rest.numbers()?),
            ENDING => Self::Ending(rest.byte()?),
            _ => return None,
        };
        rest.0.is_empty().then_some(reply)
    }
}

/// What is not understood yet of a frame.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn limit(&mut self) -> Option<Duration> {
        self.number().map(|limit| Duration::from_millis(limit.into()))
    }

    fn key(&mut self) -> Option<Vec<u8>> {
        let length = self.byte()?;
        self.take(length.into()).filter(|key| !key.is_empty()).map(<[u8]>::to_vec)
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        self.take(self.0.len()).filter(|value| value.len() <= LONGEST_VALUE).map(<[u8]>::to_vec)
    }

    fn values(&mut self) -> Option<Vec<Vec<u8>>> {
        let mut values = Vec::new();
        while !self.0.is_empty() {
            let length = self.number()?;
            values.push(self.take(usize::try_from(length).ok()?)?.to_vec());
        }
        Some(values)
    }

    fn numbers(&mut self) -> Option<Vec<u32>> {
        let mut numbers = Vec::new();
        while !self.0.is_empty() {
            numbers.push(self.number()?);
        }
        Some(numbers)
    }

    fn hello(&mut self) -> Option<Hello> {
        if self.byte()? != VERSION {
            return None;
        }
        let (rank, size) = (self.number()?, self.number()?);
        let share = if self.0.is_empty() { None } else { Some(self.array()?) };
        Some(Hello { rank, size, share })
    }

    fn secret(&mut self) -> Option<Secret> {
        // From where it lies: an array of its own would stay on the stack.
        Secret::from_bytes(self.take(KEY)?.try_into().ok()?).ok()
    }

    fn welcome(&mut self) -> Option<Welcome> {
        let (rank, size) = (self.number()?, self.number()?);
        let local = Local { rank: self.number()?, size: self.number()?, processors: self.number()? };
        let key = match self.0.len() {
            0 => Key::None,
            KEY => Key::Secret(self.secret()?),
            IN_CLEAR => {
                let secret = self.secret()?;
                (self.byte()? == PLAIN).then_some(Key::Plain(secret))?
            }
            _ => Key::Share(self.array()?),
        };
        Some(Welcome { rank, size, local, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> Vec<Request> {
        let (key, value, limit) = (b"uri".to_vec(), vec![7; 300], Duration::from_millis(1500));
        vec![
            Request::Hello(Hello { rank: 1, size: 2, share: None }),
            Request::Hello(Hello { rank: 1, size: 2, share: Some([4; 48]) }),
            Request::Publish { key: key.clone(), value: value.clone() },
            Request::LookUp { limit, rank: 9, key },
            Request::Exchange { limit, value },
            Request::End { status: 3 },
        ]
    }

    fn replies() -> Vec<Reply> {
        let local = Local { rank: 1, size: 2, processors: 3 };
        let welcome = |key| Welcome { rank: 1, size: 2, local, key };
        let secret = Secret::from_bytes(&[8; 32]).expect("memory");
        vec![
            Reply::Challenge([6; 32]),
            Reply::Welcome(welcome(Key::None)),
            Reply::Welcome(welcome(Key::Share([5; 48]))),
            Reply::Welcome(welcome(Key::Secret(secret.clone()))),
            Reply::Welcome(welcome(Key::Plain(secret))),
            Reply::Done,
            Reply::Value(vec![1, 2]),
            Reply::Values(vec![vec![], vec![1], vec![2; 70]]),
            Reply::Refused(Refusal::Full, vec![]),
            Reply::Refused(Refusal::Gone, vec![4, 5]),
            Reply::Ending(3),
        ]
    }

    #[test]
    fn a_limit_is_not_shortened_on_the_way() {
        let sent = |limit| match Request::parse(body(&Request::Exchange { limit, value: vec![] }.emit())) {
            Some(Request::Exchange { limit, .. }) => limit,
            other => panic!("{other:?}"),
        };
        assert_eq!(sent(Duration::from_micros(699_001)), Duration::from_millis(700));
        assert_eq!(sent(Duration::from_millis(700)), Duration::from_millis(700));
        assert_eq!(sent(Duration::MAX), Duration::from_millis(u32::MAX.into()));
    }

    /// What stands behind the length, which must be right.
    fn body(frame: &[u8]) -> &[u8] {
        let (length, body) = frame.split_first_chunk().expect("a length");
        assert_eq!(u32::from_le_bytes(*length) as usize, body.len());
        body
    }

    #[test]
    fn what_is_emitted_is_parsed() {
        for request in requests() {
            assert_eq!(Request::parse(body(&request.emit())), Some(request));
        }
        for reply in replies() {
            assert_eq!(Reply::parse(body(&reply.emit())), Some(reply));
        }
    }

    #[test]
    fn nothing_that_is_cut_or_damaged_panics() {
        let mut random = fastrand::Rng::with_seed(19);
        let frames = requests().iter().map(Request::emit).chain(replies().iter().map(Reply::emit)).collect::<Vec<_>>();
        for _ in 0..100_000 {
            let mut bytes = body(&frames[random.usize(..frames.len())]).to_vec();
            bytes.truncate(random.usize(..=bytes.len()));
            if let Some(at) = (!bytes.is_empty()).then(|| random.usize(..bytes.len())) {
                bytes[at] = random.u8(..);
            }
            // What is understood has the same meaning when it is written again.
            if let Some(request) = Request::parse(&bytes) {
                assert_eq!(Request::parse(body(&request.emit())), Some(request));
            }
            if let Some(reply) = Reply::parse(&bytes) {
                assert_eq!(Reply::parse(body(&reply.emit())), Some(reply));
            }
        }
    }

    #[test]
    fn a_key_is_not_empty_and_a_value_not_too_long() {
        assert_eq!(Request::parse(&[PUBLISH, 0, 1]), None);
        let exchange = |length| Request::parse(&[&[EXCHANGE, 0, 0, 0, 0][..], &vec![0; length]].concat());
        assert!(exchange(LONGEST_VALUE).is_some());
        assert_eq!(exchange(LONGEST_VALUE + 1), None);
    }
}
