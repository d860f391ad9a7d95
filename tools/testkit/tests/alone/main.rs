//! Tests of which one runs at a time ([`cci_conformance::alone`]), since they count descriptors or
//! measure processor time.

#![forbid(unsafe_code)]

mod auto_idle;
mod blocking_wakeups;
mod fairness;
mod sock_blocking;
mod sock_strangers;
mod tcp_idle;
mod unreadable_memory;
