//! What travels: a header of 16 bytes, and a body. All numbers are in little-endian order.

use cci_proto::{Atomic, Attribute, Failure, Status};

/// Bytes of a header.
pub(crate) const HEADER: usize = 16;
/// Bytes of a HELLO.
pub(crate) const HELLO: usize = 64;
/// Largest body of a control frame, bytes.
pub(crate) const MAX_CONTROL: usize = 1280;
/// Bytes before the data of a WRITE, and the whole of a READ.
pub(crate) const BEGIN: usize = 40;
/// Bytes before the data of DATA and ANSWER, and before the message of an operation.
pub(crate) const OPERATION: usize = 4;
/// Bytes before the data of WRITE_PART and of ANSWER_PART.
pub(crate) const WRITE_PART: usize = BEGIN + 8;
pub(crate) const ANSWER_PART: usize = 16;
/// Bytes of the body of RESULT.
pub(crate) const RESULT: usize = 16;
/// Operations that one side may have open on a lane.
pub(crate) const OPERATIONS: u32 = 1024;

/// Streams of a lane, at most.
pub(crate) const MOST_STREAMS: u64 = 8;

const MAGIC: u64 = u64::from_le_bytes(*b"cci-tcp1");
const VERSION: u16 = 1;
/// A handshake follows, and then sealed records.
const SEALED: u16 = 1;
/// This side dialed.
const DIALED: u16 = 1 << 15;
/// The offer of a HELLO that refuses streams in clear: a version that does not know sealed streams
/// sees another version in it.
const SEALED_ONLY: [u64; 2] = [u64::from_le_bytes(*b"sealed!!"), 0];

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Asks for a connection.
    Connect = 1,
    Accept,
    Reject,
    /// The client is to ask another endpoint.
    Redirect,
    /// The client is to ask again later.
    Busy,
    Disconnect,
    /// A message that counts in `taken`.
    Message,
    /// A message of an unreliable connection, which counts nowhere.
    Datagram,
    Ping,
    Pong,
    /// Begins a write, with its first bytes.
    Write,
    /// Begins a read.
    Read,
    /// Goes on with a write.
    Data,
    /// Bytes of a read.
    Answer,
    /// The end of an operation.
    Result,
    /// The rest of a write does not come.
    Cancel,
    Atomic,
    /// The messages that the other side may send, all together.
    Grant,
    /// Unused grants are to be given back.
    Recall,
    /// Answers RECALL.
    Return,
    /// Asks for memory for a large message.
    Large,
    /// Gives memory for a large message, or refuses.
    Landing,
    /// A large message is written, or given up.
    Landed,
    /// Part of a write, on any stream of its lane.
    WritePart,
    /// Part of the answer to a read, on any stream.
    AnswerPart,
    /// No more of a write in parts comes than was handed to streams.
    Abandon,
}

impl Kind {
    fn of(number: u8) -> Option<Self> {
        use Kind::*;
        const ALL: [Kind; 26] = [
            Connect, Accept, Reject, Redirect, Busy, Disconnect, Message, Datagram, Ping, Pong, Write, Read, Data,
            Answer, Result, Cancel, Atomic, Grant, Recall, Return, Large, Landing, Landed, WritePart, AnswerPart,
            Abandon,
        ];
        ALL.get(usize::from(number).wrapping_sub(1)).copied()
    }

    /// The least and the largest body of this kind, bytes.
    fn limits(self, max_send_size: u32) -> (usize, usize) {
        match self {
            Self::Connect => (32, 32 + cci_proto::MAX_REQUEST),
            Self::Accept => (8, 8),
            Self::Reject | Self::Cancel | Self::Grant | Self::Return => (4, 4),
            Self::Redirect => (8, MAX_CONTROL),
            Self::Busy | Self::Disconnect | Self::Ping | Self::Pong | Self::Recall => (0, 0),
            Self::Message => (0, max_send_size as usize + OPERATION),
            Self::Datagram => (0, max_send_size as usize),
            Self::Write => (BEGIN, usize::MAX),
            Self::Read => (BEGIN, BEGIN),
            Self::Data | Self::Answer => (OPERATION + 1, usize::MAX),
            Self::Result => (RESULT, RESULT),
            Self::Atomic => (BEGIN + 24, BEGIN + 24),
            Self::Large => (16, 16),
            Self::Landing => (24, 24),
            Self::Landed => (8, 8),
            Self::WritePart => (WRITE_PART + 1, usize::MAX),
            Self::AnswerPart => (ANSWER_PART + 1, usize::MAX),
            Self::Abandon => (16, 16),
        }
    }

