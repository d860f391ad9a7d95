//! Results that are no row over size; see `docs/perf-json.md`. Units are in the names.

use super::memory_curves::MemoryCurves;
use super::statistics::median;
use serde::{Deserialize, Serialize};

/// Updates that a process of RandomAccess may have decided on and not yet handed over, as the
/// benchmark's rules say.
pub const LOOK_AHEAD: usize = 1024;

/// One result. New kinds may be added; readers pass over those that they do not know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Finding {
    /// The distribution of single round trips.
    Jitter(Jitter),
    /// Memory of an endpoint and over connections.
    Memory(Memory),
    /// Memory over peers, and over connections to one peer.
    MemoryCurves(MemoryCurves),
    /// Operations per second over threads.
    Threads(Threads),
    /// How much of a transfer hides behind computation.
    Overlap(Overlap),
    /// What an endpoint uses that has nothing to do.
    Idle(Idle),
    /// The parameters of the LogP model.
    Logp(Logp),
    /// The parts of the time of one request and its reply.
    Breakdown(Breakdown),
    /// Random access to a table.
    Gups(Gups),
    /// Active Messages beside CCI's own.
    Am(Am),
    /// Active Messages by several mappings.
    Mappings(Mappings),
    /// Accesses of the global address space of Split-C.
    #[serde(rename = "splitc")]
    SplitC(SplitC),
    /// Native VIs beside what they stand on.
    Via(Via),
    /// Portals 3.3 beside CCI's own.
    Portals(Portals),
    /// Myrinet Express beside CCI's own.
    Mx(Mx),
    /// Windows of SCI beside bare memory.
    Sci(Sci),
    /// MPI beside windows of SCI.
    Mpi(Mpi),
    /// A kind of a later version.
    #[serde(other)]
    Unknown,
}

/// The distribution of single round trips.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// Name of the transport.
    pub transport: String,
    /// Bytes of a message or of an RMA.
    pub size: u64,
    /// Round trips.
    pub count: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The median.
    pub median_ns: u64,
    /// All but one in a hundred took at most so long.
    pub p99_ns: u64,
    /// All but one in a thousand took at most so long.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Time of one reading of the clock, which every round trip contains.
    pub clock_ns: f64,
    /// Round trips of each length: the upper end of a bucket, and how many were in it.
    pub histogram: Vec<(u64, u64)>,
}

/// Memory of an endpoint and over connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Name of the transport.
    pub transport: String,
    /// Bytes that a fresh endpoint shares with nobody.
    pub endpoint_private_bytes: f64,
    /// Bytes of a fresh endpoint that are in memory.
    pub endpoint_resident_bytes: f64,
    /// One a step, from the smallest.
    pub points: Vec<MemoryPoint>,
}

/// Memory of a process beyond what it had with one connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryPoint {
    /// Connections of the endpoint.
    pub connections: u64,
    /// Bytes beyond those with one connection that are shared with nobody.
    pub private_bytes: f64,
    /// Bytes beyond those with one connection that are in memory.
    pub resident_bytes: f64,
}

/// Operations per second over threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Threads {
    /// Name of the transport.
    pub transport: String,
    /// Name of the operation.
    pub operation: String,
    /// Bytes of a message or of an RMA.
    pub size: u64,
    /// One a step, from the smallest.
    pub points: Vec<ThreadsPoint>,
}

/// Operations per second of all threads together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadsPoint {
    /// Threads that call at once.
    pub threads: u64,
    /// All of one endpoint.
    pub shared_per_second: f64,
    /// Each of an endpoint of its own.
    pub own_per_second: f64,
}

/// How much of a transfer hides behind computation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overlap {
    /// Name of the transport.
    pub transport: String,
    /// Name of the operation.
    pub operation: String,
    /// One a step, from the smallest.
    pub points: Vec<OverlapPoint>,
}

