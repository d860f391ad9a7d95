//! The OS handle of an endpoint.

use cci_proto::Unusable;
use cci_transport::Endpoint;
use std::os::fd::{AsRawFd, RawFd};

/// Arms the endpoint's handle now, if it was handed out: ends adaptive spin and spinning.
///
/// # Errors
///
/// The endpoint cannot be used here.
pub fn arm(endpoint: &Endpoint) -> Result<(), Unusable> {
    endpoint.with(|core, transport| {
        if core.is_handle_in_use() {
            transport.arm(core);
        }
    })
}

/// Makes progress, and arms a descriptor that is readable when a call could move something; events
/// that wait do not count. None: there is something to do already, or no descriptor is left.
///
/// # Errors
///
/// The endpoint cannot be used here.
#[cfg(feature = "tokio")]
pub(crate) fn progress_and_arm(endpoint: &Endpoint) -> Result<Option<std::sync::Arc<std::os::fd::OwnedFd>>, Unusable> {
    endpoint.with(|core, transport| {
        transport.progress(core);
        transport.arm_in_call(core)
    })
}

/// The endpoint's handle itself, for a binding: open as long as the endpoint. From now on the
/// endpoint arms it.
///
/// # Errors
///
/// The endpoint cannot be used here.
pub fn handle(endpoint: &Endpoint) -> Result<RawFd, Unusable> {
    endpoint.with(|core, transport| {
        core.set_handle_in_use();
        transport.handle().as_raw_fd()
    })
}
