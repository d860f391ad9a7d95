//! Registered memory: what a handle is, and which registration it names.
//!
//! A handle's first word is index and generation, mixed with a key of the endpoint. Its second word
//! is a secret. Neither contains an address. A generation is odd while its registration is alive.

use cci_mem::memory::Memory;
use cci_mem::random::random;
use cci_proto::{RegisterError, Registration, Rights, RmaHandle};
use std::collections::{HashMap, VecDeque};
use subtle::ConstantTimeEq;

/// Which connections a registration serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serves {
    All,
    /// The one with this name, which the transport gives.
    One(u64),
    /// The one that it served has ended.
    Nobody,
}

/// A registration, with what the transport stores beside it.
pub struct Registered<T> {
    generation: u32,
    secret: u64,
    rights: Rights,
    serves: Serves,
    memory: Option<Memory>,
    /// The first word of the handle by which it was adopted, if it was.
    adopted: Option<u64>,
    /// The transport's own.
    pub state: T,
}

impl<T> Registered<T> {
    /// What peers may do.
    #[inline]
    #[must_use]
    pub fn rights(&self) -> Rights {
        self.rights
    }

    /// Whether operations of the connection with this name may use it.
    #[inline]
    #[must_use]
    pub fn serves(&self, name: u64) -> bool {
        self.serves == Serves::All || self.serves == Serves::One(name)
    }

    /// The memory, for an operation of the connection with this name; `None`: it is deregistered,
    /// or serves others only.
    #[inline]
    #[must_use]
    pub fn memory_for(&self, name: u64) -> Option<&Memory> {
        self.memory().filter(|_| self.serves(name))
    }

    /// Whether the connection that it was for has ended.
    #[inline]
    #[must_use]
    pub fn is_orphaned(&self) -> bool {
        self.serves == Serves::Nobody
    }

    /// The memory, unless it is deregistered.
    #[inline]
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }
}

/// Random words that no handle has had: the system is asked for several at a time, because its
/// answer takes longer than all else of a registration.
#[derive(Default)]
struct Secrets {
    words: [u64; 32],
    left: usize,
}

impl Secrets {
    /// `None`: the system has no random numbers.
    fn draw(&mut self) -> Option<u64> {
        if self.left == 0 {
            self.words = random().ok()?;
            self.left = self.words.len();
        }
        self.left -= 1;
        // Not kept: it is in the registration alone.
        Some(std::mem::take(&mut self.words[self.left]))
    }
}

/// The registrations of an endpoint.
pub struct RegistrationTable<T> {
    key: u64,
    entries: Vec<Registered<T>>,
    /// First in, first out, so that a stale handle is refused for as long as possible.
    free: VecDeque<u32>,
    /// How many serve one connection.
    private: usize,
    secrets: Secrets,
    /// Registrations that go by a handle of another table: by its first word, the second one.
    adopted: HashMap<u64, (u64, Registration)>,
}

impl<T> RegistrationTable<T> {
    /// Empty; `key` is the endpoint's own and random.
    #[must_use]
    pub fn new(key: u64) -> Self {
        Self {
            key,
            entries: Vec::new(),
            free: VecDeque::new(),
            private: 0,
            secrets: Secrets::default(),
            adopted: HashMap::new(),
        }
    }

    /// The index of the next registration.
    #[must_use]
    pub fn next_index(&self) -> usize {
        self.free.front().map_or(self.entries.len(), |index| *index as usize)
    }

