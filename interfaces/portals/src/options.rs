//! Options of a memory descriptor: bits.

/// Puts may go there.
pub const OP_PUT: u32 = 1;
/// Gets may read there.
pub const OP_GET: u32 = 2;
/// The initiator gives the offset.
pub const MANAGE_REMOTE: u32 = 4;
/// What is too long is cut.
pub const TRUNCATE: u32 = 8;
/// No acks.
pub const ACK_DISABLE: u32 = 0x10;
/// The memory has several parts, whose number is the length.
pub const IOVEC: u32 = 0x20;
/// `max_size` counts.
pub const MAX_SIZE: u32 = 0x40;
/// No START events.
pub const EVENT_START_DISABLE: u32 = 0x80;
/// No END events.
pub const EVENT_END_DISABLE: u32 = 0x100;
/// No UNLINK events; not a bit of the specification.
pub const EVENT_UNLINK_DISABLE: u32 = 0x8000_0000;
