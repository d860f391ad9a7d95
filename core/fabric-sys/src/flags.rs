//! Bits: capabilities, flags of operations and objects, modes, orders, modes of memory.
//!
//! A bit has one meaning in each argument: `FI_DIRECTED_RECV`, `FI_CLAIM`, `FI_CONTEXT` and
//! `FI_SELECTIVE_COMPLETION` are the same one.

use std::ffi::c_int;

constants! {
    // Capabilities and flags of operations (fi_getinfo(3), fi_endpoint(3), fi_msg(3)).
    u64 {
        FI_MSG = 1 << 1;
        FI_RMA = 1 << 2;
        FI_TAGGED = 1 << 3;
        FI_ATOMIC = 1 << 4;
        FI_MULTICAST = 1 << 5;
        #[since(1, 9)] FI_COLLECTIVE = 1 << 6;
        FI_READ = 1 << 8;
        FI_WRITE = 1 << 9;
        FI_RECV = 1 << 10;
        FI_SEND = 1 << 11;
        FI_REMOTE_READ = 1 << 12;
        FI_REMOTE_WRITE = 1 << 13;
        FI_MULTI_RECV = 1 << 16;
        FI_REMOTE_CQ_DATA = 1 << 17;
        FI_MORE = 1 << 18;
        FI_PEEK = 1 << 19;
        FI_TRIGGER = 1 << 20;
        FI_FENCE = 1 << 21;
        FI_COMPLETION = 1 << 24;
        FI_INJECT = 1 << 25;
        FI_INJECT_COMPLETE = 1 << 26;
        FI_TRANSMIT_COMPLETE = 1 << 27;
        FI_DELIVERY_COMPLETE = 1 << 28;
        FI_AFFINITY = 1 << 29;
        #[since(1, 6)] FI_COMMIT_COMPLETE = 1 << 30;
        #[since(1, 7)] FI_MATCH_COMPLETE = 1 << 31;
        #[since(2, 2)] FI_RESCAN = 1 << 35;
        #[since(1, 17)] FI_PEER_TRANSFER = 1 << 36;
        #[since(1, 16)] FI_AV_USER_ID = 1 << 41;
        #[since(2, 2)] FI_FIREWALL_ADDR = 1 << 42;
        #[since(1, 17)] FI_PEER = 1 << 43;
        #[since(2, 7)] FI_XPU = 1 << 44;
        #[since(2, 0)] FI_TAGGED_DIRECTED_RECV = 1 << 45;
        #[since(2, 0)] FI_TAGGED_MULTI_RECV = 1 << 46;
        #[since(1, 9)] FI_HMEM = 1 << 47;
        #[since(2, 0)] FI_EXACT_DIRECTED_RECV = 1 << 48;
        #[since(1, 6)] FI_RMA_PMEM = 1 << 49;
        FI_SOURCE_ERR = 1 << 50;
        FI_LOCAL_COMM = 1 << 51;
        FI_REMOTE_COMM = 1 << 52;
        FI_SHARED_AV = 1 << 53;
        FI_PROV_ATTR_ONLY = 1 << 54;
        FI_NUMERICHOST = 1 << 55;
        FI_RMA_EVENT = 1 << 56;
        FI_SOURCE = 1 << 57;
        FI_NAMED_RX_CTX = 1 << 58;
        FI_DIRECTED_RECV = 1 << 59;
        FI_CLAIM = 1 << 59;
        FI_DISCARD = 1 << 58;
        #[since(1, 20)] FI_AUTH_KEY = 1 << 57;
    }

    // Flags of binding and of address vectors, regions and atomic operations (fi_endpoint(3),
    // fi_av(3), fi_mr(3), fi_atomic(3)).
    u64 {
        FI_SELECTIVE_COMPLETION = 1 << 59;
        FI_SYMMETRIC = 1 << 59;
        FI_SYNC_ERR = 1 << 58;
        #[since(1, 9)] FI_UNIVERSE = 1 << 57;
        #[since(1, 20)] FI_MR_DMABUF = 1 << 40;
        #[since(2, 0)] FI_MR_SINGLE_USE = 1 << 41;
        #[since(1, 14)] FI_HMEM_HOST_ALLOC = 1 << 45;
        #[since(1, 13)] FI_HMEM_DEVICE_ONLY = 1 << 46;
        FI_FETCH_ATOMIC = 1 << 58;
        FI_COMPARE_ATOMIC = 1 << 59;
    }

    // Modes: what the program does for the provider (fi_getinfo(3)).
    u64 {
        FI_CONTEXT = 1 << 59;
        FI_MSG_PREFIX = 1 << 58;
        FI_ASYNC_IOV = 1 << 57;
        FI_RX_CQ_DATA = 1 << 56;
        FI_LOCAL_MR = 1 << 55;
        FI_CONTEXT2 = 1 << 52;
    }

    // Orders of messages and of completions (fi_endpoint(3)).
    u64 {
        FI_ORDER_RAR = 1 << 0;
        FI_ORDER_RAW = 1 << 1;
        FI_ORDER_RAS = 1 << 2;
        FI_ORDER_WAR = 1 << 3;
        FI_ORDER_WAW = 1 << 4;
        FI_ORDER_WAS = 1 << 5;
        FI_ORDER_SAR = 1 << 6;
        FI_ORDER_SAW = 1 << 7;
        FI_ORDER_SAS = 1 << 8;
        #[since(1, 8)] FI_ORDER_RMA_RAR = 1 << 32;
        #[since(1, 8)] FI_ORDER_RMA_RAW = 1 << 33;
        #[since(1, 8)] FI_ORDER_RMA_WAR = 1 << 34;
        #[since(1, 8)] FI_ORDER_RMA_WAW = 1 << 35;
        #[since(1, 8)] FI_ORDER_ATOMIC_RAR = 1 << 36;
        #[since(1, 8)] FI_ORDER_ATOMIC_RAW = 1 << 37;
        #[since(1, 8)] FI_ORDER_ATOMIC_WAR = 1 << 38;
        #[since(1, 8)] FI_ORDER_ATOMIC_WAW = 1 << 39;
        FI_ORDER_DATA = 1 << 16;
    }
    u64 {
        FI_ORDER_NONE = 0;
        FI_ORDER_STRICT = 511;
    }

    // Modes of memory (fi_mr(3)).
    c_int {
        FI_MR_BASIC = 1 << 0;
        FI_MR_SCALABLE = 1 << 1;
        FI_MR_LOCAL = 1 << 2;
        FI_MR_RAW = 1 << 3;
        FI_MR_VIRT_ADDR = 1 << 4;
        FI_MR_ALLOCATED = 1 << 5;
        FI_MR_PROV_KEY = 1 << 6;
        FI_MR_MMU_NOTIFY = 1 << 7;
        FI_MR_RMA_EVENT = 1 << 8;
        FI_MR_ENDPOINT = 1 << 9;
        #[since(1, 9)] FI_MR_HMEM = 1 << 10;
        #[since(1, 14)] FI_MR_COLLECTIVE = 1 << 11;
        #[since(2, 7)] FI_MR_XPU_DESC = 1 << 12;
    }
    c_int {
        FI_MR_UNSPEC = 0;
    }

    // Values that stand for none.
    u64 {
        FI_ADDR_UNSPEC = u64::MAX;
        FI_ADDR_NOTAVAIL = u64::MAX;
        FI_KEY_NOTAVAIL = u64::MAX;
    }
    usize {
        FI_SHARED_CONTEXT = usize::MAX;
        #[since(1, 20)] FI_AV_AUTH_KEY = usize::MAX;
    }
}
