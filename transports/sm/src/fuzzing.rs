//! The readers of packets and URIs, for the fuzz targets. No part of the interface.

use crate::format::address::Address;
use crate::format::packet::Packet;

/// A packet of a socket, and the geometry that it states.
pub fn packet(bytes: &[u8]) {
    let Some(packet) = Packet::parse(bytes) else { return };
    let _ = packet.geometry();
    assert_eq!(Packet::parse(&packet.to_bytes()), Some(packet));
}

/// A URI: one endpoint has one, and one with a port a second one by that.
pub fn uri(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(address) = Address::from_uri(&text) {
        let of_port = format!("sm://:{}", address.id);
        assert!(text == address.to_string() || address.pid == 0 && text == of_port, "{text} is {address}");
    }
    let _ = Address::for_service(&text);
}
