//! Accesses to memory of peers, by the keys of the program (`docs/design/fabric.md`, Remote
//! memory).

use crate::access::Access;
use crate::bits::INJECT;
use crate::code::Code;
use crate::large::code_of;
use crate::links::Sending;
use crate::operations::Remote;
use crate::partner::{Control, Key, Knowledge};
use crate::requests::{Slot, Stage};
use crate::segments::Segments;
use crate::send::ACCESS;
use crate::state::{NO_ENTRY, OWN, State};
use crate::wire::{Given, HEADER, WRITTEN};
use cci::{Connection, Endpoint, Failure, Notify, RegisterError, Registration, Rights, Rma, RmaError};
use cci_rendezvous::{Header, locate, register};

impl State {
    /// Begins an access.
    pub(crate) fn remote(&mut self, endpoint: &Endpoint, remote: Remote) -> Result<(), Code> {
        if let Some(code) = self.failed {
            return Err(code);
        }
        let Remote { segments, to, pieces, is_write, data, context, flags } = remote;
        let wanted = pieces.iter().try_fold(0_u64, |sum, (_, len, _)| sum.checked_add(*len)).ok_or(Code::Invalid)?;
        if wanted != segments.len() || !segments.are_right() || data.is_some() && !is_write {
            return Err(Code::Invalid);
        }
        let is_injected = is_write && flags & INJECT != 0;
        if is_injected && wanted > crate::INJECT_SIZE as u64 {
            return Err(Code::MessageSize);
        }
        let number = self.partner_at(to)?;
        // The program changes what it has injected as soon as this returns.
        let segments = if is_injected { segments.copied().ok_or(Code::Invalid)? } else { segments };
        self.requests.reserve().ok_or(Code::NoMemory)?;
        if let Some(bound) = &mut self.setup.transmit {
            bound.reserve()?;
        } else if flags & NO_ENTRY == 0 {
            return Err(Code::NoQueue);
        }
        let index = self.requests.next();
        self.accesses = self.accesses.wrapping_add(1);
        let life = self.accesses;
        let access = Access {
            index,
            life,
            to: number,
            is_write,
            targets: pieces,
            segments,
            data,
            registered: Vec::new(),
            wanted,
            begun: 0,
            open: 0,
            failed: None,
            has_asked_again: false,
            is_refused: false,
        };
        if number == OWN {
            let result = self.access_own(&access);
            let slot = Slot { context, flags, tag: 0, data: None, stage: Stage::Taken { to: OWN } };
            match result {
                Ok(()) => self.complete_slot(&slot, access.what()),
                Err(code) => self.fail_slot(&slot, access.what(), code),
            }
            if let (Ok(()), Some(data)) = (result, data) {
                self.on_written(OWN, wanted, data);
            }
            return Ok(());
        }
        let stage = Stage::Remote(Box::new(access));
        self.requests.insert(Slot { context, flags, tag: 0, data: None, stage });
        self.post(endpoint, number, Control::Access(index, life));
        Ok(())
    }

    fn access(&mut self, index: u32) -> Option<&mut Access> {
        match &mut self.requests.get(index)?.stage {
            Stage::Remote(access) => Some(access),
            _ => None,
        }
    }

    /// An access to memory of this endpoint's own domain.
    fn access_own(&self, access: &Access) -> Result<(), Code> {
        let mut done = 0;
        for (offset, len, key) in &access.targets {
            let region = self.setup.domain.find(*key).ok_or(Code::KeyRejected)?;
            let right = if access.is_write { Rights::WRITE } else { Rights::READ };
            if !region.rights.has(right) {
                return Err(Code::Access);
            }
            let memory = region.memory.part(*offset, *len).ok_or(Code::Invalid)?;
            let (there, here) = (Segments::One(memory), access.segments.part(done, *len));
            let is_done = if access.is_write { here.copy_to(&there, 0, *len) } else { there.copy_to(&here, 0, *len) };
            if !is_done {
                return Err(Code::Invalid);
            }
            done += len;
        }
        Ok(())
    }

