//! A way: a transport of the endpoint.

use crate::uri::is_loopback;
use cci_transport::{Driver, Scope, Transport};
use std::net::SocketAddr;

/// No way has this number.
pub(crate) const NO_WAY: u8 = u8::MAX;
/// Polls without success after which a way is cold.
pub(crate) const WARM: u32 = 1024;
/// The most ways of an endpoint.
pub(crate) const MOST_WAYS: usize = 7;

/// The key of a link that connects to other hosts also while it listens on this one only, and its
/// value.
pub(crate) const CONNECTS: (&str, &str) = ("connect", "network");

/// Whether endpoints on the loop-back interface connect to other hosts: those over a link need a
/// key for that.
pub(crate) fn connects_outward(driver: &Driver) -> bool {
    !driver.is_link || driver.key(CONNECTS.0).is_some()
}

/// A transport of the endpoint.
pub(crate) struct Way {
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) driver: &'static Driver,
    pub(crate) name: &'static str,
    pub(crate) scope: Scope,
    /// Where it is bound to an address of the loop-back interface, it reaches other hosts all the
    /// same.
    connects_outward: bool,
    /// It may have groups, and sends from its own address.
    pub(crate) is_link: bool,
    /// Polls that it may fail in before it is cold; 0: it is.
    pub(crate) warm: u32,
    /// It is never cold: a poll is a look at memory, or there is no other way.
    pub(crate) is_always_warm: bool,
}

impl Way {
    pub(crate) fn new(driver: &'static Driver, transport: Box<dyn Transport>) -> Self {
        let is_always_warm = driver.scope < Scope::Network;
        Self {
            transport,
            driver,
            name: driver.name,
            scope: driver.scope,
            connects_outward: connects_outward(driver),
            is_link: driver.is_link,
            warm: WARM,
            is_always_warm,
        }
    }

    /// Whether it reaches this host only.
    pub(crate) fn stays_here(&self) -> bool {
        !self.connects_outward && is_loopback(self.rest())
    }

    /// Where it listens, if that is an address of a network.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.rest().parse().ok()
    }

    /// Its URI without the scheme.
    pub(crate) fn rest(&self) -> &str {
        self.transport.uri().split_once("://").map_or("", |(_, rest)| rest)
    }
}
