//! Fuzz targets: functions that take any bytes and panic when something is wrong. `make fuzz` has
//! libFuzzer look for such bytes, guided by coverage; the tests replay the corpus, and change it at
//! random for a while.

#![forbid(unsafe_code)]

mod bytes;
mod config;
mod engine;
mod mutate;
mod parsers;
mod sealed;
mod tcp;
mod wire_parse;

pub use engine::engine;
pub use mutate::{Mutator, mutations};
pub use sealed::sealed;
pub use tcp::tcp;
pub use wire_parse::wire_parse;

/// A target: any bytes, and a panic where something is wrong.
pub type Target = fn(&[u8]);

/// The parsers outside the protocol, by name: that of a folder of the corpus.
pub const PARSERS: [(&str, Target); 45] = [
    ("am_message", cci_am::fuzzing::message),
    ("am_via_frames", cci_am_via::fuzzing::frames),
    ("am_via_name", cci_am_via::fuzzing::name),
    ("auto_request", cci_auto::fuzzing::request),
    ("auto_uri", cci_auto::fuzzing::uri),
    ("configuration", cci::fuzzing::configuration),
    ("documents", cci_report::fuzzing::document),
    ("fabric_message", cci_fabric::fuzzing::message),
    ("fabric_record", cci_fabric::fuzzing::record),
    ("host_and_port", parsers::host_and_port),
    ("hosts", cci_launcher::fuzzing::hosts),
    ("job_client", cci_job::fuzzing::client),
    ("job_frame", cci_job::fuzzing::frame),
    ("job_manager", cci_job::fuzzing::manager),
    ("job_places", cci_job::fuzzing::places),
    ("job_pmi", cci_job::fuzzing::process_manager),
    ("job_store", cci_job::fuzzing::store),
    ("launcher_frames", cci_launcher::fuzzing::frames),
    ("model_names", parsers::model_names),
    ("mx_message", cci_mx::fuzzing::message),
    ("mx_uri", cci_over_mx::fuzzing::uri),
    ("over", parsers::over),
    ("over_mx_message", cci_over_mx::fuzzing::message),
    ("peers_hello", cci_peers::fuzzing::hello),
    ("peers_names", cci_peers::fuzzing::names),
    ("perf_control", cci_perf::fuzzing::control),
    ("portals_card", cci_portals::fuzzing::card),
    ("portals_commands", cci_portals::fuzzing::commands),
    ("portals_events", cci_portals::fuzzing::events),
    ("portals_message", cci_portals::fuzzing::message),
    ("portals_uri", cci_over_portals::fuzzing::uri),
    ("sci_message", cci_sci::fuzzing::message),
    ("sci_names", cci_sci::fuzzing::names),
    ("sci_nodes", cci_sci::fuzzing::nodes),
    ("sci_patch", cci_sci::fuzzing::patch),
    ("sm_packet", cci_sm::fuzzing::packet),
    ("sm_uri", cci_sm::fuzzing::uri),
    ("sock_uri", cci_sock::fuzzing::uri),
    ("splitc_message", cci_splitc::fuzzing::message),
    ("tcp_uri", cci_tcp::fuzzing::uri),
    ("top_snapshots", cci_top::fuzzing::snapshots),
    ("top_texts", cci_top::fuzzing::texts),
    ("via_message", cci_via::fuzzing::message),
    ("via_rendezvous", cci_via::fuzzing::rendezvous),
    ("words", cci_report::fuzzing::words),
];

/// The target of this name.
#[must_use]
pub fn parser(name: &str) -> Option<Target> {
    PARSERS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target)
}
