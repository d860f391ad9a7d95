//! What is measured. `docs/design/perf-mx.md` says what was expected.

use crate::methods::am::{Load as OwnLoad, Shot as OwnShot};

/// Bytes of the longest message.
pub(super) const LONGEST: usize = 1 << 20;
/// Messages that have not ended, and receives that the server posts beside.
pub(super) const WINDOW: u64 = 16;
/// Receives that are posted while one of them is found.
pub(super) const DEPTHS: [u64; 3] = [1, 1_000, 100_000];

/// Which of the posted receives the next message finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Again,
    Posting,
    Random,
}

/// What a message carries, and what is posted meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// So many bytes there and back.
    Echo(u64),
    /// The same, while another thread uses the endpoints too.
    Shared(u64),
    /// 8 bytes there and back, which find one of so many receives.
    Deep(u64, Order),
    /// 8 bytes there and back, with so many receives of other masks posted.
    Wildcards(u64),
    /// So many bytes, of which the end is awaited.
    Stream { bytes: u64, window: u64 },
}

/// A figure of an experiment, by each way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shot {
    pub(super) experiment: &'static str,
    /// Its place on the abscissa.
    pub(super) x: u64,
    pub(super) load: Load,
    /// The same by CCI's own messages and RMA, where they have it.
    pub(super) own: Option<OwnShot>,
}

impl Shot {
    /// The figure of so many nanoseconds for an exchange.
    #[expect(clippy::cast_precision_loss, reason = "sizes below 2^52")]
    pub(super) fn value(&self, ns: f64) -> f64 {
        match self.load {
            Load::Stream { bytes, .. } => bytes as f64 * 1e9 / ns,
            _ => ns / 2.0,
        }
    }
}

/// CCI's own message of so many bytes; of none one of 8 bytes, which is its shortest here.
fn own_echo(bytes: u64) -> Option<OwnShot> {
    let load = (bytes <= 4096).then(|| OwnLoad::Echo(bytes.saturating_sub(8) as usize));
    load.map(|load| OwnShot { name: "echo", load, window: 1 })
}

fn stream(experiment: &'static str, bytes: u64, window: u64) -> Shot {
    // As many places as messages have, or the same one each time.
    let load = if window > 1 { OwnLoad::Spread(bytes) } else { OwnLoad::Bulk(bytes) };
    let own = Some(OwnShot { name: "write", load, window });
    Shot { experiment, x: bytes, load: Load::Stream { bytes, window }, own }
}

/// All of them, in the order of the table.
pub(super) fn shots() -> Vec<Shot> {
    let echo = |bytes| Shot { experiment: "pingpong", x: bytes, load: Load::Echo(bytes), own: own_echo(bytes) };
    let mut shots: Vec<_> = [0, 8, 64, 512, 4 << 10, 16 << 10, 64 << 10].map(echo).into();
    let shared = |bytes| Shot { experiment: "locked", x: bytes, load: Load::Shared(bytes), own: own_echo(bytes) };
    shots.extend([0, 8].map(shared));
    for (experiment, order) in [("again", Order::Again), ("order", Order::Posting), ("random", Order::Random)] {
        let deep = |depth| Shot { experiment, x: depth, load: Load::Deep(depth, order), own: None };
        shots.extend(DEPTHS.map(deep));
    }
    let wildcards = |count| Shot { experiment: "wildcards", x: count, load: Load::Wildcards(count), own: None };
    shots.extend([0, 1].map(wildcards));
    shots.extend([4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20].map(|bytes| stream("throughput", bytes, WINDOW)));
    shots.extend([64 << 10, 1 << 20].map(|bytes| stream("alone", bytes, 1)));
    shots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_one_of_as_many_bytes_beside_them_where_one_can_be() {
        let shots = shots();
        let of = |bytes| {
            let shot = shots.iter().find(|shot| shot.experiment == "pingpong" && shot.x == bytes);
            shot.and_then(|shot| shot.own).map(|own| own.message() as u64)
        };
        assert_eq!([0, 8, 64, 4096, 64 << 10].map(of), [Some(8), Some(8), Some(64), Some(4096), None]);
    }
}
