//! The translation table of an endpoint: 4 bytes for each entry, and a record for each mapped one.

use crate::names::Name;
use crate::refusal::{Answer, Refusal};
use cci_am::Peer;
use std::collections::HashMap;

pub(crate) const MOST: usize = 1 << 20;
const AT_FIRST: usize = 256;

/// A mapped entry.
pub(crate) struct Record {
    /// None: nobody has the name.
    pub(crate) peer: Option<Peer>,
    pub(crate) name: Name,
    pub(crate) tag: u64,
    pub(crate) index: usize,
}

pub(crate) struct Translations {
    /// The place of the record, plus 1; 0: free.
    entries: Vec<u32>,
    records: Vec<Option<Record>>,
    free: Vec<u32>,
    by_peer: HashMap<Peer, u32>,
}

const OUTSIDE: Refusal = Refusal::BadArg("no such index in the translation table; see AM_GetNumTranslations");

impl Translations {
    pub(crate) fn new() -> Self {
        Self { entries: vec![0; AT_FIRST], records: Vec::new(), free: Vec::new(), by_peer: HashMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn resize(&mut self, len: usize) -> Answer {
        if len == 0 || len > MOST {
            return Err(Refusal::BadArg("a translation table has 1 to 2^20 entries"));
        }
        if self.entries.iter().skip(len).any(|entry| *entry != 0) {
            return Err(Refusal::Resource("an entry that would go is mapped; unmap it first"));
        }
        self.entries.resize(len, 0);
        self.entries.shrink_to_fit();
        Ok(())
    }

    /// The entry: a record, or free.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Result<Option<&Record>, Refusal> {
        let entry = *self.entries.get(index).ok_or(OUTSIDE)?;
        Ok((entry as usize).checked_sub(1).and_then(|at| self.records[at].as_ref()))
    }

    /// A mapped entry.
    pub(crate) fn mapped(&self, index: usize) -> Result<&Record, Refusal> {
        self.get(index)?.ok_or(Refusal::BadArg("the entry is free; map it first"))
    }

    pub(crate) fn first_free(&self) -> Option<usize> {
        self.entries.iter().position(|entry| *entry == 0)
    }

    pub(crate) fn enter(&mut self, record: Record) {
        let at = self.free.pop().unwrap_or_else(|| {
            self.records.push(None);
            (self.records.len() - 1) as u32
        });
        self.entries[record.index] = at + 1;
        if let Some(peer) = record.peer {
            self.by_peer.insert(peer, at);
        }
        self.records[at as usize] = Some(record);
    }

    pub(crate) fn remove(&mut self, index: usize) -> Result<Record, Refusal> {
        self.mapped(index)?;
        let at = std::mem::take(&mut self.entries[index]) - 1;
        self.free.push(at);
        let record = self.records[at as usize].take().ok_or(OUTSIDE)?;
        if let Some(peer) = record.peer {
            self.by_peer.remove(&peer);
        }
        Ok(record)
    }

    pub(crate) fn of_peer(&self, peer: Peer) -> Option<&Record> {
        self.records[*self.by_peer.get(&peer)? as usize].as_ref()
    }

    /// The lowest index at which a name is mapped.
    pub(crate) fn index_of(&self, name: &Name) -> Option<usize> {
        self.records.iter().flatten().filter(|record| record.name.uri() == name.uri()).map(|record| record.index).min()
    }
}
