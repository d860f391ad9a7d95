//! Memory for RMA, of any origin.

use crate::sys::PrivateMemory;
use cci::{Memory, SharedMemory};

/// Where memory comes from: the ways that RMA goes differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The library allocated it.
    Library,
    /// The program's own.
    Program,
}

impl Origin {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Library, Self::Program];

    /// `len` bytes of zeroes.
    pub fn allocate(self, len: usize) -> Bytes {
        match self {
            Self::Library => Bytes::Library(SharedMemory::new(len).expect("memory of the library")),
            Self::Program => Bytes::Program(PrivateMemory::new(len)),
        }
    }
}

/// Bytes of either origin.
#[derive(Debug)]
pub enum Bytes {
    /// The library allocated them.
    Library(SharedMemory),
    /// The program's own.
    Program(PrivateMemory),
}

impl Bytes {
    /// The range, to be registered.
    pub fn memory(&self) -> Memory {
        match self {
            Self::Library(memory) => memory.memory(),
            Self::Program(memory) => memory.memory(),
        }
    }

    /// Copies bytes in.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        match self {
            Self::Library(memory) => memory.write(offset, bytes),
            Self::Program(memory) => memory.write(offset, bytes),
        }
    }

    /// A copy of a part.
    pub fn to_vec(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        match self {
            Self::Library(memory) => memory.read(offset, &mut bytes),
            Self::Program(memory) => memory.read(offset, &mut bytes),
        }
        bytes
    }
}
