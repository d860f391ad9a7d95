//! What `mx_get_info` tells.

use crate::answer::{Answer, NULL, Refusal};
use crate::names::own_nic;
use crate::registry::{End, registry};
use cci::Context;
use cci_mx::{Error, MAX_ENDPOINT_ID};
use std::ffi::{c_uint, c_void};
use std::sync::Arc;

/// Bytes of a label.
const LABEL: usize = 32;
const LABELS: [&str; 7] = [
    "eager messages sent",
    "large messages offered",
    "messages that a receive took",
    "unexpected messages",
    "messages that the handler took",
    "sends that waited for credit",
    "links closed for breaking rules",
];
/// Requests of an endpoint at a time.
const MOST_REQUESTS: u32 = 1 << 24;

fn counters(end: Option<&Arc<End>>) -> Result<[u64; LABELS.len()], Refusal> {
    let counts = end.ok_or(Error::BadEndpoint)?.endpoint.counts();
    Ok([counts.eager, counts.large, counts.expected, counts.unexpected, counts.handled, counts.stalled, counts.broken])
}

/// The bytes for a key, and whether more room than they take is right.
fn answer(end: Option<&Arc<End>>, key: c_uint, room: usize) -> Result<(Vec<u8>, bool), Refusal> {
    let word = |word: u32| word.to_ne_bytes().to_vec();
    Ok(match key {
        1 => (word(1), false),
        2 => {
            let ids = [own_nic()?, 0].map(u64::to_ne_bytes).concat();
            (ids[..room.clamp(8, 16) / 8 * 8].to_vec(), true)
        }
        3 => (word(MAX_ENDPOINT_ID + 1), false),
        4 => (word(MOST_REQUESTS), false),
        5 => (word(LABELS.len() as u32), false),
        6 => {
            let mut bytes = vec![0; LABEL * LABELS.len()];
            for (place, label) in bytes.chunks_exact_mut(LABEL).zip(LABELS) {
                place[..label.len()].copy_from_slice(label.as_bytes());
            }
            (bytes, false)
        }
        7 => (counters(end)?.map(u64::to_ne_bytes).concat(), false),
        8 => (b"CCI\0".to_vec(), true),
        9 => {
            let context = Context::new().map_err(|_| Error::NoDevice)?;
            let device = context.default_device().map_err(|_| Error::NoDevice)?;
            (device.rate.to_ne_bytes().to_vec(), false)
        }
        _ => return Err(Error::BadInfoKey.into()),
    })
}

/// Gives what a key asks for.
///
/// # Safety
///
/// `given` is NULL or leads to `given_len` bytes, and `to` is NULL or leads to `room` bytes, which
/// the call may write.
pub(crate) unsafe fn get(
    end: Option<&Arc<End>>,
    key: c_uint,
    (given, given_len): (*const c_void, u32),
    (to, room): (*mut c_void, u32),
) -> Answer {
    registry()?.check()?;
    if !given.is_null() {
        if given_len != 4 {
            return Err(Error::BadInfoValue.into());
        }
        // SAFETY: not NULL, so that it leads to 4 bytes, as just checked; of any alignment.
        let board = unsafe { given.cast::<u32>().read_unaligned() };
        if board != 0 {
            return Err(Error::BoardUnknown.into());
        }
    }
    let (bytes, may_be_longer) = answer(end, key, room as usize)?;
    let is_right = if may_be_longer { room as usize >= bytes.len() } else { room as usize == bytes.len() };
    if !is_right {
        return Err(Error::BadInfoLength.into());
    }
    if to.is_null() {
        return Err(NULL);
    }
    // SAFETY: not NULL, so that there is room for at least so many bytes, as just checked.
    unsafe { to.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Ok(())
}
