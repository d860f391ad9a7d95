//! Documents that runs have written, read back; and what their rows are about.

mod key;

pub use key::Key;

use crate::row::Document;
use crate::{UserError, while_doing};
use std::path::Path;

/// Reads a document.
///
/// # Errors
///
/// There is no such file, or it is no document of this version.
pub fn read(path: &Path) -> Result<Document, UserError> {
    let name = path.display().to_string();
    let failed = format!("cannot read {name}; give a file that `cci perf --json` has written");
    let text = std::fs::read_to_string(path).map_err(while_doing(&failed))?;
    Document::parse(&text, &name)
}
