//! Puts, gets and swaps.

use crate::answer::Answer;
use crate::layout::CProcess;
use crate::registry::registry;
use cci_portals::{Error, Handle, Interface, Target};
use std::ffi::c_uint;

/// Where an operation goes, as calls state it.
pub(crate) struct To {
    pub(crate) process: CProcess,
    pub(crate) portal: u32,
    pub(crate) access: u32,
    pub(crate) bits: u64,
    pub(crate) offset: u64,
    pub(crate) header: u64,
}

impl To {
    fn target(self) -> Target {
        let Self { process, portal, access, bits, offset, header } = self;
        Target { process: process.into(), portal, access, bits, offset, header }
    }
}

fn run(memory: u32, act: impl FnOnce(&Interface) -> Result<(), Error>) -> Answer {
    let registry = registry()?;
    let network = registry.open(memory, Error::Memory)?;
    let done = act(&network);
    registry.run_handlers(&network);
    Ok(done?)
}

pub(crate) fn put(memory: u32, region: Option<(u64, u64)>, ack: c_uint, to: To) -> Answer {
    // PTL_ACK_REQ is 0.
    run(memory, |network| network.put(Handle::from_bits(memory), region, ack == 0, &to.target()))
}

pub(crate) fn get(memory: u32, region: Option<(u64, u64)>, to: To) -> Answer {
    run(memory, |network| network.get(Handle::from_bits(memory), region, &to.target()))
}

pub(crate) fn get_put(memory: u32, source: u32, to: To) -> Answer {
    run(memory, |network| network.get_put(Handle::from_bits(memory), Handle::from_bits(source), &to.target()))
}
