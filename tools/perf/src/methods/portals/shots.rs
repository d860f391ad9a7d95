//! What is measured. `docs/design/perf-portals.md` says what was expected.

use crate::methods::am::{Load as OwnLoad, Shot as OwnShot};

/// Bytes of the longest put: that of the paper's figure of RMA.
pub(super) const LONGEST: usize = 4 << 20;
/// Bytes of the longest message of CCI over Portals.
pub(super) const LONGEST_MESSAGE: usize = 8 << 10;
/// Bytes of messages, and of RMA, of CCI over Portals and of native puts beside them.
pub(super) const MESSAGES: [u64; 8] = [8, 64, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10];
pub(super) const WRITES: [u64; 6] = [8, 1 << 10, 16 << 10, 128 << 10, 1 << 20, 4 << 20];
/// Bytes of the table that updates go to.
pub(super) const TABLE: usize = 1 << 20;
/// Entries that refuse before the one that takes.
pub(super) const DEPTHS: [u32; 6] = [0, 32, 128, 512, 1_024, 2_048];
/// Puts that are not acknowledged.
pub(super) const WINDOW: u64 = 16;

/// What a put carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// So many bytes there and back.
    Echo(u64),
    /// 8 bytes there and back, through the lists of this number.
    Deep(u32),
    /// So many bytes, acknowledged.
    Stream { bytes: u64, window: u64 },
    /// 8 bytes at a random place of the table, acknowledged.
    Update { window: u64 },
}

/// What a figure is of the time of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    /// Half of it, in nanoseconds.
    Half,
    /// How many go in a second.
    Rate,
    /// Bytes per second.
    Bandwidth(u64),
}

/// A figure of an experiment, by each way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shot {
    pub(super) experiment: &'static str,
    /// Its place on the abscissa.
    pub(super) x: u64,
    pub(super) load: Load,
    pub(super) figure: Figure,
    /// The same by CCI's own messages and RMA, where they have it.
    pub(super) own: Option<OwnShot>,
}

impl Shot {
    /// The figure of so many nanoseconds for an exchange.
    #[expect(clippy::cast_precision_loss, reason = "sizes below 2^52")]
    pub(super) fn value(&self, ns: f64) -> f64 {
        match self.figure {
            Figure::Half => ns / 2.0,
            Figure::Rate => 1e9 / ns,
            Figure::Bandwidth(bytes) => bytes as f64 * 1e9 / ns,
        }
    }
}

/// Beside an engine that has nothing to do.
pub(super) const BESIDE: Shot =
    Shot { experiment: "beside", x: 8, load: Load::Echo(8), figure: Figure::Half, own: None };

fn echo(bytes: u64) -> Shot {
    // A message of CCI's own begins with a header of 8 bytes.
    let own = (8..=4096).contains(&bytes).then(|| OwnLoad::Echo(bytes as usize - 8));
    let own = own.map(|load| OwnShot { name: "echo", load, window: 1 });
    Shot { experiment: "pingpong", x: bytes, load: Load::Echo(bytes), figure: Figure::Half, own }
}

fn stream(experiment: &'static str, bytes: u64, window: u64) -> Shot {
    let own = Some(OwnShot { name: "write", load: OwnLoad::Bulk(bytes), window });
    Shot { experiment, x: bytes, load: Load::Stream { bytes, window }, figure: Figure::Bandwidth(bytes), own }
}

/// All of them, in the order of the table.
pub(super) fn shots() -> Vec<Shot> {
    let mut shots: Vec<_> = [0, 8, 64, 512, 4 << 10, 16 << 10, 64 << 10].map(echo).into();
    let update = Load::Update { window: WINDOW };
    shots.push(Shot { experiment: "gups", x: 1, load: update, figure: Figure::Rate, own: None });
    shots.extend([4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20].map(|bytes| stream("throughput", bytes, WINDOW)));
    shots.push(stream("alone", 1 << 20, 1));
    shots.extend((0..).zip(DEPTHS).map(|(number, depth)| Shot {
        experiment: "depth",
        x: depth.into(),
        load: Load::Deep(number),
        figure: Figure::Half,
        own: None,
    }));
    let load = Load::Stream { bytes: 8, window: WINDOW };
    let own = Some(OwnShot { name: "rate", load: OwnLoad::Short(0), window: WINDOW });
    shots.push(Shot { experiment: "injection", x: 8, load, figure: Figure::Rate, own });
    shots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_have_a_message_of_as_many_bytes_beside_them_where_one_can_be() {
        let shots = shots();
        let of = |bytes| {
            let shot = shots.iter().find(|shot| shot.experiment == "pingpong" && shot.x == bytes);
            shot.and_then(|shot| shot.own).map(|own| own.message() as u64)
        };
        assert_eq!([0, 8, 64, 4096, 64 << 10].map(of), [None, Some(8), Some(64), Some(4096), None]);
    }
}
