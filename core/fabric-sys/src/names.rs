//! Numbered names: types, formats, classes, commands, options, events.

use std::ffi::{c_int, c_uint};

/// `enum fi_av_type`.
pub type fi_av_type = c_uint;
/// `enum fi_progress`.
pub type fi_progress = c_uint;
/// `enum fi_threading`.
pub type fi_threading = c_uint;
/// `enum fi_resource_mgmt`.
pub type fi_resource_mgmt = c_uint;
/// `enum fi_ep_type`.
pub type fi_ep_type = c_uint;
/// `enum fi_bus_type`.
pub type fi_bus_type = c_uint;
/// `enum fi_link_state`.
pub type fi_link_state = c_uint;
/// `enum fi_hmem_iface`.
pub type fi_hmem_iface = c_uint;
/// `enum fi_wait_obj`.
pub type fi_wait_obj = c_uint;
/// `enum fi_cq_format`.
pub type fi_cq_format = c_uint;
/// `enum fi_cq_wait_cond`.
pub type fi_cq_wait_cond = c_uint;
/// `enum fi_cntr_events`.
pub type fi_cntr_events = c_uint;
/// `enum fi_datatype`.
pub type fi_datatype = c_uint;
/// `enum fi_op`.
pub type fi_op = c_uint;
/// `enum fi_collective_op`.
pub type fi_collective_op = c_uint;

