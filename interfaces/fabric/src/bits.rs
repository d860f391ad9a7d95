//! Bits of libfabric that operations and completions have (`fi_endpoint(3)`, `fi_cq(3)`).

/// A message that is not tagged.
pub const MSG: u64 = 1 << 1;
/// An access to remote memory.
pub const RMA: u64 = 1 << 2;
/// A tagged message.
pub const TAGGED: u64 = 1 << 3;
/// The initiator reads.
pub const READ: u64 = 1 << 8;
/// The initiator writes.
pub const WRITE: u64 = 1 << 9;
/// A receive.
pub const RECV: u64 = 1 << 10;
/// A send.
pub const SEND: u64 = 1 << 11;
/// The same bit where a queue is bound for sends and accesses.
pub const TRANSMIT: u64 = SEND;
/// Peers may read.
pub const REMOTE_READ: u64 = 1 << 12;
/// Peers may write.
pub const REMOTE_WRITE: u64 = 1 << 13;
/// A buffer that takes several messages; on an entry: the buffer is the program's again.
pub const MULTI_RECV: u64 = 1 << 16;
/// There is remote data.
pub const REMOTE_CQ_DATA: u64 = 1 << 17;
/// Looks for a message without receiving it.
pub const PEEK: u64 = 1 << 19;
/// The operation makes an entry, where a queue takes those alone.
pub const COMPLETION: u64 = 1 << 24;
/// The bytes are the program's again when the call returns.
pub const INJECT: u64 = 1 << 25;
/// The entry says that the bytes are the program's again.
pub const INJECT_COMPLETE: u64 = 1 << 26;
/// The entry says that the message no longer depends on this side.
pub const TRANSMIT_COMPLETE: u64 = 1 << 27;
/// The entry says that the peer has the message.
pub const DELIVERY_COMPLETE: u64 = 1 << 28;
/// Queues take only what asks for an entry, or has failed.
pub const SELECTIVE_COMPLETION: u64 = 1 << 59;
/// Drops a message.
pub const DISCARD: u64 = 1 << 58;
/// Of a receive: the message that is found is kept for a later one with this context.
pub const CLAIM: u64 = 1 << 59;
