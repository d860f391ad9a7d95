//! Registered memory.

use crate::binding::{self, ConnectionCell, EndpointCell, Served};
use cci_mem::arena::SharedMemory;
use cci_mem::memory::{HeapBytes, Memory};
use cci_mem::sync::AtomicU64;
use cci_proto::{RegisterError, Rights, RmaHandle, Unusable};
use std::fmt;
use std::sync::Arc;

mod sealed {
    pub trait Sealed {}
}

/// Memory that can be registered: [`SharedMemory`], `Vec<u8>`, `Arc<[AtomicU64]>`,
/// `Arc<SharedMemory>`, and [`Memory`], which names memory by its address and whose maker has
/// promised that it stays.
///
/// A registration for one transfer allocates nothing after the first ones, except that of a
/// `Vec<u8>`: a program that registers the same bytes again and again registers
/// [`Memory::of_bytes`].
///
/// # Example
///
/// ```
/// use cci::{Endpoint, Region, RegisterError, Registration, Rights};
///
/// fn publish<M: Region>(endpoint: &Endpoint, memory: M) -> Result<Registration<M>, RegisterError> {
///     endpoint.register(memory, Rights::READ)
/// }
/// ```
pub trait Region: sealed::Sealed + Sized {
    /// The memory while it is registered.
    #[doc(hidden)]
    type Held;
    #[doc(hidden)]
    fn hold(self) -> Self::Held;
    #[doc(hidden)]
    fn name(held: &Self::Held) -> Memory;
    #[doc(hidden)]
    fn release(held: Self::Held) -> Option<Self>;
}

/// Declares memory that is held as it is.
macro_rules! held_as_is {
    ($($region:ty: $held:ident => $name:expr;)+) => {
        $(
            impl sealed::Sealed for $region {}
            impl Region for $region {
                type Held = Self;
                fn hold(self) -> Self {
                    self
                }
                fn name($held: &Self) -> Memory {
                    $name
                }
                fn release(held: Self) -> Option<Self> {
                    Some(held)
                }
            }
        )+
    };
}

held_as_is! {
    SharedMemory: held => held.memory();
    Arc<SharedMemory>: held => held.memory();
    Arc<[AtomicU64]>: held => Memory::of_words(held);
    Memory: held => held.clone();
}

impl sealed::Sealed for Vec<u8> {}
impl Region for Vec<u8> {
    type Held = Arc<HeapBytes>;
    fn hold(self) -> Arc<HeapBytes> {
        Arc::new(HeapBytes::new(self))
    }
    fn name(held: &Arc<HeapBytes>) -> Memory {
        Memory::of_bytes(held)
    }
    fn release(held: Arc<HeapBytes>) -> Option<Self> {
        Arc::into_inner(held).map(HeapBytes::into_vec)
    }
}

/// Registered memory, which the registration owns. Peers with rights read and write it at any time,
/// so it is never shown as a slice: [`Registration::read`] and [`Registration::write`] copy,
/// aligned words of 8 bytes whole.
///
/// Dropping it ends the registration without waiting. Memory that a peer copies at this moment is
/// kept until that copy is over. [`Registration::deregister`] waits for it, and gives the memory
/// back. Any thread may use a registration, and drop it.
///
/// # Example
///
/// ```
/// use cci::{Context, Endpoint, EndpointOptions, RmaHandle, Rights};
///
/// let endpoint = Endpoint::open(Context::new()?.default_device()?, &EndpointOptions::new())?;
/// let memory = endpoint.register(vec![0; 4096], Rights::READ_WRITE)?;
///
/// // What the peer needs to know is sent as a message.
/// let bytes: [u8; 32] = memory.handle().to_bytes();
/// assert_eq!(RmaHandle::from_bytes(&bytes), Some(*memory.handle()));
///
/// assert!(memory.write(8, b"hello"));
/// let mut copy = [0; 5];
/// assert!(memory.read(8, &mut copy) && copy == *b"hello");
/// let bytes: Vec<u8> = memory.deregister()?;
/// assert_eq!(bytes[8..13], *b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Registration<M: Region> {
    name: Memory,
    handle: RmaHandle,
    endpoint: &'static EndpointCell,
    life: u32,
    /// None once given back.
    held: Option<M::Held>,
}

