//! The addresses of a host that has several: CONNECTs go to one after the other until one answers.

use super::conn::Conn;
use crate::Address;
use crate::engine::api::PathMtu;
use alloc::collections::VecDeque;

/// An address that a connect may ask.
#[derive(Clone, Copy, Debug)]
struct OtherAddress {
    to: Address,
    path: PathMtu,
    was_asked: bool,
}

/// What a connect may ask besides the address of its connection, the next one first. Empty where
/// the host has one address, and once one has answered.
#[derive(Debug, Default)]
pub(crate) struct OtherAddresses {
    left: VecDeque<OtherAddress>,
    /// The address of the connection has been asked.
    present_was_asked: bool,
}

impl OtherAddresses {
    /// Adds an address behind the others.
    pub(super) fn add(&mut self, conn: &Conn, to: Address, path: PathMtu) {
        if conn.to != to && self.left.iter().all(|other| other.to != to) {
            self.left.push_back(OtherAddress { to, path, was_asked: false });
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.left.len()).unwrap_or(u32::MAX)
    }

    /// Whether this one was asked before that of the connection, and may answer.
    pub(super) fn may_answer(&self, from: &Address) -> bool {
        self.left.iter().any(|other| other.was_asked && other.to == *from)
    }

    /// A CONNECT is about to be sent: to the next address if this one has had its turn.
    pub(super) fn take_turn(&mut self, conn: &mut Conn) {
        if core::mem::replace(&mut self.present_was_asked, true) && !self.left.is_empty() {
            let present = OtherAddress { to: conn.to, path: conn.path(), was_asked: true };
            self.left.push_back(present);
            self.go_on(conn);
            self.present_was_asked = true;
        }
    }

    /// This address has answered: the connection stays with it.
    pub(super) fn settle(&mut self, conn: &mut Conn, from: &Address) {
        if let Some(other) = self.left.iter().find(|other| other.to == *from) {
            conn.to = other.to;
            conn.set_path(other.path);
        }
        self.left = VecDeque::new();
    }

    /// This address is not asked any more. Returns what is left: whether the address of the
    /// connection is a new one; `None`: nothing.
    pub(super) fn leave(&mut self, conn: &mut Conn, to: &Address) -> Option<bool> {
        if conn.to == *to {
            return self.go_on(conn).then_some(true);
        }
        self.left.retain(|other| other.to != *to);
        Some(false)
    }

    /// Has the connection ask the next address. False: there is none.
    fn go_on(&mut self, conn: &mut Conn) -> bool {
        let Some(next) = self.left.pop_front() else { return false };
        conn.to = next.to;
        conn.set_path(next.path);
        self.present_was_asked = false;
        true
    }
}
