//! What is measured, and beside what.

use cci_report::finding::ViaTold;
use serde::{Deserialize, Serialize};

/// Bytes of a short message of a VI; those of a message of CCI's own that carries it.
pub(super) const SHORT: usize = 8;
pub(super) const OWN: usize = SHORT + 16;
/// Bytes that a short request with four arguments takes on a VI: headers of the engine and of the
/// mapping, and the arguments.
pub(super) const REQUEST: usize = 8 + 8 + 16;
/// Bytes of an RDMA write.
pub(super) const LONG: usize = 1 << 20;
/// VIs of the completion queue that has many.
pub(super) const MANY: usize = 1_024;

/// How an exchange travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub(super) enum Way {
    /// A message of CCI's own, and one back. The ends go from one way to another by it.
    Own = 1,
    /// RMA write of CCI's own.
    Rma = 2,
    /// Sends of reliable delivery, work queues polled.
    Polled = 3,
    /// The same with one completion queue for both work queues.
    Queue = 4,
    /// Sends of reliable reception, work queues polled.
    Reception = 5,
    /// RDMA write.
    Write = 6,
    /// As `Queue`, with as many bytes as `V3` has.
    Wide = 7,
    /// As `Queue`, by the VIs of a queue that has many, in turn.
    Many = 8,
    /// The same by one of them, while the others have nothing to do.
    OneOfMany = 9,
    /// A short request of Active Messages and its reply, by v3 over VI.
    V3 = 10,
}

impl Way {
    const ALL: [Self; 10] = [
        Self::Own,
        Self::Rma,
        Self::Polled,
        Self::Queue,
        Self::Reception,
        Self::Write,
        Self::Wide,
        Self::Many,
        Self::OneOfMany,
        Self::V3,
    ];

    /// The way with this number; `None`: none, the run is over.
    pub(super) fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|way| *way as u8 == number)
    }

    /// What stands in the table where another way is compared with it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Own => "message of CCI",
            Self::Rma => "RMA of CCI",
            Self::Polled => "VI, polled",
            Self::Queue => "queue of one VI",
            Self::Reception => "VI, reception",
            Self::Write => "RDMA write",
            Self::Wide => "native VI",
            Self::Many | Self::OneOfMany => "queue of many VIs",
            Self::V3 => "v3",
        }
    }

    /// Messages of one exchange: the figure is for one of them.
    pub(super) fn messages(self) -> f64 {
        if matches!(self, Self::Rma | Self::Write) { 1.0 } else { 2.0 }
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) bytes: usize,
    pub(super) way: Way,
    pub(super) reference: Way,
    pub(super) told: ViaTold,
    /// Over `sm`: what the figure must reach, and what it is meant to reach.
    pub(super) bar: Option<f64>,
    pub(super) target: Option<f64>,
}

/// All of them.
pub(super) const ROWS: [Row; 7] = [
    Row {
        name: "send, reliable delivery, polled",
        bytes: SHORT,
        way: Way::Polled,
        reference: Way::Own,
        told: ViaTold::Cycles,
        bar: Some(150.0),
        target: Some(80.0),
    },
    Row {
        name: "the same, one completion queue",
        bytes: SHORT,
        way: Way::Queue,
        reference: Way::Own,
        told: ViaTold::Cycles,
        bar: Some(220.0),
        target: Some(120.0),
    },
    Row {
        name: "send, reliable reception, polled",
        bytes: SHORT,
        way: Way::Reception,
        reference: Way::Own,
        told: ViaTold::Cycles,
        bar: None,
        target: None,
    },
    Row {
        name: "RDMA write",
        bytes: LONG,
        way: Way::Write,
        reference: Way::Rma,
        told: ViaTold::Speed,
        bar: Some(0.95),
        target: None,
    },
    Row {
        name: "queue of 1,024 VIs, one busy",
        bytes: SHORT,
        way: Way::OneOfMany,
        reference: Way::Queue,
        told: ViaTold::Time,
        bar: Some(1.1),
        target: None,
    },
    Row {
        name: "queue of 1,024 VIs, all in turn",
        bytes: SHORT,
        way: Way::Many,
        reference: Way::Queue,
        told: ViaTold::Time,
        bar: None,
        target: None,
    },
    Row {
        name: "Active Messages by v3, short",
        bytes: REQUEST,
        way: Way::V3,
        reference: Way::Wide,
        told: ViaTold::Cycles,
        bar: Some(300.0),
        target: Some(150.0),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_found_by_its_number_and_none_is_the_end() {
        for way in Way::ALL {
            assert_eq!(Way::of(way as u8), Some(way));
        }
        assert_eq!((Way::of(0), Way::of(11)), (None, None));
    }
}