/// One size: the times of a transfer alone, of computing alone, and of both together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverlapPoint {
    /// Bytes of a message or of an RMA.
    pub size: u64,
    /// Of a transfer alone.
    pub transfer_ns: f64,
    /// Of computing alone.
    pub compute_ns: f64,
    /// Of both together.
    pub both_ns: f64,
    /// Part of the transfer that took no time of its own: 1 all, 0 nothing.
    pub overlap: f64,
}

impl OverlapPoint {
    /// From nanoseconds of blocks: of a transfer alone, of computing alone, of both.
    pub fn new(size: u64, blocks: &[[f64; 3]]) -> Self {
        let median = |of: usize| median(&blocks.iter().map(|block| block[of]).collect::<Vec<_>>());
        let [transfer_ns, compute_ns, both_ns] = [0, 1, 2].map(median);
        let saved = transfer_ns + compute_ns - both_ns;
        let overlap = (saved / transfer_ns.min(compute_ns).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        Self { size, transfer_ns, compute_ns, both_ns, overlap }
    }
}

/// What an endpoint uses that has nothing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// Name of the transport.
    pub transport: String,
    /// How long it lasted.
    pub seconds: f64,
    /// Processor time of the process.
    pub processor_ms: f64,
    /// The same of a process that sleeps without an endpoint.
    pub bare_processor_ms: f64,
    /// Times that the program was woken.
    pub wakes: u64,
    /// Context switches of the library's threads.
    pub switches: u64,
}

/// The parameters of the LogP model, with the gap per byte of bulk transfers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Logp {
    /// Name of the transport.
    pub transport: String,
    /// Bytes of a message or of an RMA.
    pub size: u64,
    /// What the connection promises: `RO`, `RU`, `UU`.
    #[serde(default)]
    pub attribute: String,
    /// Latency.
    #[serde(rename = "L_ns")]
    pub l_ns: f64,
    /// Overhead of sending.
    pub o_s_ns: f64,
    /// Overhead of receiving.
    pub o_r_ns: f64,
    /// Gap between messages.
    pub g_ns: f64,
    /// Gap for each byte.
    #[serde(rename = "G_ns_per_byte")]
    pub g_ns_per_byte: f64,
    /// Round trip of a lone request.
    #[serde(default)]
    pub round_trip_ns: f64,
    /// Delay at which the time per message turns from the gap to delay and overheads; absent where
    /// the gap hides behind these.
    #[serde(default)]
    pub turn_ns: Option<f64>,
    /// Requests without reply, at most.
    #[serde(default)]
    pub window: u64,
    /// The window limited long bursts: the gap is at most `g_ns`.
    #[serde(default)]
    pub window_bound: bool,
    /// Root of the mean square of what the fit leaves over, as a part of the points.
    pub residual: f64,
    /// One a step, from the smallest.
    pub points: Vec<LogpPoint>,
}

/// A burst of messages, each followed by a delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogpPoint {
    /// Requests of the burst.
    pub burst: u64,
    /// Computing after each request.
    pub delay_ns: f64,
    /// Time of the burst by its requests.
    pub ns_per_message: f64,
}

/// The parts of the time of one request and its reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// Name of the transport.
    pub transport: String,
    /// Bytes of a message or of an RMA.
    pub size: u64,
    /// The whole: a request and its reply, without stamps.
    pub total_ns: f64,
    /// Bare operation that was measured beside it, there and back.
    #[serde(default)]
    pub probe: String,
    /// Of the bare operation, there and back.
    #[serde(default)]
    pub probe_ns: f64,
    /// The parts, which make up the whole.
    pub shares: Vec<Share>,
}

/// One part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// What it is called.
    pub name: String,
    /// Time of the part; below nothing where something disturbed the run.
    pub ns: f64,
    /// What the part consists of, and how it was told.
    #[serde(default)]
    pub meaning: String,
}

/// Random access to a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gups {
    /// Name of the transport.
    pub transport: String,
    /// Name of the operation.
    pub operation: String,
    /// Size of the table of all processes together.
    pub table_bytes: u64,
    /// Updates of all processes together.
    pub updates: u64,
    /// How long it lasted.
    pub seconds: f64,
    /// 10^9 updates per second.
    pub gups: f64,
    /// Processes that share the table.
    #[serde(default)]
    pub processes: u64,
    /// 10^9 updates per second of all these processes, each in memory of its own, bare.
    #[serde(default)]
    pub probe_gups: f64,
    /// Places of the table that were wrong afterwards.
    pub errors: u64,
}