    /// Bytes of the body that must be there before the frame is handled; `None`: all of them.
    fn prefix(self) -> Option<usize> {
        match self {
            Self::Write => Some(BEGIN),
            Self::Data | Self::Answer => Some(OPERATION),
            Self::WritePart => Some(WRITE_PART),
            Self::AnswerPart => Some(ANSWER_PART),
            _ => None,
        }
    }
}

/// The number in `Header::connection` is the sender's own.
pub(crate) const OWN: u8 = 1;
/// The message belongs to the operation whose number begins the body, and comes only if that
/// succeeds.
pub(crate) const OF_OPERATION: u8 = 2;
/// A message waits for a grant.
pub(crate) const WANT: u8 = 4;
/// The write has a message, which is to find out how it has ended.
pub(crate) const HAS_MESSAGE: u8 = 8;
/// A CRC32C of the bytes of RMA stands before them.
pub(crate) const CHECKED: u8 = 16;
/// The answer to the read comes in parts.
pub(crate) const IN_PARTS: u8 = 32;
const FLAGS: u8 = OWN | OF_OPERATION | WANT | HAS_MESSAGE | CHECKED;
/// Bytes of that sum.
pub(crate) const SUM: usize = 4;

/// The peer has broken the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Violation;

/// A header that has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes of the body.
    pub(crate) len: usize,
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    pub(crate) connection: u32,
    /// Messages that the sender of this frame has taken so far, modulo 2^32.
    pub(crate) taken: u32,
}

impl Header {
    /// Takes a header apart, for a side whose largest message is `max_send_size`.
    pub(crate) fn parse(bytes: &[u8; HEADER], max_send_size: u32) -> Result<Self, Violation> {
        let mut fields = Fields(bytes);
        let len = fields.u32() as usize;
        let [kind, flags, low, high] = fields.bytes::<4>();
        let kind = Kind::of(kind).ok_or(Violation)?;
        let (least, most) = kind.limits(max_send_size);
        let is_unknown = flags & !FLAGS != 0 && (flags & !FLAGS != IN_PARTS || kind != Kind::Read);
        if len < least || len > most || is_unknown || low | high != 0 {
            return Err(Violation);
        }
        if flags & CHECKED != 0 && (kind.prefix().is_none() || len < least + SUM) {
            return Err(Violation);
        }
        if kind == Kind::Message {
            let is_of_operation = flags & OF_OPERATION != 0;
            if is_of_operation && len < OPERATION || !is_of_operation && len > max_send_size as usize {
                return Err(Violation);
            }
        }
        Ok(Self { len, kind, flags, connection: fields.u32(), taken: fields.u32() })
    }

    pub(crate) fn emit(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        // A body is never longer: RMA is cut into fragments.
        bytes[..4].copy_from_slice(&u32::try_from(self.len).unwrap_or(u32::MAX).to_le_bytes());
        bytes[4..6].copy_from_slice(&[self.kind as u8, self.flags]);
        bytes[8..12].copy_from_slice(&self.connection.to_le_bytes());
        bytes[12..].copy_from_slice(&self.taken.to_le_bytes());
        bytes
    }

    /// Bytes of the body that must be there before the frame can be handled.
    pub(crate) fn needed(&self) -> usize {
        let sum = if self.flags & CHECKED != 0 { SUM } else { 0 };
        self.kind.prefix().map_or(self.len, |prefix| prefix + sum)
    }
}

/// Reads the fields of a body whose length was checked. A field that is not there is 0.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let Some((bytes, rest)) = self.0.split_first_chunk() else { return [0; N] };
        self.0 = rest;
        *bytes
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.bytes())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    pub(crate) fn words(&mut self) -> [u64; 2] {
        [self.u64(), self.u64()]
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// The bytes of fields, one behind the other.
pub(crate) fn pack<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut packed = [0; N];
    let mut at = 0;
    for part in parts {
        packed[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    packed
}

/// What a lane begins with, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The sender dialed.
    pub(crate) dialed: bool,
    /// A message of the handshake follows, and then sealed records.
    pub(crate) sealed: bool,
    pub(crate) max_send_size: u32,
    /// Random identity of the sender's endpoint.
    pub(crate) identity: [u64; 2],
    /// What further streams of this lane show, and the number of all streams in its first byte; of
    /// a further stream: what the listener's said. 0: none.
    pub(crate) offer: [u64; 2],
    /// Which stream of its lane it is; 0: the first.
    pub(crate) stream: u64,
    /// Operations that the other side may have open on this lane.
    pub(crate) operations: u32,
    /// Why the sender does not serve this lane.
    pub(crate) refusal: Option<Refusal>,
}

/// Why a HELLO is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Version,
    /// Too many strangers: to be tried again.
    Full,
    /// Streams in clear are not served.
    Sealed,
    /// The handshake was made with another secret.
    OtherSecret,
    /// This side has no secret: it serves streams in clear.
    NoSecret,
}