    /// Begins operations of an access as far as there is room, or asks for a key first.
    pub(crate) fn begin_access(
        &mut self,
        endpoint: &Endpoint,
        connection: Connection,
        (index, life): (u32, u32),
    ) -> Sending {
        let Some(access) = self.access(index).filter(|access| access.life == life) else { return Sending::Gone };
        if access.begun == access.wanted && access.failed.is_none() {
            return self.follow_access(endpoint, connection, index);
        }
        let to = access.to;
        let keys: Vec<u64> = access.targets.iter().map(|(_, _, key)| *key).collect();
        let Some(partner) = self.partner(to) else { return Sending::Gone };
        for key in keys {
            match partner.keys.get_mut(&key) {
                Some(Knowledge::Known(_)) => {}
                Some(Knowledge::Asked(waiting)) => {
                    waiting.push((index, life));
                    return Sending::Gone;
                }
                None => {
                    partner.keys.insert(key, Knowledge::Asked(vec![(index, life)]));
                    partner.outbox.post(Control::Ask(key));
                    return Sending::Gone;
                }
            }
        }
        match self.try_access(endpoint, connection, index) {
            Ok(sending) => sending,
            Err(code) => {
                self.break_access(endpoint, index, code);
                Sending::Gone
            }
        }
    }

    /// All keys are known.
    fn try_access(&mut self, endpoint: &Endpoint, connection: Connection, index: u32) -> Result<Sending, Code> {
        let Self { requests, partners, .. } = self;
        let Some(Stage::Remote(access)) = requests.get(index).map(|slot| &mut slot.stage) else {
            return Ok(Sending::Gone);
        };
        let Some(Some(partner)) = partners.get_mut(access.to as usize) else { return Err(Code::ConnectionReset) };
        for (offset, len, key) in &access.targets {
            let Some(Knowledge::Known(known)) = partner.keys.get(key) else { return Err(Code::KeyRejected) };
            if !(if access.is_write { known.may_write } else { known.may_read }) {
                return Err(Code::Access);
            }
            if offset.checked_add(*len).is_none_or(|end| end > known.len) {
                return Err(Code::Invalid);
            }
        }
        if access.registered.is_empty() && access.wanted > 0 {
            let memory = access.segments.parts().iter().filter(|part| !part.is_empty()).cloned();
            match register(endpoint, connection, (memory, &mut access.registered), Rights::NONE) {
                Ok(()) => {}
                Err(RegisterError::NoMemory | RegisterError::Disconnected) => return Ok(Sending::Blocked),
                Err(_) => return Err(Code::Invalid),
            }
        }
        while access.begun < access.wanted {
            let local = locate(access.registered.iter().map(Registration::len), access.begun);
            let remote = locate(access.targets.iter().map(|(_, len, _)| *len), access.begun);
            let (Some((own, own_offset, own_left)), Some((at, into, left))) = (local, remote) else {
                return Err(Code::Invalid);
            };
            let (offset, _, key) = access.targets[at];
            let Some(Knowledge::Known(known)) = partner.keys.get(&key) else { return Err(Code::KeyRejected) };
            let len = own_left.min(left).min(access.wanted - access.begun);
            let rma = Rma::new(access.registered[own].handle(), &known.handle, len);
            let rma = rma.local_offset(own_offset).remote_offset(offset + into);
            let notify = Notify::Always(ACCESS | u64::from(index));
            let begun = if access.is_write {
                endpoint.write(connection, &rma, notify)
            } else {
                endpoint.read(connection, &rma, notify)
            };
            match begun {
                Ok(()) => {
                    access.begun += len;
                    access.open += 1;
                }
                // What has begun goes on meanwhile.
                Err(RmaError::NoBuffers) => return Ok(Sending::Blocked),
                Err(RmaError::Disconnected) => return Ok(Sending::Blocked),
                Err(_) => return Err(Code::Other),
            }
        }
        if access.open > 0 {
            return Ok(Sending::Gone);
        }
        // Of no bytes.
        Ok(self.follow_access(endpoint, connection, index))
    }

