//! Teardown: how operations and connections end.

pub(super) mod ending;
pub(super) mod farewell;
