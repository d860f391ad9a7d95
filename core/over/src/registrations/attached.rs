//! Registrations as the network knows them: attached, and released.

use super::{Registered, Registrations, second};
use crate::network::Network;
use cci_mem::memory::Memory;
use cci_proto::{RegisterError, Rights, RmaHandle};
use cci_transport::random;

impl<B> Registrations<B> {
    /// Registers memory, for all connections or for the one with this number and tag.
    pub(crate) fn register<N: Network<Bound = B>>(
        &mut self,
        net: &mut N,
        memory: Memory,
        rights: Rights,
        only: Option<(u32, u64)>,
    ) -> Result<RmaHandle, RegisterError> {
        if memory.is_empty() {
            return Err(RegisterError::Null);
        }
        if (memory.start() as u64).checked_add(memory.len()).is_none() {
            return Err(RegisterError::WrapsAround);
        }
        let [first] = random().map_err(|_| RegisterError::NoMemory)?;
        let bits = first ^ only.map_or(0, |(_, tag)| tag);
        let bound = net.attach(bits, &memory, rights).ok_or(RegisterError::NoMemory)?;
        let handle = RmaHandle::from_words([first, second(first, only.is_some()), memory.len(), 0]);
        let only = only.map(|(number, _)| number);
        self.0.insert(first, Registered { memory, rights, only, is_orphaned: false, bound: Some(bound) });
        Ok(handle)
    }

    /// Ends a registration. Busy: a peer still reads or writes.
    pub(crate) fn retire<N: Network<Bound = B>>(
        &mut self,
        net: &mut N,
        handle: &RmaHandle,
    ) -> Result<(), RegisterError> {
        self.find(handle).ok_or(RegisterError::UnknownHandle)?;
        let first = handle.name()[0];
        let Some(registered) = self.0.get_mut(&first) else { return Err(RegisterError::UnknownHandle) };
        if let Some(bound) = registered.bound.take() {
            registered.bound = net.release(bound).err();
        }
        if registered.bound.is_some() {
            return Err(RegisterError::Busy);
        }
        self.0.remove(&first);
        Ok(())
    }

    /// Takes the registrations for a connection that has ended from its peer.
    pub(crate) fn orphan<N: Network<Bound = B>>(&mut self, net: &mut N, number: u32) {
        for registered in self.0.values_mut().filter(|registered| registered.only == Some(number)) {
            registered.is_orphaned = true;
            if let Some(bound) = registered.bound.take() {
                registered.bound = net.release(bound).err();
            }
        }
    }
}
