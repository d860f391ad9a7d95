//! Operations of a host of its own, by their contexts.

use cci::Notify;

/// Contexts of the host's own operations: what stands above the token.
const KIND_SHIFT: u32 = 56;
pub(crate) const TRIGGER: u64 = 1;
const TRANSFER: u64 = 2;
const MIRROR: u64 = 3;
pub(crate) const PROBE: u64 = 4;

/// The context of an operation.
pub(crate) fn context(kind: u64, token: u64) -> u64 {
    kind << KIND_SHIFT | token
}

/// What an operation of the host's own was.
pub(crate) enum Operation {
    Trigger(u64),
    Transfer(u64),
    Mirror(u64),
    Probe(u64),
    Other,
}

impl Operation {
    pub(crate) fn of(context: u64) -> Self {
        let token = context & ((1 << KIND_SHIFT) - 1);
        match context >> KIND_SHIFT {
            TRIGGER => Self::Trigger(token),
            TRANSFER => Self::Transfer(token),
            MIRROR => Self::Mirror(token),
            PROBE => Self::Probe(token),
            _ => Self::Other,
        }
    }

    pub(crate) fn transfer(token: u64) -> Notify {
        Notify::Always(context(TRANSFER, token))
    }

    pub(crate) fn mirror(operation: u64) -> Notify {
        Notify::Always(context(MIRROR, operation))
    }
}
