//! Flags. Programs compile in values of the vendor's, so these are the vendor's wherever a public
//! client shows them; the others are this library's (`docs/design/sci.md`, Values). Flags of
//! different calls share values, those of one call do not.

use crate::answer::{Answer, FLAG_NOT_IMPLEMENTED, ILLEGAL_FLAG};
use std::ffi::c_uint;

macro_rules! flags {
    ($($name:ident = $value:literal;)+) => {
        $(
            #[unsafe(export_name = concat!("_SISCI_PUBLIC_CONST_SCI_FLAG_", stringify!($name)))]
            pub(crate) static $name: c_uint = $value;
        )+
    };
}

flags! {
    USE_CALLBACK = 0x1;
    EMPTY = 0x2;
    PRIVATE = 0x4;
    DMA_SOURCE_ONLY = 0x8;
    AUTO_ID = 0x2000_0000;
    FIXED_INTNO = 0x2;
    SHARED_INT = 0x4;
    FIXED_MAP_ADDR = 0x1;
    READONLY_MAP = 0x2;
    LOCK_OPERATION = 0x4;
    IO_MAP_IOSPACE = 0x80;
    BROADCAST = 0x4_0000;
    DMA_WAIT = 0x4;
    DMA_READ = 0x10;
    DMA_GLOBAL = 0x40;
    CACHE_FLUSH = 0x10_0000;
    CACHE_INVALIDATE = 0x20_0000;
}

// No public source shows these of the vendor.
flags! {
    ERROR_CHECK = 0x80;
    BLOCK_READ = 0x100;
    FLUSH_CPU_BUFFERS_ONLY = 0x200;
    FAST_BARRIER = 0x400;
    NO_FLUSH = 0x800;
    NO_STORE_BARRIER = 0x1000;
    FORCE_DISCONNECT = 0x4000;
    NOTIFY = 0x8000;
    ASYNCHRONOUS_CONNECT = 0x40_0000;
}

/// Checks the flags of a call: those that it has, and those that are not there yet.
pub(crate) fn check(flags: c_uint, has: &[&c_uint], later: &[&c_uint]) -> Answer<()> {
    let all = |flags: &[&c_uint]| flags.iter().fold(0, |all, flag| all | **flag);
    if flags & !(all(has) | all(later)) != 0 {
        Err(ILLEGAL_FLAG)
    } else if flags & all(later) != 0 {
        Err(FLAG_NOT_IMPLEMENTED)
    } else {
        Ok(())
    }
}

pub(crate) fn has(flags: c_uint, flag: &c_uint) -> bool {
    flags & *flag != 0
}
