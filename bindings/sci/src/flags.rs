//! Flags: their values are this library's, and programs read them from it.

use crate::answer::{Answer, FLAG_NOT_IMPLEMENTED, ILLEGAL_FLAG};
use std::ffi::c_uint;

macro_rules! flags {
    ($($name:ident = $bit:literal;)+) => {
        $(
            #[unsafe(export_name = concat!("_SISCI_PUBLIC_CONST_SCI_FLAG_", stringify!($name)))]
            pub(crate) static $name: c_uint = 1 << $bit;
        )+
    };
}

flags! {
    EMPTY = 0;
    USE_CALLBACK = 1;
    FIXED_INTNO = 2;
    SHARED_INT = 3;
    FIXED_MAP_ADDR = 4;
    READONLY_MAP = 5;
    LOCK_OPERATION = 6;
    ERROR_CHECK = 7;
    BLOCK_READ = 8;
    FLUSH_CPU_BUFFERS_ONLY = 9;
    FAST_BARRIER = 10;
    NO_FLUSH = 11;
    NO_STORE_BARRIER = 12;
    PRIVATE = 13;
    FORCE_DISCONNECT = 14;
    NOTIFY = 15;
    DMA_SOURCE_ONLY = 16;
    DMA_READ = 17;
    ASYNCHRONOUS_CONNECT = 18;
    BROADCAST = 19;
    AUTO_ID = 20;
    DMA_GLOBAL = 21;
    DMA_WAIT = 22;
    IO_MAP_IOSPACE = 23;
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