/// Active Messages beside CCI's own messages and RMA.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Am {
    /// Name of the transport.
    pub transport: String,
    /// Time of a tick of the processor's counter.
    pub cycle_ns: f64,
    /// Pairs of processes that measured.
    pub launches: u64,
    /// Another library with active messages, as its program describes itself.
    #[serde(default)]
    pub peer: Option<String>,
    /// One for each kind of exchange.
    pub points: Vec<AmPoint>,
}

/// One kind of exchange: by Active Messages, and by CCI's own in the same run. Spreads are how
/// uncertain a median is: half the range of six groups of launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AmPoint {
    /// What is exchanged.
    pub name: String,
    /// Bytes of the request's message; of a bulk request those that are written.
    pub bytes: u64,
    /// Exchanges under way.
    pub window: u64,
    /// Time of an exchange: a request and its reply.
    pub am_ns: f64,
    /// How uncertain it is.
    pub am_spread_ns: f64,
    /// The cheapest of CCI's own ways: `send`, `reserve` (written in place), `write` (RMA).
    pub own: String,
    /// Time of the same exchange by it.
    pub own_ns: f64,
    /// How uncertain it is.
    pub own_spread_ns: f64,
    /// What Active Messages add: to a message where both of an exchange are alike, else to the
    /// exchange.
    pub difference_ns: f64,
    /// How uncertain it is.
    pub difference_spread_ns: f64,
    /// Speed of Active Messages over that of CCI's own.
    pub ratio: f64,
    /// How uncertain it is.
    pub ratio_spread: f64,
    /// Time of the same exchange by active messages of the other library.
    #[serde(default)]
    pub peer_ns: Option<f64>,
    /// Time of Active Messages over that.
    #[serde(default)]
    pub to_peer: Option<f64>,
}

/// Native VIs beside CCI's own messages and RMA, and Active Messages beside native VIs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Via {
    /// Name of the transport.
    pub transport: String,
    /// Time of a tick of the processor's counter.
    pub cycle_ns: f64,
    /// Pairs of processes that measured.
    pub launches: u64,
    /// One for each row of the table.
    pub points: Vec<ViaPoint>,
}

/// One way, beside the one that it is compared with in the same run. Spreads are how uncertain a
/// median is: half the range of six groups of launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ViaPoint {
    /// What is measured.
    pub name: String,
    /// Bytes of a message on a VI, or of a write.
    pub bytes: u64,
    /// Half of a round trip; of a write, its whole time.
    pub ns: f64,
    /// How uncertain it is.
    pub spread_ns: f64,
    /// What it is compared with.
    pub reference: String,
    /// The same time of that.
    pub reference_ns: f64,
    /// How uncertain it is.
    pub reference_spread_ns: f64,
    /// What the figure is.
    pub told: ViaTold,
    /// The comparison.
    pub figure: f64,
    /// How uncertain it is.
    pub figure_spread: f64,
    /// What the figure must reach, where there is a bar.
    pub bar: Option<f64>,
    /// What it is meant to reach.
    pub target: Option<f64>,
}

/// How a way compares with its reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViaTold {
    /// Cycles that it takes more; fewer are better.
    #[default]
    Cycles,
    /// Its speed over that of the reference; more is better.
    Speed,
    /// Its time over that of the reference; less is better.
    Time,
    /// Its time in nanoseconds; less is better.
    Nanoseconds,
    /// Nanoseconds that it takes more; fewer are better.
    More,
}

impl ViaPoint {
    /// Whether the bar is reached, where there is one.
    #[must_use]
    pub fn is_reached(&self) -> Option<bool> {
        self.bar.map(|bar| if self.told == ViaTold::Speed { self.figure >= bar } else { self.figure <= bar })
    }
}

