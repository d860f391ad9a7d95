//! What the engines of fuzz targets have in common.

use cci_proto::engine::Config;

/// Largest message, bytes.
pub(crate) const MAX_SEND: u32 = 8192;
/// Operations of a side.
pub(crate) const OPERATIONS: u32 = 48;
/// Frames that may leave at one time: more than any window allows.
pub(crate) const MOST_FRAMES: usize = 20_000;

/// An engine with few frames and operations, whose sequences wrap soon.
pub(crate) fn config(mtu: u16) -> Config {
    Config {
        mtu,
        base_mtu: 1200,
        max_send_size: MAX_SEND,
        recv_buffer: 1 << 20,
        frames: 64,
        holds: 24,
        operations: OPERATIONS,
        machine: 0,
        unchecked_on_host: false,
        patient: false,
        first_seq: Some(u32::MAX - 5),
    }
}
