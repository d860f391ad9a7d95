//! Bits that operations and completions have: those of libfabric, without its prefix
//! (`fi_endpoint(3)`, `fi_cq(3)`, `fi_tagged(3)`). `TRANSMIT` is what a queue is bound with for
//! sends and accesses.

pub use cci_fabric_sys::{
    FI_CLAIM as CLAIM, FI_COMPLETION as COMPLETION, FI_DELIVERY_COMPLETE as DELIVERY_COMPLETE, FI_DISCARD as DISCARD,
    FI_INJECT as INJECT, FI_INJECT_COMPLETE as INJECT_COMPLETE, FI_MSG as MSG, FI_MULTI_RECV as MULTI_RECV,
    FI_PEEK as PEEK, FI_READ as READ, FI_RECV as RECV, FI_REMOTE_CQ_DATA as REMOTE_CQ_DATA,
    FI_REMOTE_READ as REMOTE_READ, FI_REMOTE_WRITE as REMOTE_WRITE, FI_RMA as RMA,
    FI_SELECTIVE_COMPLETION as SELECTIVE_COMPLETION, FI_SEND as SEND, FI_SEND as TRANSMIT, FI_TAGGED as TAGGED,
    FI_TRANSMIT_COMPLETE as TRANSMIT_COMPLETE, FI_WRITE as WRITE,
};
