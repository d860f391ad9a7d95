//! Why calls are refused.

/// Why a call was refused. The dialects number these differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NotInit,
    /// `AM_Init` without `AM_Terminate` before: of the dialect of 1996 alone.
    NotTerm,
    BadArg(&'static str),
    Resource(&'static str),
    /// An answer that is no mistake of the program, of whom nothing is said.
    No,
    NotSent(&'static str),
}

impl Refusal {
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::NotInit => "the library is not initialised; call AM_Init first",
            Self::NotTerm => "the library is initialised already; call AM_Terminate before",
            Self::No => "no",
            Self::BadArg(why) | Self::Resource(why) | Self::NotSent(why) => why,
        }
    }
}

pub(crate) type Answer = Result<(), Refusal>;

/// What a handler may not do.
pub(crate) const IN_HANDLER: Refusal = Refusal::Resource("a handler of this bundle runs; call after it has returned");