    /// Registers memory, for operations of all connections, or of `only` the one with this name. A
    /// name is the transport's; no two connections have the same at a time.
    ///
    /// # Errors
    ///
    /// An empty range, one around the end of the address space, or no memory or random number is
    /// available.
    pub fn register(
        &mut self,
        memory: Memory,
        rights: Rights,
        only: Option<u64>,
        state: T,
    ) -> Result<(Registration, RmaHandle), RegisterError> {
        if memory.is_empty() {
            return Err(RegisterError::Null);
        }
        let len = memory.len();
        if (memory.start() as u64).checked_add(len).is_none() {
            return Err(RegisterError::WrapsAround);
        }
        let secret = self.secrets.draw().ok_or(RegisterError::NoMemory)?;
        let serves = only.map_or(Serves::All, Serves::One);
        let mut registered =
            Registered { generation: 1, secret, rights, serves, memory: Some(memory), adopted: None, state };
        let index = match self.free.pop_front() {
            Some(index) => {
                let entry = &mut self.entries[index as usize];
                registered.generation = entry.generation.wrapping_add(1);
                *entry = registered;
                index
            }
            None => {
                let index = u32::try_from(self.entries.len()).map_err(|_| RegisterError::NoMemory)?;
                self.entries.try_reserve(1).map_err(|_| RegisterError::NoMemory)?;
                self.entries.push(registered);
                index
            }
        };
        let number = Registration { index, generation: self.entries[index as usize].generation };
        self.private += usize::from(only.is_some());
        Ok((number, RmaHandle::from_words([number.mixed(self.key), secret, len, 0])))
    }

    /// Registers memory, for operations of all connections, by a handle that another table has
    /// given. This table's own handle names it too.
    ///
    /// # Errors
    ///
    /// As [`RegistrationTable::register`]; or another registration has the handle.
    pub fn adopt(
        &mut self,
        handle: &RmaHandle,
        memory: Memory,
        rights: Rights,
        state: T,
    ) -> Result<Registration, RegisterError> {
        let [first, secret, ..] = handle.words();
        if self.adopted.contains_key(&first) || self.adopted.try_reserve(1).is_err() {
            return Err(RegisterError::NoMemory);
        }
        let (number, _) = self.register(memory, rights, None, state)?;
        self.adopted.insert(first, (secret, number));
        self.entries[number.index as usize].adopted = Some(first);
        Ok(number)
    }

    /// The registration that these words of a handle ([`RmaHandle::name`]) name, unless it is
    /// deregistered.
    #[inline]
    #[must_use]
    pub fn find(&self, words: [u64; 2]) -> Option<(Registration, &Registered<T>)> {
        if let Some(found) = self.find_own(words) {
            return Some(found);
        }
        if self.adopted.is_empty() { None } else { self.find_adopted(words) }
    }

    #[cold]
    #[inline(never)]
    fn find_adopted(&self, words: [u64; 2]) -> Option<(Registration, &Registered<T>)> {
        let (secret, number) = self.adopted.get(&words[0])?;
        let entry = self.get(*number)?;
        bool::from(words[1].ct_eq(secret)).then_some((*number, entry))
    }

    #[inline(always)]
    fn find_own(&self, words: [u64; 2]) -> Option<(Registration, &Registered<T>)> {
        let Registration { index, .. } = Registration::unmixed(self.key, words[0]);
        let entry = self.entries.get(index as usize)?;
        let number = Registration { index, generation: entry.generation };
        // Compares both words whole, so that the time does not tell how much of a guess was right.
        let right = words[0].ct_eq(&number.mixed(self.key)) & words[1].ct_eq(&entry.secret);
        (bool::from(right) && entry.memory.is_some()).then_some((number, entry))
    }

    /// A registration found before, if it still lives.
    #[inline]
    #[must_use]
    pub fn get(&self, number: Registration) -> Option<&Registered<T>> {
        let entry = self.entries.get(number.index as usize)?;
        (entry.generation == number.generation && entry.memory.is_some()).then_some(entry)
    }

