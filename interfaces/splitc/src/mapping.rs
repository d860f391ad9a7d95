//! How this rank reaches the memory of others, as its environment states.

use crate::fault::StartError;

/// The variable with the name of the mapping.
const VARIABLE: &str = "CCI_SPLITC_MAPPING";

/// The mapping; the same in all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mapping {
    /// Mapped memory, RMA, and messages for the rest.
    Direct = 1,
    /// Active Messages for all of it.
    Am = 2,
}

impl Mapping {
    /// That of the environment; direct, where it states none.
    pub(crate) fn named() -> Result<Self, StartError> {
        let name = std::env::var_os(VARIABLE).unwrap_or_default();
        match name.to_str() {
            Some("" | "direct") => Ok(Self::Direct),
            Some("am") => Ok(Self::Am),
            _ => Err(StartError(format!("{VARIABLE} is {name:?}; give direct or am"))),
        }
    }
}
