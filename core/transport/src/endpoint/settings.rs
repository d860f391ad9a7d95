//! What the program and the configuration set for the whole endpoint.

use super::{Core, CoreOptions, Settings};
use crate::Timeout;

impl Settings {
    /// Those of the options, and no timeouts.
    pub(super) fn new(options: &CoreOptions) -> Self {
        let CoreOptions { disconnect_events, present, patient, .. } = *options;
        Self { disconnect_events, present, patient, ..Self::default() }
    }
}

impl Core {
    /// The send timeout of connections opened from now on.
    #[must_use]
    pub fn send_timeout(&self) -> Timeout {
        self.settings.send_timeout
    }

    /// Sets the send timeout of connections opened from now on.
    pub fn set_send_timeout(&mut self, timeout: Timeout) {
        self.settings.send_timeout = timeout;
    }

    /// The keepalive timeout of connections opened from now on.
    #[must_use]
    pub fn keepalive(&self) -> Timeout {
        self.settings.keepalive
    }

    /// Sets the keepalive timeout of connections opened from now on.
    pub fn set_keepalive(&mut self, timeout: Timeout) {
        self.settings.keepalive = timeout;
    }

    /// Whether the end of a connection by its peer raises an event.
    #[must_use]
    pub fn has_disconnect_events(&self) -> bool {
        self.settings.disconnect_events
    }

    /// Whether peers are read and answered while the program makes no calls: by the progress
    /// thread, or by a transport that needs none for that.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.settings.present
    }

    /// Whether peers that owe acknowledgements are waited for until the network says that nobody is
    /// there, and not for a time only.
    #[must_use]
    pub fn is_patient(&self) -> bool {
        self.settings.patient
    }

    /// Whether peers may read and write every registration, whatever rights the program names:
    /// `rma_rights = open`.
    #[must_use]
    pub fn rights_are_open(&self) -> bool {
        self.settings.rights_are_open
    }

    /// Sets whether peers may read and write every registration.
    pub fn set_rights_open(&mut self, are_open: bool) {
        self.settings.rights_are_open = are_open;
    }
}
