//! The readers of what other launchers send and of host files, for the fuzz targets. No part of the
//! interface.

use crate::end::End;
use crate::frames::{Frames, Kind, head};
use crate::hosts::{hosts_of, parse_hosts, place};
use crate::remote::Plan;
use std::path::Path;

/// A stream between two launchers: the first byte is the longest piece that arrives at once.
pub fn frames(bytes: &[u8]) {
    let Some((longest, stream)) = bytes.split_first() else { return };
    let mut frames = Frames::default();
    for piece in stream.chunks(usize::from(*longest).max(1)) {
        frames.push(piece);
        loop {
            let frame = match frames.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(_) => return,
            };
            let mut again = Frames::default();
            again.push(&[&head(frame.kind, frame.rank, frame.bytes.len())[..], frame.bytes].concat());
            assert_eq!(again.next().as_ref(), Ok(&Some(frame.clone())));
            match frame.kind {
                Kind::Ended => drop(End::parse(frame.bytes).map(|end| end.to_string())),
                Kind::Start => drop(serde_json::from_slice::<Plan>(frame.bytes)),
                _ => {}
            }
        }
    }
}

/// The text of a host file, and hosts as an option names them.
pub fn hosts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for hosts in [hosts_of(&text, Path::new("hosts")), parse_hosts(&text)].into_iter().flatten() {
        let placed = place(64, &hosts);
        assert_eq!((placed.len(), placed.iter().map(Vec::len).sum::<usize>()), (hosts.len(), 64));
    }
}