    /// As [`RegistrationTable::get`].
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, number: Registration) -> Option<&mut Registered<T>> {
        let entry = self.entries.get_mut(number.index as usize)?;
        (entry.generation == number.generation && entry.memory.is_some()).then_some(entry)
    }

    /// Ends a registration found before. Its index is used again after all others that are free.
    /// Returns the memory, for a last look.
    pub fn remove(&mut self, number: Registration) -> Option<Memory> {
        let memory = self.get_mut(number)?.memory.take()?;
        let entry = &mut self.entries[number.index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        self.private -= usize::from(matches!(entry.serves, Serves::One(_)));
        if let Some(first) = entry.adopted.take() {
            self.adopted.remove(&first);
        }
        self.free.push_back(number.index);
        Some(memory)
    }

    /// Ends the registration that a handle names, as [`RegistrationTable::remove`] does. Returns
    /// its rights too.
    ///
    /// # Errors
    ///
    /// No such registration.
    pub fn deregister(&mut self, handle: &RmaHandle) -> Result<(Rights, Memory), RegisterError> {
        let (number, entry) = self.find(handle.name()).ok_or(RegisterError::UnknownHandle)?;
        let rights = entry.rights;
        self.remove(number).map(|memory| (rights, memory)).ok_or(RegisterError::UnknownHandle)
    }

    /// Takes the registrations for the connection with this name, which has ended, from everybody,
    /// and returns them. They live until they are deregistered, because the memory is the program's
    /// to keep or free.
    pub fn orphan(&mut self, name: u64) -> Vec<Registration> {
        if self.private == 0 {
            return Vec::new();
        }
        let is_for = |entry: &Registered<T>| entry.memory.is_some() && entry.serves == Serves::One(name);
        let orphans: Vec<_> = (0..).zip(&mut self.entries).filter(|(_, entry)| is_for(entry)).collect();
        self.private -= orphans.len();
        let orphans = orphans.into_iter().map(|(index, entry)| {
            entry.serves = Serves::Nobody;
            Registration { index, generation: entry.generation }
        });
        orphans.collect()
    }

    /// The registrations that live.
    pub fn iter(&self) -> impl Iterator<Item = (Registration, &Registered<T>)> {
        let living = (0..).zip(&self.entries).filter(|(_, entry)| entry.memory.is_some());
        living.map(|(index, entry)| (Registration { index, generation: entry.generation }, entry))
    }

    /// Ends all registrations, for the end of the endpoint.
    pub fn clear(&mut self) {
        for entry in &mut self.entries {
            (entry.memory, entry.adopted) = (None, None);
        }
        self.adopted.clear();
        self.private = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci_mem::arena::SharedMemory;

    #[test]
    fn no_two_registrations_have_one_secret() {
        let memory = SharedMemory::new(4096).expect("memory");
        let mut table = RegistrationTable::new(7);
        let mut secrets = std::collections::HashSet::new();
        for _ in 0..200 {
            let (number, handle) = table.register(memory.memory(), Rights::READ, None, ()).expect("registered");
            let secret = handle.words()[1];
            assert!(secret != 0 && secrets.insert(secret), "{secret:#x}");
            table.remove(number);
        }
    }

    #[test]
    fn a_stale_or_invented_handle_names_nothing() {
        let memory = SharedMemory::new(4096).expect("memory");
        let mut table = RegistrationTable::new(7);
        let words = |handle: RmaHandle| [handle.words()[0], handle.words()[1]];
        let (number, handle) = table.register(memory.memory(), Rights::READ, None, 5).expect("registered");
        let found = table.find(words(handle)).expect("it is there");
        assert_eq!((found.0, found.1.rights(), found.1.state), (number, Rights::READ, 5));
        for flipped in [[1, 0], [0, 1], [1 << 63, 0], [0, 1 << 63]] {
            let [first, second] = words(handle);
            assert!(table.find([first ^ flipped[0], second ^ flipped[1]]).is_none(), "{flipped:?}");
        }
        assert!(table.remove(number).is_some());
        assert!(table.find(words(handle)).is_none() && table.get(number).is_none() && table.remove(number).is_none());
        let (again, successor) = table.register(memory.memory(), Rights::NONE, None, 6).expect("registered");
        assert_eq!((again.index, again.generation), (number.index, number.generation.wrapping_add(2)));
        assert_ne!(words(successor)[0], words(handle)[0]);
        assert!(table.find(words(handle)).is_none() && table.get(number).is_none(), "its successor is another one");
    }

    #[test]
    fn an_adopted_handle_names_the_memory_until_its_registration_ends() {
        let memory = SharedMemory::new(4096).expect("memory");
        let (mut giver, mut table) = (RegistrationTable::new(7), RegistrationTable::new(8));
        let words = |handle: RmaHandle| [handle.words()[0], handle.words()[1]];
        let (_, own) = table.register(memory.memory(), Rights::NONE, None, 1).expect("registered");
        let (_, handle) = giver.register(memory.memory(), Rights::NONE, None, 2).expect("registered");
        assert!(table.find(words(handle)).is_none());
        let number = table.adopt(&handle, memory.memory(), Rights::READ, 3).expect("adopted");
        let found = table.find(words(handle)).expect("it is there");
        assert_eq!((found.0, found.1.rights(), found.1.state), (number, Rights::READ, 3));
        assert_eq!(table.find(words(own)).expect("it is there").1.state, 1);
        assert!(table.adopt(&handle, memory.memory(), Rights::READ, 4).is_err(), "once");
        for flipped in [[1, 0], [0, 1], [1 << 63, 0], [0, 1 << 63]] {
            let [first, secret] = words(handle);
            assert!(table.find([first ^ flipped[0], secret ^ flipped[1]]).is_none(), "{flipped:?}");
        }
        assert!(table.remove(number).is_some());
        assert!(table.find(words(handle)).is_none() && table.adopted.is_empty());
        let (_, successor) = table.register(memory.memory(), Rights::NONE, None, 5).expect("registered");
        assert!(table.remove(table.find(words(successor)).expect("it is there").0).is_some());
        let again = table.adopt(&handle, memory.memory(), Rights::READ, 6).expect("adopted again");
        assert_eq!(table.find(words(handle)).map(|(number, _)| number), Some(again));
        table.clear();
        assert!(table.find(words(handle)).is_none());
    }

    #[test]
    fn an_index_is_used_again_after_all_others_that_are_free() {
        let memory = SharedMemory::new(4096).expect("memory");
        let mut table = RegistrationTable::new(7);
        let register = |table: &mut RegistrationTable<()>| {
            assert_eq!(
                table.next_index(),
                table.register(memory.memory(), Rights::NONE, None, ()).expect("one").0.index as usize
            );
        };
        (0..3).for_each(|_| register(&mut table));
        let numbers: Vec<_> = table.iter().map(|(number, _)| number).collect();
        for at in [1, 0, 2] {
            table.remove(numbers[at]);
        }
        assert!(table.iter().next().is_none());
        for index in [1, 0, 2, 3] {
            assert_eq!(table.next_index(), index);
            register(&mut table);
        }
    }

    #[test]
    fn a_private_registration_serves_one_name_until_that_ends() {
        let memory = SharedMemory::new(4096).expect("memory");
        let mut table = RegistrationTable::new(7);
        let mut register = |only| table.register(memory.memory(), Rights::READ, only, ()).expect("registered").0;
        let [all, first, second] = [None, Some(1), Some(2)].map(&mut register);
        let serves = |table: &RegistrationTable<()>, number| {
            [1, 2].map(|name| table.get(number).expect("it lives").serves(name))
        };
        assert_eq!(
            [all, first, second].map(|number| serves(&table, number)),
            [[true; 2], [true, false], [false, true]]
        );
        assert_eq!(table.orphan(1), [first]);
        assert!(table.orphan(1).is_empty() && table.get(first).is_some_and(Registered::is_orphaned));
        assert_eq!([all, first, second].map(|number| serves(&table, number)), [[true; 2], [false; 2], [false, true]]);
        assert!(table.remove(first).is_some() && table.remove(second).is_some());
        assert!(table.orphan(2).is_empty() && table.private == 0);
    }
}
