//! Somebody on the path, who sees every frame and may send any, but has no key.

use crate::bytes::Bytes;
use cci_proto::wire::{self, Accept, Connect, HEADER, Header, Kind, Redirect, Reject, Retry, SealedReset, Share};
use std::collections::VecDeque;

/// Frames of the past that he remembers.
const MEMORY: usize = 256;
/// Bits of the kind of a sealed frame.
const SEALED: u8 = 0x80;
const PHASE: u8 = 0x40;

/// What he has seen.
#[derive(Debug, Default)]
pub(super) struct Attacker {
    /// The last frames that left: by whom, and their bytes.
    seen: VecDeque<(usize, Vec<u8>)>,
    /// The newest cookie that each side has given, and its time.
    cookies: [(u64, u32); 2],
}

impl Attacker {
    pub(super) fn see(&mut self, by: usize, frame: &[u8]) {
        if let Some(retry) = Retry::parse(frame) {
            self.cookies[by] = (retry.cookie, retry.cookie_time);
        }
        if self.seen.len() == MEMORY {
            self.seen.pop_front();
        }
        self.seen.push_back((by, frame.to_vec()));
    }

    /// A frame of the past, the newest ones first.
    fn any(&self, bytes: &mut Bytes<'_>) -> Option<(usize, Vec<u8>)> {
        let back = bytes.below(self.seen.len().max(1));
        self.seen.iter().rev().nth(back).cloned()
    }

    /// A frame of his, and the side that he sends it to.
    pub(super) fn attack(&self, bytes: &mut Bytes<'_>) -> Option<(usize, Vec<u8>)> {
        let (by, mut frame) = self.any(bytes)?;
        let mut to = 1 - by;
        match bytes.below(10) {
            // As it was.
            0 => {}
            1 => flip(bytes, &mut frame),
            2 => frame.truncate(bytes.below(256) * frame.len() / 255),
            3 => frame.extend_from_slice(bytes.some()),
            4 => {
                to = by;
                if bytes.flag() {
                    exchange(&mut frame);
                }
            }
            5 => {
                let (_, other) = self.any(bytes)?;
                splice(bytes, &mut frame, &other);
            }
            6 => in_clear(bytes, &mut frame),
            7 => flip_kind(bytes, &mut frame),
            8 => to = self.with_cookie(bytes, &mut frame)?,
            _ => overwrite(bytes, &mut frame),
        }
        // What anybody can make right.
        if bytes.flag() {
            set_length(&mut frame);
        }
        if bytes.flag() && frame.len() >= HEADER && frame[1] & SEALED == 0 {
            wire::seal(&mut frame, 0, |crc| crc);
        }
        Some((to, frame))
    }

    /// A recorded CONNECT with a cookie that its receiver has given, or the last frame with the
    /// cookie that its receiver has shown: the rest of a handshake is authentic.
    fn with_cookie(&self, bytes: &mut Bytes<'_>, frame: &mut Vec<u8>) -> Option<usize> {
        let (of, to) = (usize::from(bytes.flag()), usize::from(bytes.flag()));
        let newest = |side: usize| {
            let is_connect = |(by, frame): &&(usize, Vec<u8>)| *by == side && Connect::parse(frame).is_some();
            self.seen.iter().rev().find(is_connect).map(|(_, frame)| frame)
        };
        if Accept::parse(frame).is_some() {
            frame[64..72].copy_from_slice(&newest(to)?[72..80]);
        } else {
            *frame = newest(of)?.clone();
            let (cookie, time) = self.cookies[to];
            frame[72..80].copy_from_slice(&cookie.to_be_bytes());
            frame[80..84].copy_from_slice(&time.to_be_bytes());
        }
        wire::seal(frame, 0, |crc| crc);
        Some(to)
    }
}

fn flip(bytes: &mut Bytes<'_>, frame: &mut [u8]) {
    for _ in 0..=bytes.below(4) {
        let bit = usize::from(bytes.short());
        if let Some(byte) = frame.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

/// Exchanges the identifiers.
fn exchange(frame: &mut [u8]) {
    if frame.len() >= HEADER {
        let (to, from) = frame[8..24].split_at_mut(8);
        to.swap_with_slice(from);
    }
}

/// The beginning of one and the end of another.
fn splice(bytes: &mut Bytes<'_>, frame: &mut Vec<u8>, other: &[u8]) {
    let at = match bytes.below(3) {
        0 => HEADER,
        1 => frame.len().saturating_sub(wire::TAG),
        _ => usize::from(bytes.short()),
    };
    let at = at.min(frame.len()).min(other.len());
    frame.truncate(at);
    frame.extend_from_slice(&other[at..]);
}

/// A frame in clear of any kind, with the identifiers of another.
fn in_clear(bytes: &mut Bytes<'_>, frame: &mut Vec<u8>) {
    frame.truncate(HEADER);
    if frame.len() == HEADER {
        frame[1] = bytes.byte() % 12;
        frame.extend_from_slice(bytes.some());
        set_length(frame);
        wire::seal(frame, 0, |crc| crc);
    }
}

fn flip_kind(bytes: &mut Bytes<'_>, frame: &mut [u8]) {
    if let Some(kind) = frame.get_mut(1) {
        *kind ^= [PHASE, SEALED, 1, 0x0D][bytes.below(4)];
    }
}

/// Any bytes at any place: numbers, fields, shares, tags.
fn overwrite(bytes: &mut Bytes<'_>, frame: &mut [u8]) {
    let at = usize::from(bytes.short()).min(frame.len());
    for (byte, new) in frame[at..].iter_mut().zip(bytes.some()) {
        *byte = *new;
    }
}

fn set_length(frame: &mut [u8]) {
    let len = u16::try_from(frame.len()).unwrap_or(u16::MAX).to_be_bytes();
    if let Some(length) = frame.get_mut(2..4) {
        length.copy_from_slice(&len);
    }
}

/// What a handshake authenticates of a frame, or a RESET shows: two frames with the same are one to
/// their receiver. `None`: all of the frame counts.
pub(super) fn authentic_part(frame: &[u8]) -> Option<Vec<u8>> {
    let (kind, free, end) = match frame.get(1)? & !PHASE {
        kind if kind == SEALED | Kind::Reset as u8 && frame.len() == SealedReset::LEN => (kind, 32..36, frame.len()),
        _ => match Header::parse(frame)?.kind {
            Kind::Connect => {
                let connect = Connect::parse(frame)?;
                let share = match connect.share {
                    Share::None => 0,
                    Share::Beside(share) | Share::Inside(share) => share.len(),
                };
                (frame[1], 72..84, wire::CONNECT + connect.payload.len() + share)
            }
            Kind::Accept => Accept::parse(frame).map(|_| (frame[1], 64..72, frame.len()))?,
            Kind::Reject => Reject::parse(frame).map(|_| (frame[1], 36..44, frame.len()))?,
            Kind::Redirect => Redirect::parse(frame).map(|_| (frame[1], 36..44, frame.len()))?,
            _ => return None,
        },
    };
    let mut part = frame[..end].to_vec();
    part[1] = kind;
    part[2..8].fill(0);
    part[24..32].fill(0);
    part[free].fill(0);
    Some(part)
}
