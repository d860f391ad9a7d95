//! The wire format, as `docs/wire.md` defines it: one frame is one UDP datagram, all numbers are
//! big-endian, and every frame begins with the same 32 bytes.
//!
//! Each kind of frame has a file with its picture. `emit` writes a frame and leaves length and
//! check to [`seal`], which knows what memory follows. `parse_after` parses what follows the header
//! of a frame, once [`verify`] has returned the header; `parse` parses the header too. Both return
//! `None` if the frame contradicts itself. Nothing here keeps state, allocates, or panics on what
//! came from outside. `emit` panics when the buffer is too small for the frame: buffers are as long
//! as the largest frame, and no peer has a say in what is written.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------+-------+---------------+-------------------------------+
//! |  0xC  |   2   |     kind      |        length of frame        |  0
//! +-------+-------+---------------+-------------------------------+
//! |                             check                             |  4
//! +---------------------------------------------------------------+
//! |                              to                               |  8
//! |                                                               | 12
//! +---------------------------------------------------------------+
//! |                             from                              | 16
//! |                                                               | 20
//! +---------------------------------------------------------------+
//! |                            number                             | 24
//! +---------------------------------------------------------------+
//! |                             time                              | 28
//! +---------------------------------------------------------------+
//! ```

mod accept;
mod bytes;
mod close;
mod confirm;
mod connect;
mod crc;
mod data;
mod emit;
mod header;
mod multicast;
mod offer;
mod record;
mod redirect;
mod reject;
mod reset;
mod retry;
mod sealed;

pub use accept::Accept;
pub use close::{CLOSE, Close};
pub use confirm::Confirm;
pub use connect::{CONNECT, CONNECT_MIN, CONNECT_SEALED_MIN, Connect, MAX_PAYLOAD, Share};
pub use crc::Crc;
pub use data::{Ack, DATA, Data, MAX_SACK, Sack, flags};
pub use emit::{
    ATOMIC, LANDING, LARGE, MESSAGE_HEAD, PART_HEAD, READ, READ_BYTES_HEAD, RESULT, SLICE_HEAD, VALUE, WRITE_HEAD,
    emit_atomic, emit_landing, emit_large, emit_message, emit_part, emit_probe, emit_probe_reply, emit_read,
    emit_read_bytes, emit_result, emit_slice, emit_value, emit_write,
};
pub use header::{
    HEADER, Header, Kind, Malformed, VERSION, begin_check, claimed_len, ends_check, seal, verify, verify_check,
    verify_head,
};
pub use multicast::Multicast;
pub use offer::{Offer, features};
pub use record::{Record, Records};
pub use redirect::{MAX_URI, Redirect};
pub use reject::{Reason, Reject};
pub use reset::Reset;
pub use retry::Retry;
pub use sealed::{Fields, MAX_SHARE, SHARE, SealedConfirm, SealedHeader, SealedReset, TAG, begin_seal, is_sealed};