/// Experiments with Portals 3.3, by each mode and by CCI's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Portals {
    /// Name of the transport.
    pub transport: String,
    /// Pairs of processes that measured.
    pub launches: u64,
    /// Processors that they might use.
    pub processors: u64,
    /// One for each figure.
    pub points: Vec<PortalsPoint>,
}

/// Experiments with Myrinet Express, and by CCI's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mx {
    /// Name of the transport.
    pub transport: String,
    /// What each other library tells of itself.
    #[serde(default)]
    pub others: Vec<String>,
    /// Pairs of processes that measured.
    pub launches: u64,
    /// Processors that they might use.
    pub processors: u64,
    /// One for each figure.
    pub points: Vec<PortalsPoint>,
}

/// Windows of SCI, and bare memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sci {
    /// Name of the transport below.
    pub transport: String,
    /// How windows reach their segment: `shared` or `mirror`.
    pub window: String,
    /// Pairs of processes that measured.
    pub launches: u64,
    /// Runs of each figure, of all launches.
    pub runs: u64,
    /// Processors that they might use.
    pub processors: u64,
    /// One for each row of the table with bars.
    pub rows: Vec<ViaPoint>,
    /// One for each figure: the minimum of its runs, and how far the maximum lies above it.
    pub points: Vec<PortalsPoint>,
}

/// MPI and windows of SCI.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mpi {
    /// Name of the transport below windows.
    pub transport: String,
    /// How windows reach their segment: `shared` or `mirror`.
    pub window: String,
    /// What each MPI tells of itself.
    pub programs: Vec<String>,
    /// Pairs of processes that measured.
    pub launches: u64,
    /// Runs of each figure, of all launches.
    pub runs: u64,
    /// Processors that they might use.
    pub processors: u64,
    /// As of [`Sci`], by `windows`, `openmpi` and `mpich`.
    pub points: Vec<PortalsPoint>,
}

/// A figure of an experiment with Portals, Myrinet Express or SCI. `docs/design/perf-portals.md`,
/// `docs/design/perf-mx.md` and `docs/design/perf-sci.md` have the experiments and their units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortalsPoint {
    /// Name of the experiment.
    pub experiment: String,
    /// Its place on the abscissa: bytes, entries, receives, processes or seconds.
    pub x: u64,
    /// A mode of Portals, `mx`, a way of SCI, another library, or what others are compared with:
    /// `cci`, `bare`, `without`.
    pub way: String,
    /// In the unit of the experiment: nanoseconds, bytes or operations per second, bytes, or a part
    /// of 1.
    pub value: f64,
    /// How uncertain it is: half the range of six groups of launches. Of SCI: how far the slowest
    /// run lies above it.
    pub spread: f64,
}

/// Active Messages by several mappings, and the native VI that most of them stand on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mappings {
    /// Name of the transport.
    pub transport: String,
    /// Time of a tick of the processor's counter.
    pub cycle_ns: f64,
    /// Bytes of a request's payload, and of its reply's.
    pub payload: u64,
    /// Native VI first, then one for each mapping, and for each number of its credits.
    pub points: Vec<MappingPoint>,
    /// Bulk data over size.
    pub bulk: Vec<BulkPoint>,
    /// A copy of 1 KiB into registered memory.
    #[serde(default)]
    pub copy_ns: f64,
    /// What a short request and its reply consist of, by each mapping over VI, at both ends
    /// together.
    #[serde(default)]
    pub parts: Vec<MappingPart>,
}

/// A part of the work on a short request and its reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MappingPart {
    /// The mapping.
    pub mapping: String,
    /// Its category: Base VI, Event notification, Flow control, Semantics.
    pub category: String,
    /// What it is.
    pub name: String,
    /// How long it takes.
    pub ns: f64,
}

