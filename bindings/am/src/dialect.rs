//! What tells the three dialects apart: names, codes, and the numbers of a status.

use crate::boundary::Shared;
use crate::names::{Name, Sealed};
use crate::refusal::Refusal;
use crate::status::Status;
use std::cell::UnsafeCell;
use std::ffi::c_int;

/// A dialect of Active Messages in C.
pub(crate) trait Dialect: 'static {
    /// What `en_t` is in calls: the name, or a pointer to one.
    type Name: Copy;
    /// Its place among the dialects.
    const PLACE: usize;
    /// The call that starts a parallel program.
    const START: &str;

    /// The name for the program. One that is passed by pointer is written to `storage`.
    fn emit(name: &Name, storage: &Storage) -> Self::Name;

    /// The name that the program passes.
    ///
    /// # Safety
    ///
    /// A pointer is NULL, or readable during the call.
    unsafe fn parse(name: Self::Name) -> Option<Sealed>;

    fn code(refusal: Refusal) -> c_int;
    fn status(status: Status) -> c_int;
    fn is_verbose() -> bool;
}

/// Where a name lies that the program gets by pointer.
pub(crate) struct Storage(UnsafeCell<NowName>);

impl Storage {
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(NowName { process: 0, number: 0, host: 0, check: 0, uri: [0; 144] }))
    }
}

/// `amudp.h`.
pub(crate) struct Udp;

/// `en_t` of `amudp.h`: `struct sockaddr_in`, the address and the port in network order.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct UdpName {
    family: u16,
    port: u16,
    address: u32,
    process: u32,
    number: u16,
    check: u16,
}

const _: () = assert!(size_of::<UdpName>() == size_of::<libc::sockaddr_in>());

/// `AF_INET`, which is a small number.
const INET: u16 = 2;
const _: () = assert!(libc::AF_INET == 2);

impl Dialect for Udp {
    type Name = UdpName;
    const PLACE: usize = 0;
    const START: &str = "AMUDP_SPMDStartup";

    fn emit(name: &Name, _: &Storage) -> UdpName {
        let of = name.sealed();
        // 127.0.0.0/8: whoever sends there reaches nobody else.
        let address = (127 << 24 | (of.host & 0x00ff_ffff).max(1)).to_be();
        let port = (of.process.wrapping_mul(64).wrapping_add(of.number) % 65_535 + 1) as u16;
        UdpName {
            family: INET,
            port: port.to_be(),
            address,
            process: of.process,
            number: of.number as u16,
            check: of.check,
        }
    }

    unsafe fn parse(name: UdpName) -> Option<Sealed> {
        let host = u32::from_be(name.address) & 0x00ff_ffff;
        let sealed =
            Sealed { process: name.process, number: u32::from(name.number), host, check: name.check, uri: None };
        (name.family == INET).then_some(sealed)
    }

    fn code(refusal: Refusal) -> c_int {
        match refusal {
            Refusal::NotInit => 1,
            Refusal::BadArg(_) => 2,
            Refusal::NotTerm | Refusal::Resource(_) | Refusal::No => 3,
            Refusal::NotSent(_) => 4,
        }
    }

    fn status(status: Status) -> c_int {
        status as c_int
    }

    fn is_verbose() -> bool {
        UDP_VERBOSE.get() != 0
    }
}

/// `ammpi.h`.
pub(crate) struct Mpi;

/// `en_t` of `ammpi.h`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct MpiName {
    rank: c_int,
    tag: c_int,
}

impl Dialect for Mpi {
    type Name = MpiName;
    const PLACE: usize = 1;
    const START: &str = "AMMPI_SPMDStartup";

    fn emit(name: &Name, _: &Storage) -> MpiName {
        let of = name.sealed();
        MpiName { rank: of.process.cast_signed(), tag: (of.number << 16 | u32::from(of.check)).cast_signed() }
    }

    unsafe fn parse(name: MpiName) -> Option<Sealed> {
        let tag = name.tag.cast_unsigned();
        let process = name.rank.cast_unsigned();
        Some(Sealed { process, number: tag >> 16, host: 0, check: tag as u16, uri: None })
    }

    fn code(refusal: Refusal) -> c_int {
        Udp::code(refusal)
    }

    fn status(status: Status) -> c_int {
        status as c_int
    }

    fn is_verbose() -> bool {
        MPI_VERBOSE.get() != 0
    }
}

/// `am.h`, of 1996.
pub(crate) struct Now;

/// `en_t` of `am.h`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct NowName {
    process: u32,
    number: u32,
    host: u32,
    check: u32,
    /// With a zero behind it.
    uri: [u8; 144],
}

impl Dialect for Now {
    type Name = *const NowName;
    const PLACE: usize = 2;
    const START: &str = "";

    fn emit(name: &Name, storage: &Storage) -> *const NowName {
        let of = name.sealed();
        let mut uri = [0; 144];
        // A URI has at most 120 bytes.
        let len = name.uri().len().min(uri.len() - 1);
        uri[..len].copy_from_slice(&name.uri().as_bytes()[..len]);
        let check = u32::from(of.check);
        let of = NowName { process: of.process, number: of.number, host: of.host, check, uri };
        // SAFETY: a place of the library's, which the program only reads, and until this call only.
        unsafe { storage.0.get().write(of) };
        storage.0.get()
    }

    unsafe fn parse(name: *const NowName) -> Option<Sealed> {
        // SAFETY: not NULL, so readable, by the contract of the trait. A copy may lie anywhere in a
        // buffer.
        let name = (!name.is_null()).then(|| unsafe { name.read_unaligned() })?;
        let len = name.uri.iter().position(|byte| *byte == 0)?;
        let uri = str::from_utf8(&name.uri[..len]).ok()?;
        let (process, number, host, check) = (name.process, name.number, name.host, u16::try_from(name.check).ok()?);
        Some(Sealed { process, number, host, check, uri: Some(uri.into()) })
    }

    fn code(refusal: Refusal) -> c_int {
        match refusal {
            Refusal::NotInit => 1,
            Refusal::NotTerm => 2,
            Refusal::BadArg(_) => 3,
            Refusal::Resource(_) | Refusal::No => 4,
            Refusal::NotSent(_) => 5,
        }
    }

    fn status(status: Status) -> c_int {
        1 << (status as c_int - 1)
    }

    fn is_verbose() -> bool {
        false
    }
}

#[unsafe(export_name = "AMUDP_VerboseErrors")]
static UDP_VERBOSE: Shared<c_int> = Shared::new(0);
#[unsafe(export_name = "AMMPI_VerboseErrors")]
static MPI_VERBOSE: Shared<c_int> = Shared::new(0);
#[unsafe(export_name = "AMUDP_PoliteSync")]
static UDP_POLITE: Shared<c_int> = Shared::new(0);
#[unsafe(export_name = "AMMPI_PoliteSync")]
static MPI_POLITE: Shared<c_int> = Shared::new(0);