impl Refusal {
    /// The number and the offer by which it travels.
    fn emit(self) -> (u32, [u64; 2]) {
        match self {
            Self::Version => (1, [0; 2]),
            Self::Full => (2, [0; 2]),
            Self::Sealed => (1, SEALED_ONLY),
            Self::OtherSecret => (3, [0; 2]),
            Self::NoSecret => (4, [0; 2]),
        }
    }

    fn parse(number: u32, offer: [u64; 2]) -> Result<Option<Self>, Greeting> {
        Ok(Some(match number {
            0 => return Ok(None),
            1 if offer == SEALED_ONLY => Self::Sealed,
            1 => Self::Version,
            2 => Self::Full,
            3 => Self::OtherSecret,
            4 => Self::NoSecret,
            _ => return Err(Greeting::Nonsense),
        }))
    }
}

impl Hello {
    pub(crate) fn emit(&self) -> [u8; HELLO] {
        let features = if self.dialed { DIALED } else { 0 } | if self.sealed { SEALED } else { 0 };
        let (refusal, offer) = self.refusal.map_or((0, self.offer), Refusal::emit);
        let [first, second] = self.identity.map(u64::to_le_bytes);
        let [offer, rest] = offer.map(u64::to_le_bytes);
        pack(&[
            &MAGIC.to_le_bytes(),
            &VERSION.to_le_bytes(),
            &features.to_le_bytes(),
            &self.max_send_size.to_le_bytes(),
            &first,
            &second,
            &offer,
            &rest,
            &self.operations.to_le_bytes(),
            &refusal.to_le_bytes(),
            &self.stream.to_le_bytes(),
        ])
    }

    /// Takes a HELLO apart.
    pub(crate) fn parse(bytes: &[u8; HELLO]) -> Result<Self, Greeting> {
        let mut fields = Fields(bytes);
        if fields.u64() != MAGIC {
            return Err(Greeting::Nonsense);
        }
        let (version, features) = (fields.u16(), fields.u16());
        if version != VERSION {
            return Err(Greeting::OtherVersion(version));
        }
        let (max_send_size, identity, offer) = (fields.u32(), fields.words(), fields.words());
        let (operations, refusal, stream) = (fields.u32(), fields.u32(), fields.u64());
        let refusal = Refusal::parse(refusal, offer)?;
        if features & !(DIALED | SEALED) != 0 || stream >= MOST_STREAMS || max_send_size == 0 || operations == 0 {
            return Err(Greeting::Nonsense);
        }
        let (dialed, sealed) = (features & DIALED != 0, features & SEALED != 0);
        Ok(Self { dialed, sealed, max_send_size, identity, offer, stream, operations, refusal })
    }

    /// Whether these bytes can begin a HELLO.
    pub(crate) fn may_begin(bytes: &[u8]) -> bool {
        bytes.iter().zip(MAGIC.to_le_bytes()).all(|(byte, expected)| *byte == expected)
    }
}

/// Why bytes are no HELLO of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Greeting {
    Nonsense,
    OtherVersion(u16),
}

/// The body of CONNECT, before the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectBody {
    pub(crate) attribute: Attribute,
    /// Names this connect among all of its endpoint.
    pub(crate) identity: [u64; 2],
    pub(crate) token: u64,
}

impl ConnectBody {
    pub(crate) const LEN: usize = 32;

    pub(crate) fn emit(&self) -> [u8; Self::LEN] {
        let [first, second] = self.identity.map(u64::to_le_bytes);
        pack(&[&(self.attribute as u32).to_le_bytes(), &[0; 4], &first, &second, &self.token.to_le_bytes()])
    }

    pub(crate) fn parse(fields: &mut Fields<'_>) -> Option<Self> {
        let attribute = Attribute::from_u32(fields.u32()).filter(|attribute| !attribute.is_multicast())?;
        let zero = fields.u32();
        let body = Self { attribute, identity: fields.words(), token: fields.u64() };
        (zero == 0).then_some(body)
    }
}