    /// An operation of CCI has ended.
    pub(crate) fn on_access(&mut self, endpoint: &Endpoint, index: u32, outcome: Result<(), Failure>) {
        let Some(access) = self.access(index).filter(|access| access.open > 0) else { return };
        access.open -= 1;
        match outcome {
            Ok(()) => {}
            Err(Failure::RemoteHandle) => access.is_refused = true,
            Err(why) => drop(access.failed.get_or_insert(code_of(why))),
        }
        if access.open > 0 || access.begun < access.wanted && access.failed.is_none() && !access.is_refused {
            return;
        }
        let (to, life) = (access.to, access.life);
        if let Some(code) = access.failed {
            return self.break_access(endpoint, index, code);
        }
        if !access.is_refused {
            return self.post(endpoint, to, Control::Access(index, life));
        }
        if std::mem::replace(&mut access.has_asked_again, true) {
            return self.break_access(endpoint, index, Code::KeyRejected);
        }
        // The memory of a key is another one now: it is asked for once more.
        (access.is_refused, access.begun) = (false, 0);
        let keys: Vec<u64> = access.targets.iter().map(|(_, _, key)| *key).collect();
        if let Some(partner) = self.partner(to) {
            keys.into_iter().for_each(|key| partner.forget_key(key));
        }
        self.post(endpoint, to, Control::Access(index, life));
    }

    /// The bytes of an access are in place: remote data follow, and it has ended.
    fn follow_access(&mut self, endpoint: &Endpoint, connection: Connection, index: u32) -> Sending {
        let Some(access) = self.access(index) else { return Sending::Gone };
        if access.open > 0 {
            return Sending::Gone;
        }
        let (what, wanted) = (access.what(), access.wanted);
        if let Some(data) = access.data {
            let mut message = [0; HEADER + 8];
            message[..HEADER].copy_from_slice(&Header::new(WRITTEN, 0, 0, data).emit());
            message[HEADER..].copy_from_slice(&wanted.to_le_bytes());
            // A link that is lost reports its end.
            if endpoint.send(connection, &message, Notify::OnFailure(0)).is_err() {
                return Sending::Blocked;
            }
        }
        self.complete(index, what);
        Sending::Gone
    }

    /// Ends an access without success, once nothing of it is under way.
    pub(crate) fn break_access(&mut self, _: &Endpoint, index: u32, code: Code) {
        let Some(access) = self.access(index) else { return };
        access.failed.get_or_insert(code);
        if access.open == 0 {
            let code = access.failed.unwrap_or(code);
            self.end(index, code);
        }
    }

    /// A partner has told what a key is.
    pub(crate) fn on_given(&mut self, endpoint: &Endpoint, number: u32, key: u64, told: Option<Key>) -> Option<()> {
        let is_none = told.is_none();
        let waiting = self.partner(number)?.learn(key, told)?;
        for (index, life) in waiting {
            // Its number is another access's, perhaps.
            if self.access(index).is_none_or(|access| access.to != number || access.life != life) {
                continue;
            }
            if is_none {
                self.break_access(endpoint, index, Code::KeyRejected);
            } else {
                self.post(endpoint, number, Control::Access(index, life));
            }
        }
        Some(())
    }

    /// What a partner is told of a key. The memory is registered here once, for all partners.
    pub(crate) fn give(&mut self, endpoint: &Endpoint, key: u64) -> Option<Given> {
        let region = self.setup.domain.find(key)?;
        let told = |handle| Given {
            life: region.life,
            len: region.memory.len(),
            may_read: region.rights.has(Rights::READ),
            may_write: region.rights.has(Rights::WRITE),
            handle,
        };
        if region.memory.is_empty() {
            // No access is in it, and no handle is needed.
            return cci::RmaHandle::from_bytes(&[0; 32]).map(told);
        }
        if let Some((life, registration)) = self.registered.get(&key)
            && *life == region.life
        {
            return Some(told(*registration.handle()));
        }
        let registration = endpoint.register(region.memory.clone(), region.rights).ok()?;
        let given = told(*registration.handle());
        self.registered.insert(key, (region.life, registration));
        region.use_by(&self.me);
        // It may have been closed meanwhile, and nobody will tell.
        if self.setup.domain.find(key).is_none_or(|again| again.life != region.life) {
            self.registered.remove(&key);
            return None;
        }
        Some(given)
    }

    /// The domain's memory of a key is the program's again.
    pub(crate) fn forget_region(&mut self, key: u64, life: u32) {
        if self.registered.get(&key).is_some_and(|(of, _)| *of == life) {
            self.registered.remove(&key);
        }
    }
}
