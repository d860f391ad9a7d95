//! Several streams: the further ones of a lane, and RMA in parts over all of them
//! (`docs/design/tcp.md`, Several streams).

mod collect;
mod join;
mod part;
mod sealed;

use crate::frame::MOST_STREAMS;
use crate::lane::further::Stream;
use crate::lane::work::Fragment;
use crate::lane::{Lane, Phase};
use crate::sys;
use cci_proto::Access;
use rustix::fd::OwnedFd;
use std::time::Duration;

/// Bytes of a part, at most.
const PART: u64 = 256 << 10;
/// Bytes of an operation that goes in parts, at least.
const LEAST: u64 = 1 << 20;

/// Marks the key of a further stream among those of descriptors.
const FURTHER: u64 = 1 << 63;
const INDEX_AT: u32 = 60;

impl Lane {
    /// Whether an RMA of this length goes in parts.
    #[inline]
    pub(crate) fn goes_in_parts(&self, access: Access, len: u64) -> bool {
        len >= LEAST
            && matches!(access, Access::Read | Access::Write)
            && self.further.as_ref().is_some_and(|further| further.open().next().is_some())
    }

    /// Whether part of an operation has begun to leave on a further stream.
    pub(crate) fn has_unsent_parts(&self) -> bool {
        let has_unsent =
            |stream: &Stream| stream.fragment.is_some() || stream.seal.as_ref().is_some_and(|seal| seal.has_unsent());
        self.further.as_ref().is_some_and(|further| further.open().any(has_unsent))
    }

    /// Whether a further stream has room for what is to leave.
    pub(crate) fn may_feed(&self) -> bool {
        let has_parts = || {
            let work = self.work.as_ref();
            work.is_some_and(|work| {
                work.operations.has_in_parts(self.operations) || work.serving.next_in_parts().is_some()
            })
        };
        self.further.as_ref().is_some_and(|further| {
            further.open().any(|stream| !stream.is_blocked && (stream.fragment.is_some() || has_parts()))
        })
    }

    /// What has begun to leave, on all streams.
    pub(crate) fn fragments(&self) -> impl Iterator<Item = &Fragment> {
        let streams = self.further.iter().flat_map(|further| further.streams.iter().flatten());
        let first = self.work.as_ref().and_then(|work| work.fragment.as_ref());
        first.into_iter().chain(streams.filter_map(|stream| stream.fragment.as_ref()))
    }

    pub(crate) fn fragments_mut(&mut self) -> impl Iterator<Item = &mut Fragment> {
        let streams = self.further.iter_mut().flat_map(|further| further.streams.iter_mut().flatten());
        let first = self.work.as_mut().and_then(|work| work.fragment.as_mut());
        first.into_iter().chain(streams.filter_map(|stream| stream.fragment.as_mut()))
    }

    /// Whether the peer's kernel has acknowledged nothing of a further stream for so long.
    pub(crate) fn has_silent_stream(&self, limit: Duration) -> bool {
        let is_silent = |socket: &OwnedFd| {
            sys::info(socket).is_some_and(|info| info.unacknowledged > 0 && info.last_acknowledged >= limit)
        };
        let streams = self.further.iter().flat_map(|further| further.open());
        streams.filter_map(|stream| stream.socket.as_ref()).any(is_silent)
    }

    /// Whether further streams are being dialed that have not failed yet.
    pub(crate) fn is_opening(&self) -> bool {
        let streams = self.further.iter().flat_map(|further| further.streams.iter().flatten());
        streams.into_iter().any(|stream| !stream.is_open() && stream.attempts == 0)
    }

    /// The streams of the lane, for a report. `wanted`: as many as the key says.
    pub(crate) fn streams_in_words(&self, wanted: u32) -> String {
        let Some(further) = &self.further else { return format!("1 of {wanted} streams: the peer takes one") };
        let (open, most) = (further.open().count() + 1, further.streams.len() + 1);
        let mut words = if open == most { format!("{open} streams") } else { format!("{open} of {most} streams") };
        if let Some(shortage) = further.shortage.as_ref().filter(|_| open < most) {
            words = format!("{words}: {shortage}");
        }
        words
    }

    /// The key of a further stream's descriptor.
    fn stream_key(&self, index: usize) -> u64 {
        FURTHER | (index as u64) << INDEX_AT | self.key() & !(u64::MAX << INDEX_AT)
    }

    /// The keys of all further streams.
    pub(crate) fn stream_keys(&self) -> impl Iterator<Item = u64> + '_ {
        let count = self.further.as_ref().map_or(0, |further| further.streams.len());
        (0..count).map(|index| self.stream_key(index))
    }

    /// The index of the further stream to which a key of this lane belongs.
    fn index_of(&self, key: u64) -> Option<usize> {
        let index = usize::try_from(key >> INDEX_AT & (MOST_STREAMS - 1)).ok()?;
        (key == self.stream_key(index) && self.phase == Phase::Open).then_some(index)
    }

    fn stream(&mut self, index: usize) -> Option<&mut Stream> {
        self.further.as_mut()?.streams.get_mut(index)?.as_deref_mut()
    }
}

const _: () = assert!(MOST_STREAMS.is_power_of_two() && INDEX_AT + 3 == 63);