/// Which memory of the target an operation is about: the body of WRITE and READ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) operation: u32,
    pub(crate) handle: [u64; 2],
    pub(crate) offset: u64,
    /// Bytes of the whole operation.
    pub(crate) total: u64,
}

impl Target {
    pub(crate) fn emit(&self) -> [u8; BEGIN] {
        let [first, second] = self.handle.map(u64::to_le_bytes);
        pack(&[
            &self.operation.to_le_bytes(),
            &[0; 4],
            &first,
            &second,
            &self.offset.to_le_bytes(),
            &self.total.to_le_bytes(),
        ])
    }

    pub(crate) fn parse(fields: &mut Fields<'_>) -> Self {
        let (operation, _) = (fields.u32(), fields.u32());
        Self { operation, handle: fields.words(), offset: fields.u64(), total: fields.u64() }
    }
}

/// Where the bytes of a part of a write go: what each part says of the operation, and its position
/// in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WritePart {
    pub(crate) target: Target,
    pub(crate) position: u64,
}

impl WritePart {
    pub(crate) fn emit(&self) -> [u8; WRITE_PART] {
        pack(&[&self.target.emit(), &self.position.to_le_bytes()])
    }

    pub(crate) fn parse(fields: &mut Fields<'_>) -> Self {
        Self { target: Target::parse(fields), position: fields.u64() }
    }
}

/// An operation and a number of bytes: where a part of an answer goes, and the body of ABANDON.
pub(crate) fn emit_count(operation: u32, count: u64) -> [u8; ANSWER_PART] {
    pack(&[&operation.to_le_bytes(), &[0; 4], &count.to_le_bytes()])
}

/// Reads what [`emit_count`] has written.
pub(crate) fn parse_count(fields: &mut Fields<'_>) -> (u32, u64) {
    let (operation, _, count) = (fields.u32(), fields.u32(), fields.u64());
    (operation, count)
}

/// The rest of the body of ATOMIC, behind its [`Target`].
pub(crate) fn emit_atomic(atomic: Atomic) -> [u8; 24] {
    let [kind, first, second] = match atomic {
        Atomic::FetchAdd(addend) => [1, addend, 0],
        Atomic::CompareSwap { expected, desired } => [2, expected, desired],
    };
    pack(&[&kind.to_le_bytes(), &first.to_le_bytes(), &second.to_le_bytes()])
}

/// Reads what [`emit_atomic`] has written.
pub(crate) fn parse_atomic(fields: &mut Fields<'_>) -> Option<Atomic> {
    match [fields.u64(), fields.u64(), fields.u64()] {
        [1, addend, 0] => Some(Atomic::FetchAdd(addend)),
        [2, expected, desired] => Some(Atomic::CompareSwap { expected, desired }),
        _ => None,
    }
}

/// The body of RESULT.
pub(crate) fn emit_result(operation: u32, outcome: Result<(), Failure>, old: u64) -> [u8; RESULT] {
    pack(&[&operation.to_le_bytes(), &emit_outcome(outcome), &old.to_le_bytes()])
}

/// How an outcome travels.
pub(crate) fn emit_outcome(outcome: Result<(), Failure>) -> [u8; 4] {
    (outcome.map_or_else(Failure::status, |()| Status::Success) as u32).to_le_bytes()
}

