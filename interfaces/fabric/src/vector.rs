//! Address vectors.

use crate::code::Code;
use crate::domain::{Domain, Open};
use crate::record::{NAME, RECORD, Record};
use cci_mem::mutex::lock;
use cci_mem::sync::{AtomicU64, Ordering};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};

/// The numbers by which the program names peers. Serves several endpoints, and any thread; clones
/// are the same vector. A number whose record was removed is used again after all others that are
/// free.
///
/// # Example
///
/// ```
/// use cci_fabric::{AddressVector, Code, Domain, Record};
///
/// let vector = AddressVector::open(&Domain::open()?);
/// let record = Record::of_uri("sm://1/2", 7).ok_or(Code::Invalid)?.to_bytes();
/// assert_eq!(vector.insert(&record)?, 0);
/// assert_eq!(vector.lookup(0), Some(record));
/// vector.remove(0)?;
/// assert_eq!(vector.remove(0), Err(Code::Invalid));
/// # Ok::<(), Code>(())
/// ```
#[derive(Clone)]
pub struct AddressVector(Arc<Vector>);

struct Vector {
    table: Mutex<Table>,
    /// Changes with the table: what endpoints remember of it is wrong then.
    epoch: AtomicU64,
    _open: Open,
}

#[derive(Default)]
struct Table {
    records: Vec<Option<Record>>,
    by_name: HashMap<[u8; NAME], u64>,
    free: VecDeque<u64>,
}

impl fmt::Debug for AddressVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AddressVector({} addresses)", lock(&self.0.table).by_name.len())
    }
}

fn name_of(record: &Record) -> [u8; NAME] {
    let mut name = [0; NAME];
    name.copy_from_slice(&record.to_bytes()[..NAME]);
    name
}

impl AddressVector {
    /// Opens an empty one.
    #[must_use]
    pub fn open(domain: &Domain) -> Self {
        let table = Mutex::new(Table::default());
        Self(Arc::new(Vector { table, epoch: AtomicU64::new(1), _open: domain.count() }))
    }

    /// Enters a record. Its number is the least that was never used, unless one is free.
    ///
    /// # Errors
    ///
    /// [`Code::Invalid`]: these bytes are no record.
    pub fn insert(&self, record: &[u8; RECORD]) -> Result<u64, Code> {
        let record = Record::from_bytes(record).ok_or(Code::Invalid)?;
        let mut table = lock(&self.0.table);
        let number = match table.free.pop_front() {
            Some(number) => number,
            None => {
                table.records.push(None);
                table.records.len() as u64 - 1
            }
        };
        table.records[number as usize] = Some(record);
        table.by_name.entry(name_of(&record)).or_insert(number);
        self.change();
        Ok(number)
    }

    /// Removes a record. Links to its endpoint stay.
    ///
    /// # Errors
    ///
    /// [`Code::Invalid`]: there is none of this number.
    pub fn remove(&self, address: u64) -> Result<(), Code> {
        let mut table = lock(&self.0.table);
        let slot = usize::try_from(address).ok().and_then(|at| table.records.get_mut(at));
        let record = slot.and_then(Option::take).ok_or(Code::Invalid)?;
        if table.by_name.get(&name_of(&record)) == Some(&address) {
            // The same record may have been entered twice.
            let other = table.records.iter().position(|other| other.as_ref().is_some_and(|of| *of == record));
            match other {
                Some(other) => table.by_name.insert(name_of(&record), other as u64),
                None => table.by_name.remove(&name_of(&record)),
            };
        }
        table.free.push_back(address);
        self.change();
        Ok(())
    }

    /// The record of a number.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<[u8; RECORD]> {
        self.record(address).map(Record::to_bytes)
    }

    /// Whether an endpoint has it.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    pub(crate) fn record(&self, address: u64) -> Option<Record> {
        lock(&self.0.table).records.get(usize::try_from(address).ok()?).copied().flatten()
    }

    /// The first number of a record, whatever its fingerprint.
    pub(crate) fn find(&self, record: &Record) -> Option<u64> {
        lock(&self.0.table).by_name.get(&name_of(record)).copied()
    }

    /// Another number after each change.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.0.epoch.load(Ordering::Acquire)
    }

    fn change(&self) {
        self.0.epoch.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ascend_and_come_back_last() -> Result<(), Code> {
        let vector = AddressVector::open(&Domain::open()?);
        let record = |number| Record::of_uri("sm://1/2", number).expect("short");
        for number in 0..4 {
            assert_eq!(vector.insert(&record(number).to_bytes())?, number);
        }
        vector.remove(2)?;
        vector.remove(0)?;
        assert_eq!((vector.find(&record(2)), vector.find(&record(1))), (None, Some(1)));
        assert_eq!((vector.insert(&record(7).to_bytes())?, vector.insert(&record(8).to_bytes())?), (2, 0));
        assert_eq!(vector.insert(&record(9).to_bytes())?, 4);
        Ok(())
    }

    #[test]
    fn a_record_that_was_entered_twice_is_found_until_both_are_removed() -> Result<(), Code> {
        let vector = AddressVector::open(&Domain::open()?);
        let record = Record::of_uri("sm://1/2", 1).expect("short");
        let epoch = vector.epoch();
        let (first, second) = (vector.insert(&record.to_bytes())?, vector.insert(&record.to_bytes())?);
        assert_eq!(vector.find(&record), Some(first));
        vector.remove(first)?;
        assert_eq!(vector.find(&record), Some(second));
        vector.remove(second)?;
        assert_eq!(vector.find(&record), None);
        assert_eq!(vector.epoch(), epoch + 4);
        assert_eq!(vector.insert(&[0; RECORD]), Err(Code::Invalid));
        Ok(())
    }
}