constants! {
    // `fi_info.addr_format`.
    u32 {
        FI_FORMAT_UNSPEC = 0;
        FI_SOCKADDR = 1;
        FI_SOCKADDR_IN = 2;
        FI_SOCKADDR_IN6 = 3;
        FI_SOCKADDR_IB = 4;
        FI_ADDR_PSMX = 5;
        FI_ADDR_GNI = 6;
        FI_ADDR_BGQ = 7;
        FI_ADDR_MLX = 8;
        FI_ADDR_STR = 9;
        FI_ADDR_PSMX2 = 10;
        #[since(1, 6)] FI_ADDR_IB_UD = 11;
        #[since(1, 8)] FI_ADDR_EFA = 12;
        #[since(1, 12)] FI_ADDR_PSMX3 = 13;
        #[since(1, 15)] FI_ADDR_OPX = 14;
        #[since(1, 16)] FI_ADDR_CXI = 15;
        #[since(1, 18)] FI_ADDR_UCX = 16;
        #[since(2, 3)] FI_SOCKADDR_IP = 17;
    }

    // `enum fi_av_type`.
    u32 {
        FI_AV_UNSPEC = 0;
        FI_AV_MAP = 1;
        FI_AV_TABLE = 2;
    }

    // `enum fi_progress`.
    u32 {
        FI_PROGRESS_UNSPEC = 0;
        FI_PROGRESS_AUTO = 1;
        FI_PROGRESS_MANUAL = 2;
        #[since(1, 21)] FI_PROGRESS_CONTROL_UNIFIED = 3;
    }

    // `enum fi_threading`.
    u32 {
        FI_THREAD_UNSPEC = 0;
        FI_THREAD_SAFE = 1;
        FI_THREAD_FID = 2;
        FI_THREAD_DOMAIN = 3;
        FI_THREAD_COMPLETION = 4;
        FI_THREAD_ENDPOINT = 5;
    }

    // `enum fi_resource_mgmt`.
    u32 {
        FI_RM_UNSPEC = 0;
        FI_RM_DISABLED = 1;
        FI_RM_ENABLED = 2;
    }

    // `enum fi_ep_type`.
    u32 {
        FI_EP_UNSPEC = 0;
        FI_EP_MSG = 1;
        FI_EP_DGRAM = 2;
        FI_EP_RDM = 3;
    }

    // `fi_ep_attr.protocol`.
    u32 {
        FI_PROTO_UNSPEC = 0;
        FI_PROTO_RDMA_CM_IB_RC = 1;
        FI_PROTO_IWARP = 2;
        FI_PROTO_IB_UD = 3;
        FI_PROTO_PSMX = 4;
        FI_PROTO_UDP = 5;
        FI_PROTO_SOCK_TCP = 6;
        FI_PROTO_MXM = 7;
        FI_PROTO_IWARP_RDM = 8;
        FI_PROTO_IB_RDM = 9;
        FI_PROTO_GNI = 10;
        FI_PROTO_RXM = 11;
        FI_PROTO_RXD = 12;
        FI_PROTO_MLX = 13;
        FI_PROTO_NETWORKDIRECT = 14;
        FI_PROTO_PSMX2 = 15;
        #[since(1, 6)] FI_PROTO_SHM = 16;
        #[since(1, 7)] FI_PROTO_MRAIL = 17;
        #[since(1, 7)] FI_PROTO_RSTREAM = 18;
        #[since(1, 7)] FI_PROTO_RDMA_CM_IB_XRC = 19;
        #[since(1, 8)] FI_PROTO_EFA = 20;
        #[since(1, 12)] FI_PROTO_PSMX3 = 21;
        #[since(1, 15)] FI_PROTO_RXM_TCP = 22;
        #[since(1, 15)] FI_PROTO_OPX = 23;
        #[since(1, 16)] FI_PROTO_CXI = 24;
        #[since(1, 16)] FI_PROTO_XNET = 25;
        #[since(1, 18)] FI_PROTO_COLL = 26;
        #[since(1, 18)] FI_PROTO_UCX = 27;
        #[since(1, 19)] FI_PROTO_SM2 = 28;
        #[since(1, 21)] FI_PROTO_CXI_RNR = 29;
        #[since(2, 0)] FI_PROTO_LPP = 30;
        #[since(2, 0)] FI_PROTO_LNX = 31;
    }

    // `fi_tx_attr.tclass`.
    u32 {
        #[since(1, 9)] FI_TC_UNSPEC = 0;
        #[since(1, 9)] FI_TC_DSCP = 256;
        #[since(1, 9)] FI_TC_LABEL = 512;
        #[since(1, 9)] FI_TC_BEST_EFFORT = 512;
        #[since(1, 9)] FI_TC_LOW_LATENCY = 513;
        #[since(1, 9)] FI_TC_DEDICATED_ACCESS = 514;
        #[since(1, 9)] FI_TC_BULK_DATA = 515;
        #[since(1, 9)] FI_TC_SCAVENGER = 516;
        #[since(1, 9)] FI_TC_NETWORK_CTRL = 517;
    }

    // `fi_ep_attr.mem_tag_format`.
    u64 {
        #[since(2, 0)] FI_TAG_BITS = 0;
        #[since(2, 0)] FI_TAG_MPI = 1;
        #[since(2, 0)] FI_TAG_CCL = 2;
        #[since(2, 0)] FI_TAG_MAX_FORMAT = 65536;
    }

    // `enum fi_bus_type`, `enum fi_link_state`.
    u32 {
        #[since(1, 7)] FI_BUS_UNSPEC = 0;
        #[since(1, 7)] FI_BUS_UNKNOWN = 0;
        #[since(1, 7)] FI_BUS_PCI = 1;
        #[since(1, 7)] FI_LINK_UNKNOWN = 0;
        #[since(1, 7)] FI_LINK_DOWN = 1;
        #[since(1, 7)] FI_LINK_UP = 2;
    }

    // `fid.fclass`.
    usize {
        FI_CLASS_UNSPEC = 0;
        FI_CLASS_FABRIC = 1;
        FI_CLASS_DOMAIN = 2;
        FI_CLASS_EP = 3;
        FI_CLASS_SEP = 4;
        FI_CLASS_RX_CTX = 5;
        FI_CLASS_SRX_CTX = 6;
        FI_CLASS_TX_CTX = 7;
        FI_CLASS_STX_CTX = 8;
        FI_CLASS_PEP = 9;
        FI_CLASS_INTERFACE = 10;
        FI_CLASS_AV = 11;
        FI_CLASS_MR = 12;
        FI_CLASS_EQ = 13;
        FI_CLASS_CQ = 14;
        FI_CLASS_CNTR = 15;
        FI_CLASS_WAIT = 16;
        FI_CLASS_POLL = 17;
        FI_CLASS_CONNREQ = 18;
        FI_CLASS_MC = 19;
        #[since(1, 7)] FI_CLASS_NIC = 20;
        #[since(1, 9)] FI_CLASS_AV_SET = 21;
        #[since(1, 13)] FI_CLASS_MR_CACHE = 22;
        #[since(1, 13)] FI_CLASS_MEM_MONITOR = 23;
        #[since(1, 16)] FI_CLASS_PEER_CQ = 24;
        #[since(1, 16)] FI_CLASS_PEER_SRX = 25;
        #[since(1, 16)] FI_CLASS_LOG = 26;
        #[since(1, 17)] FI_CLASS_PEER_AV = 27;
        #[since(1, 17)] FI_CLASS_PEER_AV_SET = 28;
        #[since(1, 19)] FI_CLASS_PEER_CNTR = 29;
        #[since(1, 20)] FI_CLASS_PROFILE = 30;
        #[since(2, 7)] FI_CLASS_XPU_CTX = 31;
    }

    // Commands of `fi_control`.
    c_int {
        FI_GETFIDFLAG = 0;
        FI_SETFIDFLAG = 1;
        FI_GETOPSFLAG = 2;
        FI_SETOPSFLAG = 3;
        FI_ALIAS = 4;
        FI_GETWAIT = 5;
        FI_ENABLE = 6;
        FI_BACKLOG = 7;
        FI_GET_RAW_MR = 8;
        FI_MAP_RAW_MR = 9;
        FI_UNMAP_KEY = 10;
        FI_QUEUE_WORK = 11;
        FI_CANCEL_WORK = 12;
        FI_FLUSH_WORK = 13;
        FI_REFRESH = 14;
        #[since(1, 7)] FI_DUP = 15;
        #[since(1, 10)] FI_GETWAITOBJ = 16;
        #[since(1, 12)] FI_GET_VAL = 17;
        #[since(1, 12)] FI_SET_VAL = 18;
        #[since(1, 13)] FI_EXPORT_FID = 19;
        #[since(2, 2)] FI_GET_FD = 20;
        #[since(2, 7)] FI_GET_MR_XPU_DESC = 21;
    }

    // Level and names of `fi_setopt` (fi_endpoint(3)).
    c_int {
        FI_OPT_ENDPOINT = 0;
        FI_OPT_MIN_MULTI_RECV = 0;
        FI_OPT_CM_DATA_SIZE = 1;
        #[since(1, 7)] FI_OPT_BUFFERED_MIN = 2;
        #[since(1, 7)] FI_OPT_BUFFERED_LIMIT = 3;
        #[since(1, 7)] FI_OPT_SEND_BUF_SIZE = 4;
        #[since(1, 7)] FI_OPT_RECV_BUF_SIZE = 5;
        #[since(1, 7)] FI_OPT_TX_SIZE = 6;
        #[since(1, 7)] FI_OPT_RX_SIZE = 7;
        #[since(1, 14)] FI_OPT_FI_HMEM_P2P = 8;
        #[since(1, 15)] FI_OPT_XPU_TRIGGER = 9;
        #[since(1, 18)] FI_OPT_CUDA_API_PERMITTED = 10;
        #[since(1, 21)] FI_OPT_SHARED_MEMORY_PERMITTED = 11;
        #[since(1, 22)] FI_OPT_MAX_MSG_SIZE = 12;
        #[since(1, 22)] FI_OPT_MAX_TAGGED_SIZE = 13;
        #[since(1, 22)] FI_OPT_MAX_RMA_SIZE = 14;
        #[since(1, 22)] FI_OPT_MAX_ATOMIC_SIZE = 15;
        #[since(1, 22)] FI_OPT_INJECT_MSG_SIZE = 16;
        #[since(1, 22)] FI_OPT_INJECT_TAGGED_SIZE = 17;
        #[since(1, 22)] FI_OPT_INJECT_RMA_SIZE = 18;
        #[since(1, 22)] FI_OPT_INJECT_ATOMIC_SIZE = 19;
        #[since(2, 2)] FI_OPT_FIREWALL_ADDR = 20;
    }

    // `FI_OPT_FI_HMEM_P2P`.
    c_int {
        #[since(1, 14)] FI_HMEM_P2P_ENABLED = 0;
        #[since(1, 14)] FI_HMEM_P2P_REQUIRED = 1;
        #[since(1, 14)] FI_HMEM_P2P_PREFERRED = 2;
        #[since(1, 14)] FI_HMEM_P2P_DISABLED = 3;
    }

    // `enum fi_hmem_iface`.
    u32 {
        #[since(1, 9)] FI_HMEM_SYSTEM = 0;
        #[since(1, 9)] FI_HMEM_CUDA = 1;
        #[since(1, 11)] FI_HMEM_ROCR = 2;
        #[since(1, 11)] FI_HMEM_ZE = 3;
        #[since(1, 15)] FI_HMEM_NEURON = 4;
        #[since(1, 16)] FI_HMEM_SYNAPSEAI = 5;
    }

    // `enum fi_wait_obj`.
    u32 {
        FI_WAIT_NONE = 0;
        FI_WAIT_UNSPEC = 1;
        FI_WAIT_SET = 2;
        FI_WAIT_FD = 3;
        FI_WAIT_MUTEX_COND = 4;
        #[since(1, 10)] FI_WAIT_YIELD = 5;
        #[since(1, 10)] FI_WAIT_POLLFD = 6;
    }

    // Events of an event queue (fi_eq(3)).
    u32 {
        FI_NOTIFY = 0;
        FI_CONNREQ = 1;
        FI_CONNECTED = 2;
        FI_SHUTDOWN = 3;
        FI_MR_COMPLETE = 4;
        FI_AV_COMPLETE = 5;
        FI_JOIN_COMPLETE = 6;
    }

    // `enum fi_cq_format`.
    u32 {
        FI_CQ_FORMAT_UNSPEC = 0;
        FI_CQ_FORMAT_CONTEXT = 1;
        FI_CQ_FORMAT_MSG = 2;
        FI_CQ_FORMAT_DATA = 3;
        FI_CQ_FORMAT_TAGGED = 4;
    }

    // `enum fi_cq_wait_cond`.
    u32 {
        FI_CQ_COND_NONE = 0;
        FI_CQ_COND_THRESHOLD = 1;
    }

    // `enum fi_cntr_events`.
    u32 {
        FI_CNTR_EVENTS_COMP = 0;
        #[since(1, 21)] FI_CNTR_EVENTS_BYTES = 1;
    }

    // `enum fi_datatype`.
    u32 {
        FI_INT8 = 0;
        FI_UINT8 = 1;
        FI_INT16 = 2;
        FI_UINT16 = 3;
        FI_INT32 = 4;
        FI_UINT32 = 5;
        FI_INT64 = 6;
        FI_UINT64 = 7;
        FI_FLOAT = 8;
        FI_DOUBLE = 9;
        FI_FLOAT_COMPLEX = 10;
        FI_DOUBLE_COMPLEX = 11;
        FI_LONG_DOUBLE = 12;
        FI_LONG_DOUBLE_COMPLEX = 13;
        #[since(1, 13)] FI_INT128 = 14;
        #[since(1, 13)] FI_UINT128 = 15;
        #[since(2, 0)] FI_FLOAT16 = 16;
        #[since(2, 0)] FI_BFLOAT16 = 17;
        #[since(2, 0)] FI_FLOAT8_E4M3 = 18;
        #[since(2, 0)] FI_FLOAT8_E5M2 = 19;
        #[since(1, 9)] FI_VOID = 256;
    }

    // `enum fi_op`.
    u32 {
        FI_MIN = 0;
        FI_MAX = 1;
        FI_SUM = 2;
        FI_PROD = 3;
        FI_LOR = 4;
        FI_LAND = 5;
        FI_BOR = 6;
        FI_BAND = 7;
        FI_LXOR = 8;
        FI_BXOR = 9;
        FI_ATOMIC_READ = 10;
        FI_ATOMIC_WRITE = 11;
        FI_CSWAP = 12;
        FI_CSWAP_NE = 13;
        FI_CSWAP_LE = 14;
        FI_CSWAP_LT = 15;
        FI_CSWAP_GE = 16;
        FI_CSWAP_GT = 17;
        FI_MSWAP = 18;
        #[since(2, 0)] FI_DIFF = 19;
        #[since(1, 9)] FI_NOOP = 256;
    }

    // `enum fi_collective_op`.
    fi_collective_op {
        #[since(1, 9)] FI_BARRIER = 0;
        #[since(1, 9)] FI_BROADCAST = 1;
        #[since(1, 9)] FI_ALLTOALL = 2;
        #[since(1, 9)] FI_ALLREDUCE = 3;
        #[since(1, 9)] FI_ALLGATHER = 4;
        #[since(1, 9)] FI_REDUCE_SCATTER = 5;
        #[since(1, 9)] FI_REDUCE = 6;
        #[since(1, 9)] FI_SCATTER = 7;
        #[since(1, 9)] FI_GATHER = 8;
    }
}
