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
    /// The VI Architecture for all of it, with one VI to each rank.
    Vi = 3,
    /// The same with two.
    TwoVis = 4,
}

/// How many VIs lead to each rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vis {
    One,
    /// One for words, one for the rest.
    Two,
}

impl Mapping {
    /// Its VIs, if it has some.
    pub(crate) fn vis(self) -> Option<Vis> {
        match self {
            Self::Direct | Self::Am => None,
            Self::Vi => Some(Vis::One),
            Self::TwoVis => Some(Vis::Two),
        }
    }

    /// That of the environment; direct, where it states none.
    pub(crate) fn named() -> Result<Self, StartError> {
        let name = std::env::var_os(VARIABLE).unwrap_or_default();
        match name.to_str() {
            Some("" | "direct") => Ok(Self::Direct),
            Some("am") => Ok(Self::Am),
            Some("vi") => Ok(Self::Vi),
            Some("vi2") => Ok(Self::TwoVis),
            _ => Err(StartError(format!("{VARIABLE} is {name:?}; give direct, am, vi or vi2"))),
        }
    }
}
