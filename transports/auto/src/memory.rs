//! Registrations that are valid over all ways (`docs/design/auto.md`, Registrations).

use crate::auto::Auto;
use cci_mem::memory::Memory;
use cci_proto::{RegisterError, Rights, RmaHandle};
use cci_transport::{Connection, Core, Scope};

impl Auto {
    /// The way that gives handles: one within this host, whose peers look them up in its memory, so
    /// that it can adopt none; or else the first.
    fn giver(&self) -> u8 {
        self.numbers().find(|number| self.ways[usize::from(*number)].scope < Scope::Network).unwrap_or(0)
    }

    pub(crate) fn register_everywhere(
        &mut self,
        core: &mut Core,
        memory: Memory,
        rights: Rights,
    ) -> Result<RmaHandle, RegisterError> {
        let giver = self.giver();
        let given = self.within(core, giver, |transport, core| transport.register(core, memory.clone(), rights, None));
        let handle = given.unwrap_or(Err(RegisterError::NoMemory))?;
        for number in self.numbers().filter(|number| *number != giver) {
            let adopted =
                self.within(core, number, |transport, core| transport.adopt(core, &handle, memory.clone(), rights));
            if let Some(Err(error)) = adopted {
                // Nobody knows the handle yet.
                let _ = self.end_everywhere(core, &handle, true);
                return Err(error);
            }
        }
        Ok(handle)
    }

    pub(crate) fn register_for(
        &mut self,
        core: &mut Core,
        memory: Memory,
        rights: Rights,
        only: &'static Connection,
    ) -> Result<RmaHandle, RegisterError> {
        let made = self.call_for(core, only, |transport, core| transport.register(core, memory, rights, Some(only)));
        made.unwrap_or(Err(RegisterError::NoMemory))
    }

    /// Ends a registration in every way that has it. Busy: one is, and the others have ended it.
    pub(crate) fn end_everywhere(
        &mut self,
        core: &mut Core,
        handle: &RmaHandle,
        waits: bool,
    ) -> Result<(), RegisterError> {
        let mut ended = Err(RegisterError::UnknownHandle);
        for number in self.numbers() {
            let own = self.within(core, number, |transport, core| {
                if waits { transport.deregister(core, handle) } else { transport.retire(core, handle) }
            });
            ended = match (own, ended) {
                (Some(Err(RegisterError::Busy)), _) | (_, Err(RegisterError::Busy)) => Err(RegisterError::Busy),
                (Some(Ok(())), _) | (_, Ok(())) => Ok(()),
                (_, Err(error)) => Err(error),
            };
        }
        ended
    }
}