/// A registration that [`Registration::deregister`] could not end, and why.
///
/// # Example
///
/// ```
/// use cci::{RegisterError, Registration, StillRegistered};
///
/// fn end(registration: Registration<Vec<u8>>) -> Option<Vec<u8>> {
///     match registration.deregister() {
///         Ok(bytes) => Some(bytes),
///         // A peer is stopped in the midst of a copy: again later, or drop it and the library keeps the memory meanwhile.
///         Err(StillRegistered { registration, why: RegisterError::Busy }) => end(registration),
///         Err(_) => None,
///     }
/// }
/// ```
#[derive(Debug)]
pub struct StillRegistered<M: Region> {
    /// The registration. Dropping it keeps the memory as long as a peer copies.
    pub registration: Registration<M>,
    /// Why it did not end.
    pub why: RegisterError,
}

impl<M: Region> fmt::Display for StillRegistered<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<M: Region> From<StillRegistered<M>> for RegisterError {
    fn from(still: StillRegistered<M>) -> Self {
        still.why
    }
}

impl<M: Region> From<StillRegistered<M>> for Box<dyn std::error::Error> {
    fn from(still: StillRegistered<M>) -> Self {
        still.why.into()
    }
}

impl<M: Region> Registration<M> {
    pub(crate) fn new<F: FnOnce() -> Option<&'static ConnectionCell>>(
        endpoint: &'static EndpointCell,
        life: u32,
        memory: M,
        rights: Rights,
        served: Served<F>,
    ) -> Result<Self, RegisterError> {
        let held = memory.hold();
        let name = M::name(&held);
        let handle = binding::register_owned(endpoint, name.clone(), rights, served)?;
        Ok(Self { name, handle, endpoint, life, held: Some(held) })
    }

    /// Returns the handle: what RMA calls of this side name the memory by, and, sent to a peer,
    /// those of that side.
    #[must_use]
    pub fn handle(&self) -> &RmaHandle {
        &self.handle
    }

    /// Returns the number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "registered memory is never empty")]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.name.len()
    }

    /// Copies `bytes` into the memory. False, and nothing is written, when they do not fit inside
    /// as a whole.
    #[must_use]
    pub fn write(&self, offset: u64, bytes: &[u8]) -> bool {
        self.name.copy_in(offset, bytes)
    }

    /// Copies bytes out of the memory. False, and nothing is copied, when they do not lie inside as
    /// a whole.
    #[must_use]
    pub fn read(&self, offset: u64, target: &mut [u8]) -> bool {
        self.name.copy_out(offset, target)
    }

    /// Copies `len` bytes out of the memory; `None` when they do not lie inside as a whole.
    #[must_use]
    pub fn to_vec(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        self.name.span(offset, len)?;
        let mut bytes = vec![0; len];
        self.read(offset, &mut bytes).then_some(bytes)
    }

    /// Ends the registration and returns the memory, which nobody else touches any more. Waits at
    /// most 100 ms for a peer that copies.
    ///
    /// # Errors
    ///
    /// [`RegisterError::Busy`]: a peer is stopped in the midst of a copy. Or the endpoint cannot be
    /// used here.
    pub fn deregister(mut self) -> Result<M, StillRegistered<M>> {
        let ended = match self.endpoint.generation() == self.life {
            true => binding::deregister_owned(self.endpoint, &self.handle),
            false => Err(Unusable::Closed.into()),
        };
        if let Err(why) = ended {
            return Err(StillRegistered { registration: self, why });
        }
        self.name = Memory::none();
        match self.held.take().and_then(M::release) {
            Some(memory) => Ok(memory),
            // Nobody else has it: the endpoint has forgotten it.
            None => Err(StillRegistered { registration: self, why: RegisterError::UnknownHandle }),
        }
    }
}

impl<M: Region> Drop for Registration<M> {
    fn drop(&mut self) {
        // The endpoint has a name of the memory, which keeps it as long as peers may copy.
        if self.held.is_some() && self.endpoint.generation() == self.life {
            binding::drop_owned(self.endpoint, &self.handle);
        }
    }
}

impl<M: Region> fmt::Debug for Registration<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registration({:?}, {} bytes)", self.handle, self.len())
    }
}