/// Reads an outcome of the peer. What it cannot be is an error of the target.
pub(crate) fn parse_outcome(fields: &mut Fields<'_>) -> Result<(), Failure> {
    match Status::from_u32(fields.u32()) {
        Some(Status::Success) => Ok(()),
        Some(Status::MsgSize) => Err(Failure::TooLong),
        Some(Status::RmaOp) => Err(Failure::Copy),
        _ => Err(Failure::RemoteHandle),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_what_it_was_and_its_lengths_are_exact() {
        let header = Header { len: 4, kind: Kind::Grant, flags: WANT, connection: 7, taken: u32::MAX };
        assert_eq!(Header::parse(&header.emit(), 100), Ok(header));
        for number in 1..=26 {
            let kind = Kind::of(number).expect("a kind");
            assert_eq!(kind as u8, number);
            let (least, most) = kind.limits(100);
            let parsed = |len| Header::parse(&Header { len, kind, flags: 0, connection: 0, taken: 0 }.emit(), 100);
            assert!(parsed(least).is_ok(), "{kind:?}");
            assert!(least == 0 || parsed(least - 1).is_err(), "{kind:?}");
            assert!(most > 100_000 || parsed(most + 1).is_err(), "{kind:?}");
        }
        let message = |len, flags| Header { len, kind: Kind::Message, flags, ..header }.emit();
        assert!(Header::parse(&message(101, 0), 100).is_err() && Header::parse(&message(100, 0), 100).is_ok());
        assert!(Header::parse(&message(104, OF_OPERATION), 100).is_ok());
        assert!(Header::parse(&message(3, OF_OPERATION), 100).is_err());
        let checked = |kind, len| Header { len, kind, flags: CHECKED, ..header };
        let data = checked(Kind::Data, OPERATION + SUM + 1);
        assert_eq!(Header::parse(&data.emit(), 100).map(|header| header.needed()), Ok(OPERATION + SUM));
        for wrong in [checked(Kind::Data, OPERATION + SUM), checked(Kind::Write, BEGIN), checked(Kind::Grant, 4)] {
            assert!(Header::parse(&wrong.emit(), 100).is_err(), "{wrong:?}");
        }
        for (at, byte) in [(4, 0), (4, 27), (5, IN_PARTS), (5, 128), (6, 1), (7, 1)] {
            let mut bytes = header.emit();
            bytes[at] = byte;
            assert!(Header::parse(&bytes, 100).is_err(), "byte {at} is {byte}");
        }
    }

    #[test]
    fn a_hello_is_what_it_was() {
        let (dialed, sealed, offer, stream, refusal) = (true, false, [0; 2], 0, None);
        let (max_send_size, identity, operations) = (8192, [1, 2], 3);
        let hello = Hello { dialed, sealed, max_send_size, identity, offer, stream, operations, refusal };
        assert_eq!(Hello::parse(&hello.emit()), Ok(hello));
        let sealed = Hello { sealed: true, ..hello };
        assert_eq!(Hello::parse(&sealed.emit()), Ok(sealed));
        let further = Hello { offer: [4, 5], stream: MOST_STREAMS - 1, ..hello };
        assert_eq!(Hello::parse(&further.emit()), Ok(further));
        assert_eq!(Hello::parse(&Hello { stream: MOST_STREAMS, ..hello }.emit()), Err(Greeting::Nonsense));
        for refusal in [Refusal::Version, Refusal::Full, Refusal::Sealed, Refusal::OtherSecret, Refusal::NoSecret] {
            let refused = Hello { dialed: false, refusal: Some(refusal), ..hello };
            let parsed = Hello::parse(&refused.emit()).expect("a HELLO");
            assert_eq!(parsed, Hello { offer: parsed.offer, ..refused });
        }
        // What a version without sealed streams sees where these are refused: another version.
        let sealed_only = Hello { refusal: Some(Refusal::Sealed), ..hello }.emit();
        assert_eq!(sealed_only[52..56], [1, 0, 0, 0]);
        let mut other = hello.emit();
        other[8] = 9;
        assert_eq!(Hello::parse(&other), Err(Greeting::OtherVersion(9)));
        for at in [0, 7, 10, 52, 56, 63] {
            let mut bytes = hello.emit();
            bytes[at] = 0x40;
            assert_eq!(Hello::parse(&bytes), Err(Greeting::Nonsense), "byte {at}");
        }
        assert!(Hello::may_begin(&hello.emit()[..3]) && Hello::may_begin(&[]) && !Hello::may_begin(b"GET / HTTP"));
    }

    #[test]
    fn bodies_are_what_they_were() {
        let target = Target { operation: 1, handle: [2, 3], offset: 4, total: 5 };
        assert_eq!(Target::parse(&mut Fields(&target.emit())), target);
        let part = WritePart { target, position: 6 };
        assert_eq!(WritePart::parse(&mut Fields(&part.emit())), part);
        assert_eq!(parse_count(&mut Fields(&emit_count(7, 8))), (7, 8));
        for atomic in [Atomic::FetchAdd(9), Atomic::CompareSwap { expected: 1, desired: 2 }] {
            assert_eq!(parse_atomic(&mut Fields(&emit_atomic(atomic))), Some(atomic));
        }
        assert_eq!(parse_atomic(&mut Fields(&[0; 24])), None);
        let body = ConnectBody { attribute: Attribute::ReliableUnordered, identity: [1, 2], token: 3 };
        assert_eq!(ConnectBody::parse(&mut Fields(&body.emit())), Some(body));
        for outcome in [Ok(()), Err(Failure::TooLong), Err(Failure::Copy), Err(Failure::RemoteHandle)] {
            assert_eq!(parse_outcome(&mut Fields(&emit_outcome(outcome))), outcome);
        }
    }
}
