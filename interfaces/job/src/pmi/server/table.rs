//! What ranks have put: values of the job, names of services, and what is known on one host alone.

use std::collections::BTreeMap;

/// The most bytes that one rank may have in the tables, keys and [`ENTRY`] included.
pub(super) const MOST_PUT: usize = 16 << 20;

/// What an entry takes besides its key and its value, about.
pub(super) const ENTRY: usize = 128;

/// Why a rank is refused.
const FULL: &str = "no room for more than 16 MiB of a rank";

struct Entry {
    value: String,
    owner: u32,
}

/// What a value counts under its key.
fn room(key: &str, value: &str) -> usize {
    ENTRY + key.len() + value.len()
}

/// Values by key. All that is put counts for who has put it, until it is replaced or removed.
#[derive(Default)]
pub(super) struct Table {
    visible: BTreeMap<String, Entry>,
    /// What is seen after the next barrier.
    put: BTreeMap<String, Entry>,
    names: BTreeMap<String, Entry>,
    of_hosts: BTreeMap<(u32, String), Entry>,
    used: BTreeMap<u32, usize>,
}

impl Table {
    fn take_room(&mut self, owner: u32, bytes: usize) -> Result<(), String> {
        let used = self.used.entry(owner).or_default();
        if *used + bytes > MOST_PUT {
            return Err(FULL.into());
        }
        *used += bytes;
        Ok(())
    }

    fn leave_room(&mut self, key: &str, entry: Option<Entry>) {
        let Some(entry) = entry else { return };
        if let Some(used) = self.used.get_mut(&entry.owner) {
            *used -= room(key, &entry.value);
        }
    }

    /// Puts a value, which replaces an earlier one of that key, and is seen after the next barrier.
    pub(super) fn put(&mut self, owner: u32, key: &str, value: &str) -> Result<(), String> {
        self.take_room(owner, room(key, value))?;
        let replaced = self.put.insert(key.to_owned(), Entry { value: value.to_owned(), owner });
        self.leave_room(key, replaced);
        Ok(())
    }

    /// All ranks have come to a barrier.
    pub(super) fn show(&mut self) {
        for (key, entry) in std::mem::take(&mut self.put) {
            let replaced = self.visible.insert(key.clone(), entry);
            self.leave_room(&key, replaced);
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.visible.get(key).map(|entry| entry.value.as_str())
    }

    /// Publishes the port of a service, which nobody else has.
    pub(super) fn publish(&mut self, owner: u32, name: &str, port: &str) -> Result<(), String> {
        if self.names.contains_key(name) {
            return Err("this name is published already".into());
        }
        self.take_room(owner, room(name, port))?;
        self.names.insert(name.to_owned(), Entry { value: port.to_owned(), owner });
        Ok(())
    }

    pub(super) fn unpublish(&mut self, name: &str) -> Result<(), String> {
        let removed = self.names.remove(name);
        let was_there = removed.is_some();
        self.leave_room(name, removed);
        if was_there { Ok(()) } else { Err("no such name".into()) }
    }

    pub(super) fn look_up(&self, name: &str) -> Option<&str> {
        self.names.get(name).map(|entry| entry.value.as_str())
    }

    /// Puts a value that the ranks of one host see, at once.
    pub(super) fn put_on_host(&mut self, owner: u32, host: u32, key: &str, value: &str) -> Result<(), String> {
        self.take_room(owner, room(key, value))?;
        let replaced = self.of_hosts.insert((host, key.to_owned()), Entry { value: value.to_owned(), owner });
        self.leave_room(key, replaced);
        Ok(())
    }

    pub(super) fn get_on_host(&self, host: u32, key: &str) -> Option<&str> {
        self.of_hosts.get(&(host, key.to_owned())).map(|entry| entry.value.as_str())
    }

    /// The ports of this rank lead nowhere any more. Its values stay: others may still ask for
    /// them.
    pub(super) fn handle_gone(&mut self, rank: u32) {
        let of_rank: Vec<String> =
            self.names.iter().filter(|(_, entry)| entry.owner == rank).map(|(name, _)| name.clone()).collect();
        for name in of_rank {
            let removed = self.names.remove(&name);
            self.leave_room(&name, removed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_replaced_or_removed_makes_room() {
        let mut table = Table::default();
        let half = "x".repeat(MOST_PUT / 2 - ENTRY - 1);
        let mut fills = |key: &str| table.put(0, key, &half).is_ok();
        assert_eq!([fills("a"), fills("b"), fills("c"), fills("a")], [true, true, false, false]);
        table.put(1, "a", "").expect("another rank has room");
        table.put(0, "c", &half).expect("what was replaced has left room");
        table.show();
        assert_eq!((table.get("a"), table.get("c")), (Some(""), Some(half.as_str())));
        assert!(table.publish(0, "name", &half).is_err());
        table.put(1, "c", "").expect("room");
        table.show();
        table.publish(0, "n", &half).expect("room after the barrier that replaced a value");
        assert!(table.put_on_host(0, 0, "key", "value").is_err());
        table.unpublish("n").expect("published");
        table.put_on_host(0, 0, "k", &half).expect("room");
        table.put_on_host(0, 0, "k", &half).expect_err("for a moment there are both");
        assert_eq!((table.get_on_host(0, "k"), table.get_on_host(1, "k")), (Some(half.as_str()), None));
        table.put_on_host(1, 0, "k", "").expect("room");
        table.publish(0, "n", &half).expect("room");
        table.handle_gone(0);
        assert_eq!(table.look_up("n"), None);
        assert!(table.unpublish("n").is_err());
        let used: Vec<usize> = table.used.values().copied().collect();
        assert_eq!(used, [room("b", &half), 3 * room("k", "")], "`b` of one, three empty values of the other");
    }
}
