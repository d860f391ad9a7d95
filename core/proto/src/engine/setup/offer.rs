//! What both sides offer in a handshake.

use crate::engine::api::Config;
use crate::engine::connection::conn::{Conn, bit};
use crate::engine::connection::sealed::OVERHEAD;
use crate::wire::{Offer, features};

/// Features of this side.
pub(super) fn offered(config: &Config) -> u32 {
    if config.unchecked_on_host && config.machine != 0 { features::UNCHECKED } else { 0 }
}

/// Applies the features that the peer offers.
pub(super) fn take_offer(conn: &mut Conn, offer: &Offer, config: &Config) {
    conn.recv_next = if conn.is_reliable() { offer.first_seq } else { 0 };
    let mut mtu = offer.mtu;
    if conn.has(bit::SEALED) {
        // From here on the sizes of frames are those without the tag.
        for size in [&mut conn.base_mtu, &mut conn.peer_mtu, &mut mtu] {
            *size = size.saturating_sub(OVERHEAD);
        }
    }
    // Nobody is sent frames in which nothing fits.
    conn.peer_mtu = mtu.clamp(conn.base_mtu.min(conn.peer_mtu), conn.peer_mtu);
    conn.mtu = conn.base_mtu.min(conn.peer_mtu);
    conn.peer_buffer = offer.recv_buffer.max(u32::from(conn.mtu));
    conn.credit = u16::try_from(offer.credit).unwrap_or(u16::MAX);
    let same_host = config.machine != 0 && offer.host == config.machine;
    if same_host && !conn.has(bit::SEALED) && offered(config) & offer.features & features::UNCHECKED != 0 {
        conn.set(bit::UNCHECKED);
    }
}