/// What a message costs by a mapping, or by native VI (`via`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MappingPoint {
    /// The mapping.
    pub name: String,
    /// Its credits, where it has some.
    pub credits: Option<u16>,
    /// Messages after which credits go back by themselves, where that was asked for.
    #[serde(default)]
    pub update_every: Option<u16>,
    /// Bytes of a message as the layer below has it.
    pub wire_bytes: u64,
    /// Half of a round trip, of requests one after the other.
    pub half_ns: f64,
    /// What is more than that of native VI with as many bytes as the mappings over it have.
    pub difference_ns: Option<f64>,
    /// Half of the round trip of a lone request, after a pause.
    #[serde(default)]
    pub lone_ns: f64,
    /// Latency of LogP.
    pub l_ns: f64,
    /// Overhead of a send.
    pub o_s_ns: f64,
    /// Overhead of a receive.
    pub o_r_ns: f64,
    /// Gap between messages.
    pub g_ns: f64,
    /// A short request that has no reply, of a stream of these.
    #[serde(default)]
    pub store_ns: Option<f64>,
}

/// How fast bulk data goes: by RDMA write of native VI, or by bulk requests that are replied to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BulkPoint {
    /// The mapping.
    pub name: String,
    /// Its credits, where it has some.
    pub credits: Option<u16>,
    /// Messages after which credits go back by themselves, where that was asked for.
    #[serde(default)]
    pub update_every: Option<u16>,
    /// Bytes of a request.
    pub bytes: u64,
    /// 10^6 bytes per second, eight requests under way.
    pub mb_per_s: f64,
}

/// Accesses of the global address space of Split-C, by several mappings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SplitC {
    /// Name of the transport.
    pub transport: String,
    /// Time of a tick of the processor's counter.
    pub cycle_ns: f64,
    /// Operations beside what they stand on.
    pub pairs: Vec<SplitCPair>,
    /// Repeated operations on a word.
    pub words: Vec<SplitCWord>,
    /// Repeated bulk operations over size.
    pub bulk: Vec<SplitCBulk>,
    /// What a get of a word consists of, by each mapping over VI, in both ranks together.
    #[serde(default)]
    pub parts: Vec<MappingPart>,
}

/// An operation beside what it stands on, in turn in the same run: medians of blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SplitCPair {
    /// The mapping.
    pub mapping: String,
    /// The operation.
    pub name: String,
    /// Its time.
    pub ns: f64,
    /// Time of what it stands on.
    pub bare_ns: f64,
    /// What is more than that.
    pub difference_ns: f64,
    /// Time over that of what it stands on.
    pub ratio: f64,
}

/// What an operation on a word takes, many in a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SplitCWord {
    /// The mapping.
    pub mapping: String,
    /// `read`, `write`, `get`, `put`, `store`.
    pub operation: String,
    /// The type of C.
    #[serde(rename = "type")]
    pub of: String,
    /// Time of an operation.
    pub ns: f64,
}

/// How fast a bulk operation goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SplitCBulk {
    /// The mapping.
    pub mapping: String,
    /// `read`, `get`, `put`, `store`; `memcpy` within a rank.
    pub operation: String,
    /// Bytes of an operation.
    pub bytes: u64,
    /// 10^6 bytes per second, eight operations before each `sync`.
    pub mb_per_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_of_a_finding_says_its_kind_beside_its_fields() {
        let points = vec![ThreadsPoint { threads: 2, shared_per_second: 3.0, own_per_second: 4.0 }];
        let threads = Threads { transport: "sm".into(), operation: "send".into(), size: 8, points };
        insta::assert_json_snapshot!(Finding::Threads(threads));
    }

    #[test]
    fn the_parameters_of_logp_have_their_letters() {
        let text = r#"{"kind":"logp","transport":"sim","size":8,"L_ns":1.0,"o_s_ns":2.0,"o_r_ns":3.0,"g_ns":4.0,
            "G_ns_per_byte":5.0,"residual":0.0,"points":[]}"#;
        let Finding::Logp(logp) = serde_json::from_str(text).unwrap() else { panic!("another kind") };
        assert_eq!((logp.l_ns, logp.g_ns, logp.g_ns_per_byte), (1.0, 4.0, 5.0));
    }
}
