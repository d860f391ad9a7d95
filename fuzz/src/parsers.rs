//! The parsers outside the protocol: whatever comes from a socket, a file or the environment, one
//! target each. What is read is written again where that has one form.

use cci_transport::HostAndPort;

/// HOST:PORT, and decimal numbers.
pub(crate) fn host_and_port(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = cci_proto::decimal::<u64>(&text);
    if let Some(at) = HostAndPort::parse(&text) {
        assert!(at.port > 0 && !at.host.is_empty());
        let _ = at.literal();
    }
}

/// Names of topologies, patterns and families.
pub(crate) fn model_names(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(topology) = text.parse::<cci_model::Topology>() {
        assert!(topology.nodes() > 0);
    }
    let _ = (text.parse::<cci_model::Pattern>(), text.parse::<cci_model::Family>());
}

/// What goes before the message of a connection of a transport over another library.
pub(crate) fn over(bytes: &[u8]) {
    if let Some((opening, rest)) = cci_over::Opening::parse(bytes) {
        let mut again = Vec::new();
        opening.emit(&mut again);
        again.extend(rest);
        assert_eq!(cci_over::Opening::parse(&again), Some((opening, rest)));
    }
    let _ = (cci_over::words::<2>(bytes), cci_over::words::<6>(bytes));
    if let Some(header) = bytes.first_chunk().and_then(|word| cci_over::Header::of(u64::from_le_bytes(*word))) {
        assert_eq!(cci_over::Header::of(header.word()), Some(header));
    }
}
