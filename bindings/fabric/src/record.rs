//! Addresses in what `fi_getinfo` is asked and answers.

use crate::hints::Hints;
use std::ffi::CStr;
use std::net::{Ipv4Addr, ToSocketAddrs};
use std::time::Duration;

/// Bytes of an address.
pub(crate) const LEN: usize = cci_fabric::RECORD;

/// An address as `fi_getname` gives it.
pub(crate) type Record = [u8; LEN];

/// What `node` and `service` name: this end, or a peer.
#[derive(Default)]
pub(crate) struct Place<'a> {
    pub(crate) node: Option<&'a CStr>,
    pub(crate) service: Option<&'a CStr>,
    pub(crate) is_source: bool,
}

/// The addresses of this end and of a peer. Those of hints count where no name stands for them
/// (fi_getinfo(3)).
///
/// # Errors
///
/// A sentence: a name leads to no address, or an address is none of ours.
pub(crate) fn of(place: &Place<'_>, hints: Option<&Hints>) -> Result<(Option<Record>, Option<Record>), String> {
    let is_named = place.node.is_some() || place.service.is_some();
    if place.is_source && !is_named {
        return Err("FI_SOURCE without a node and a service names no address; pass one of both".into());
    }
    let named = is_named.then(|| resolved(place)).transpose()?;
    let given = |address: Option<&Vec<u8>>| address.map(|bytes| checked(bytes)).transpose();
    let source = if place.is_source { named } else { given(hints.and_then(|hints| hints.source.as_ref()))? };
    let destination = match (place.is_source, named) {
        (false, Some(named)) => Some(named),
        _ => given(hints.and_then(|hints| hints.destination.as_ref()))?,
    };
    Ok((source, destination))
}

fn checked(bytes: &[u8]) -> Result<Record, String> {
    let is_right = cci_fabric::Record::from_bytes(bytes).is_some() || cci_fabric::Record::place_of(bytes).is_some();
    <Record>::try_from(bytes)
        .ok()
        .filter(|_| is_right)
        .ok_or_else(|| format!("an address of {} bytes is no address of cci; pass what fi_getname gave", bytes.len()))
}

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(5);

/// The record of a host and a port: where this end is to listen, or whoever listens there.
fn resolved(place: &Place<'_>) -> Result<Record, String> {
    let text = |name: Option<&CStr>| name.map(|name| name.to_string_lossy().into_owned());
    let (node, service) = (text(place.node), text(place.service));
    let port: u16 = match &service {
        Some(service) => {
            service.parse().map_err(|_| format!("the service is '{service}'; write the number of a port"))?
        }
        None => 0,
    };
    if place.is_source {
        let node = node.unwrap_or_else(|| Ipv4Addr::UNSPECIFIED.to_string());
        let mut found = (node.as_str(), port).to_socket_addrs().map_err(|why| format!("'{node}': {why}"))?;
        let first = found.next().ok_or_else(|| format!("'{node}' has no address"))?;
        return Ok(cci_fabric::Record::of_place(first).to_bytes());
    }
    if port == 0 {
        return Err("a peer has no address without a port; pass a service".into());
    }
    let node = node.unwrap_or_else(|| "localhost".into());
    let refused = |why: String| format!("no endpoint of cci has answered at '{node}:{port}': {why}");
    let domain = crate::job::domain().map_err(|why| refused(why.to_string()))?;
    domain.ask(&node, port, LIMIT).map(cci_fabric::Record::to_bytes).map_err(refused)
}
