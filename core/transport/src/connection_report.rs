//! What a connection reports about itself.

use crate::Connection;
use cci_mem::sync::Ordering;
use std::time::Duration;

/// What a connection reports about itself.
///
/// `Endpoint::report` makes one. The counts are those since the connection opened.
///
/// # Example
///
/// ```
/// # use cci_transport::ConnectionReport;
/// /// How a connection's messages and RMA travel, and the time of a round trip.
/// fn shown(report: &ConnectionReport) -> String {
///     let micros = report.rtt.unwrap_or_default().as_micros();
///     format!("{}: {}; RMA: {} ({}); {micros} us", report.transport, report.path, report.rma_path, report.why)
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionReport {
    /// Name of the transport.
    pub transport: &'static str,
    /// How messages travel.
    pub path: String,
    /// How RMA travels.
    pub rma_path: String,
    /// More of its path is about to open: a later report may name more.
    pub is_opening: bool,
    /// Why these paths and no others.
    pub why: String,
    /// Largest frame, bytes.
    pub mtu: u32,
    /// Smoothed round-trip time; `None`: not measured.
    pub rtt: Option<Duration>,
    /// Frames that may be in flight.
    pub window: u32,
    /// Operations that are open.
    pub open: u32,
    /// Messages sent.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Bytes moved by RMA that this side began.
    pub rma_bytes: u64,
    /// Times that a message had to wait for room at the receiver.
    pub rnr: u64,
    /// Messages dropped (unreliable connections).
    pub dropped: u64,
    /// Frames that the whole endpoint dropped because their connection does not exist (any more).
    pub strays: u64,
    /// Frames of the peer that were dropped because they came from another address: how many, from
    /// where, and what to do. `None`: there were none.
    pub moved: Option<String>,
    /// What it is protected by on its way: "sealed by ...", or "plain, since ...". Empty where
    /// nothing crosses a network.
    pub protection: String,
}

impl ConnectionReport {
    /// What every transport reports of a connection: the name of the transport, the largest
    /// message, and what was counted. The transport adds paths, reasons and what it measures.
    #[must_use]
    pub fn of(transport: &'static str, connection: &Connection) -> Self {
        let counters = &connection.counters;
        Self {
            transport,
            mtu: connection.max_send_size.load(Ordering::Relaxed),
            open: connection.open.load(Ordering::Relaxed),
            sent: counters.sent.load(Ordering::Relaxed),
            received: counters.received.load(Ordering::Relaxed),
            rma_bytes: counters.rma_bytes.load(Ordering::Relaxed),
            rnr: counters.rnr.load(Ordering::Relaxed).into(),
            dropped: counters.dropped.load(Ordering::Relaxed).into(),
            ..Self::default()
        }
    }
}
