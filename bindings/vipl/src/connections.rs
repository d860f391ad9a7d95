//! Connecting.

use crate::answer::{Answer, NOT_DONE, PARAMETER, RESOURCE, code};
use crate::handles::{Handle, Kind, make, of_nic};
use crate::layout::{CViAttributes, NetAddress, NetRoom};
use crate::table::{self, nic};
use crate::vis::{limit, vi};
use cci_mem::arguments::Out;
use cci_mem::mutex::lock;
use cci_via::Error;
use std::ffi::c_ulong;

pub(crate) fn wait(
    handle: Handle,
    local: NetAddress<'_>,
    timeout: c_ulong,
    remote: NetRoom<'_>,
    attributes: Out<'_, CViAttributes>,
    connection: Out<'_, Handle>,
) -> Answer {
    let nic = nic(handle)?;
    let connection = connection.variable(PARAMETER)?;
    let local = local.read().map_err(code)?;
    let asking = nic.core.listen(&local, limit(timeout)).map_err(|why| nic.refused(why))?;
    let address = asking.address();
    remote.write(address.host, &address.discriminator);
    attributes.offer(CViAttributes::of(asking.attributes(), None));
    let mut table = lock(&nic.asking);
    table.0 = table.0.checked_add(1).ok_or(RESOURCE)?;
    let number = table.0;
    table.1.insert(number, asking);
    connection.put(make(Kind::Connection, nic.number, number));
    Ok(())
}

pub(crate) fn accept(connection: Handle, handle: Handle) -> Answer {
    let (nic, number) = table::open(Kind::Connection, connection)?;
    let vi = of_nic(Kind::Vi, nic.number, handle).ok_or(PARAMETER)?;
    // Nobody else answers meanwhile.
    let mut asking = lock(&nic.asking).1.remove(&number).ok_or(PARAMETER)?;
    let accepted = nic.core.accept(&mut asking, vi);
    // A client that is gone keeps no stream here.
    if accepted.as_ref().is_err_and(|why| *why != Error::Timeout) {
        // It may be tried again with another VI, or rejected.
        lock(&nic.asking).1.insert(number, asking);
    }
    accepted.map_err(|why| nic.refused(why))
}

pub(crate) fn reject(connection: Handle) -> Answer {
    let (nic, number) = table::open(Kind::Connection, connection)?;
    let asking = lock(&nic.asking).1.remove(&number).ok_or(PARAMETER)?;
    nic.core.reject(asking);
    Ok(())
}

pub(crate) fn request(
    handle: Handle,
    local: NetAddress<'_>,
    remote: NetAddress<'_>,
    timeout: c_ulong,
    attributes: Out<'_, CViAttributes>,
) -> Answer {
    let (nic, number) = vi(handle)?;
    let (local, remote) = (local.read().map_err(code)?, remote.read().map_err(code)?);
    let peer = nic.core.request(number, &local, &remote, limit(timeout)).map_err(|why| nic.refused(why))?;
    attributes.offer(CViAttributes::of(&peer, None));
    Ok(())
}

pub(crate) fn peer_request(handle: Handle, local: NetAddress<'_>, remote: NetAddress<'_>, timeout: c_ulong) -> Answer {
    let (nic, number) = vi(handle)?;
    let (local, remote) = (local.read().map_err(code)?, remote.read().map_err(code)?);
    nic.core.peer_request(number, &local, &remote, limit(timeout)).map_err(|why| nic.refused(why))
}

pub(crate) fn peer_done(handle: Handle, attributes: Out<'_, CViAttributes>) -> Answer {
    let (nic, number) = vi(handle)?;
    let peer = nic.core.peer_done(number).map_err(|why| nic.refused(why))?.ok_or(NOT_DONE)?;
    attributes.offer(CViAttributes::of(&peer, None));
    Ok(())
}

pub(crate) fn peer_wait(handle: Handle, attributes: Out<'_, CViAttributes>) -> Answer {
    let (nic, number) = vi(handle)?;
    let peer = nic.core.peer_wait(number).map_err(|why| nic.refused(why))?;
    attributes.offer(CViAttributes::of(&peer, None));
    Ok(())
}
