//! Memory of a peer that the program has imported.

use cci_mem::sync::{AtomicBool, Ordering};
use cci_transport::Connection;
use std::sync::Weak;

/// An import that the program may still hold.
pub(crate) struct Import {
    /// The first word of the handle.
    pub(crate) name: u64,
    pub(crate) cell: &'static Connection,
    pub(crate) ended: Weak<AtomicBool>,
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
pub(crate) struct Imports(pub(crate) Vec<Import>);

impl Imports {
    /// Ends those that are concerned. Returns the connections whose program is to know, one for
    /// each.
    pub(crate) fn end(&mut self, concerns: impl Fn(&Import) -> bool) -> Vec<&'static Connection> {
        let ended = self.0.extract_if(.., |import| concerns(import));
        ended.filter(Import::end).map(|import| import.cell).collect()
    }

    /// The program has closed this connection.
    pub(crate) fn forget(&mut self, cell: &'static Connection) {
        self.end(|import| std::ptr::eq(import.cell, cell));
    }

    /// The endpoint closes.
    pub(crate) fn forget_all(&mut self) {
        self.end(|_| true);
    }
}
