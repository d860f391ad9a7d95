//! Memory of a peer that the program has imported.

use cci_mem::sync::{AtomicBool, Ordering};
use cci_transport::Connection;
use std::sync::{Arc, Weak};

/// An import that the program may still hold.
struct Import {
    /// The first word of the handle.
    name: u64,
    cell: &'static Connection,
    ended: Weak<AtomicBool>,
}

impl Import {
    /// Tells whoever asks that the memory is the registration's no more. False: the program has
    /// dropped the import.
    fn end(&self) -> bool {
        let ended = self.ended.upgrade();
        ended.is_some_and(|ended| {
            ended.store(true, Ordering::Release);
            true
        })
    }
}

/// What the program has imported by a lane.
#[derive(Default)]
pub(crate) struct Imports(Vec<Import>);

impl Imports {
    /// Adds an import of the registration with this name, and returns what says whether it has
    /// ended.
    pub(crate) fn add(&mut self, name: u64, cell: &'static Connection) -> Arc<AtomicBool> {
        let ended = Arc::new(AtomicBool::new(false));
        self.0.retain(|import| import.ended.strong_count() > 0);
        self.0.push(Import { name, cell, ended: Arc::downgrade(&ended) });
        ended
    }

    /// The peer has ended the registration with this name. Returns the connections whose program is
    /// to know, one for each import.
    pub(crate) fn end_named(&mut self, name: u64) -> Vec<&'static Connection> {
        self.end(|import| import.name == name)
    }

    /// A connection is broken. Returns it once for each import of which its program is to know.
    pub(crate) fn end_of(&mut self, cell: &'static Connection) -> Vec<&'static Connection> {
        self.end(|import| std::ptr::eq(import.cell, cell))
    }

    fn end(&mut self, concerns: impl Fn(&Import) -> bool) -> Vec<&'static Connection> {
        let ended = self.0.extract_if(.., |import| concerns(import));
        ended.filter(Import::end).map(|import| import.cell).collect()
    }

    /// The program has closed this connection.
    pub(crate) fn forget(&mut self, cell: &'static Connection) {
        self.end_of(cell);
    }

    /// The endpoint closes.
    pub(crate) fn forget_all(&mut self) {
        self.end(|_| true);
    }
}
