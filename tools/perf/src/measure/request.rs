//! From what is asked for to a plan.

use super::c_library;
use super::plan::Plan;
use super::virtual_time;
use crate::device::{
    Device, VIRTUAL, VIRTUAL_IS_LOCAL, library_beside, nearest, on_loopback, scheme, transport, with_keys,
};
use crate::effort::Effort;
use crate::peers::PeerSelection;
use cci_report::UserError;
use cci_report::names::{Abi, Operation, ProbeKind};
use cci_report::session::Session;
use std::path::PathBuf;

/// The bare operation that a measurement is to be compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeChoice {
    /// The one that does the same as the measurement.
    #[default]
    Natural,
    /// This one.
    This(ProbeKind),
    /// None.
    Without,
}

/// What is asked for. Whatever is absent follows from the rest.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is measured; its largest size is found from the sizes.
    pub session: Session,
    /// Sizes, bytes.
    pub sizes: Option<Vec<u64>>,
    /// How long, and how sure.
    pub effort: Effort,
    /// URI of a server that somebody else has started; without it both ends are on this host.
    pub server: Option<String>,
    /// The device.
    pub device: Device,
    /// Only where both ends are on this host.
    pub probe: ProbeChoice,
    /// Through which interface the library is called.
    pub abi: Abi,
    /// The shared library for [`Abi::C`]; the one beside this program when absent.
    pub library: Option<PathBuf>,
}

impl Request {
    /// The plan.
    ///
    /// # Errors
    ///
    /// The parts do not fit together, or there are no devices.
    pub fn plan(self) -> Result<Plan, UserError> {
        let Self { mut session, sizes, effort, server, device, probe, abi, library } = self;
        let sizes = sizes.unwrap_or_else(|| Plan::natural_sizes(&session));
        session.largest = sizes.iter().copied().max().unwrap_or(0);
        fits(&session, &sizes, abi)?;
        let asked = device.transport.clone().or_else(|| server.as_deref().and_then(scheme));
        let transport = transport(asked.as_deref())?;
        let is_local = server.is_none();
        let keys = match abi {
            Abi::Rust if is_local => on_loopback(&transport.name, with_keys(&transport.arguments, &device.keys)),
            Abi::Rust => with_keys(&transport.arguments, &device.keys),
            // The library reads those of the configuration itself.
            Abi::C => device.keys,
        };
        let kind = match probe {
            _ if !is_local => None,
            ProbeChoice::Natural => {
                let keys = with_keys(&transport.arguments, &keys);
                Plan::natural_probe(&session, nearest(&transport.name, &keys))
            }
            ProbeChoice::This(kind) => Some(kind),
            ProbeChoice::Without => None,
        };
        let plan = Plan {
            session,
            sizes,
            effort,
            probe: kind,
            // Also where the device of virtual networks is the default one.
            transport: Some(transport.name).filter(|name| name == VIRTUAL).or(device.transport),
            keys,
            abi,
            library: library.or_else(library_beside),
            peers: PeerSelection::default(),
        };
        if !plan.is_virtual() {
            return Ok(plan);
        }
        if !is_local {
            return Err(UserError::new(VIRTUAL_IS_LOCAL));
        }
        match plan.not_virtual(matches!(probe, ProbeChoice::This(_))) {
            Some(why) => Err(UserError::new(why)),
            None => Ok(virtual_time::adapt(plan)),
        }
    }
}

/// Whether the parts of a session fit together, and to its sizes and interface.
fn fits(session: &Session, sizes: &[u64], abi: Abi) -> Result<(), UserError> {
    if let Some(why) = session.contradiction() {
        return Err(UserError::new(why));
    }
    if session.is_rma() && sizes.contains(&0) {
        return Err(UserError::new("an RMA moves at least one byte: leave size 0 out"));
    }
    if abi == Abi::C {
        if session.operation != Operation::Send {
            return Err(UserError::new(c_library::SENDS_ONLY));
        }
        c_library::refuse_one_thread(session.threads)?;
    }
    Ok(())
}
