//! What can fail.

use std::fmt;

/// Why an operation on the global address space failed, as a sentence that states the remedy.
///
/// # Example
///
/// ```
/// let fault = cci_splitc::Fault::NoRank { rank: 9, procs: 4 };
/// assert!(fault.to_string().starts_with("a global pointer names rank 9, and the job has 4 ranks"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A global pointer names a rank that is not there.
    NoRank {
        /// The rank.
        rank: u32,
        /// How many ranks the job has.
        procs: u32,
    },
    /// Bytes that are not mapped at their rank, or not for what was to be done.
    Unmapped {
        /// The rank.
        rank: u32,
        /// The first address there.
        address: u64,
        /// Bytes.
        len: u64,
    },
    /// An atomic operation on a word that is not aligned.
    Misaligned {
        /// The rank.
        rank: u32,
        /// The address there.
        address: u64,
        /// Bytes of the word.
        size: u32,
    },
    /// An atomic operation on a word of neither 4 nor 8 bytes.
    WordSize {
        /// Bytes of the word.
        size: u32,
    },
    /// A rank has ended, or cannot be reached any more, while others need it.
    Gone {
        /// The rank.
        rank: u32,
    },
    /// More memory than this host has.
    TooLarge {
        /// Bytes that each rank was to have.
        bytes: u64,
        /// Bytes that the host could give to all of its ranks.
        available: u64,
    },
    /// A rank got no memory.
    NoMemory {
        /// The rank.
        rank: u32,
        /// Bytes.
        bytes: u64,
    },
    /// Ranks have called one collective operation with different sizes.
    Unequal {
        /// A rank.
        rank: u32,
        /// Its size, bytes.
        bytes: u64,
        /// That of this rank, bytes.
        here: u64,
    },
    /// Memory that was not allocated, or has been freed.
    NotAllocated {
        /// The address.
        address: u64,
    },
    /// The endpoint of this rank cannot be used any more, and why.
    Endpoint(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRank { rank, procs } => {
                write!(
                    f,
                    "a global pointer names rank {rank}, and the job has {procs} ranks; make it of a rank below that"
                )
            }
            Self::Unmapped { rank, address, len } => write!(
                f,
                "rank {rank} has no {len} bytes at address {address:#x} for this access; see where the global pointer comes from"
            ),
            Self::Misaligned { rank, address, size } => write!(
                f,
                "an atomic operation on {size} bytes at address {address:#x} of rank {rank}, which is no multiple of {size}; align the word"
            ),
            Self::WordSize { size } => {
                write!(f, "an atomic operation on {size} bytes; use a word of 4 or 8 bytes")
            }
            Self::Gone { rank } => {
                write!(f, "rank {rank} has ended or cannot be reached while other ranks need it; see what it reports")
            }
            Self::TooLarge { bytes, available } => write!(
                f,
                "spread memory of {bytes} bytes for each rank, and this host has {available} bytes left; spread less, or over more hosts"
            ),
            Self::NoMemory { rank, bytes } => {
                write!(
                    f,
                    "rank {rank} got no memory for {bytes} bytes of spread memory; raise its limits (ulimit -v, -n, -f)"
                )
            }
            Self::Unequal { rank, bytes, here } => write!(
                f,
                "a collective call with {bytes} bytes at rank {rank}, and {here} bytes here; call it with the same size everywhere"
            ),
            Self::NotAllocated { address } => {
                write!(
                    f,
                    "no spread memory was allocated at address {address:#x}, or it has been freed; free each allocation once"
                )
            }
            Self::Endpoint(why) => write!(f, "this rank cannot reach others any more: {why}"),
        }
    }
}

impl std::error::Error for Fault {}

/// Why a process did not become a rank of a Split-C program.
///
/// # Example
///
/// ```
/// let error = cci_splitc::StartError("the addresses from 0x110000000000 on are taken".to_owned());
/// assert!(error.to_string().starts_with("cannot start the Split-C program: the addresses"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a sentence")]
pub struct StartError(pub String);

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot start the Split-C program: {}", self.0)
    }
}

impl std::error::Error for StartError {}
