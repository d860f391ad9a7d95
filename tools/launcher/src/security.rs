//! What protects the connections between ranks.

use cci_report::names::Choice;

/// What the launcher writes where it starts a job in clear: who reads the output of a job is to
/// learn of it, not only who wrote the command.
pub(crate) const IN_CLEAR: &str = "--security off: whoever is on the path between two hosts reads and changes what \
                                   ranks send; leave the option out to seal it";

/// What protects the connections between ranks over a network. Devices that have the key `security`
/// do as that states.
///
/// ```
/// use cci_launcher::{RunOptions, Security};
///
/// assert_eq!(RunOptions::default().security, Security::Psk, "sealed unless somebody says so");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the command line has no other")]
pub enum Security {
    /// They are sealed with the secret of the job.
    #[default]
    Psk,
    /// They are in clear, once both ends have proven the secret.
    Off,
}

impl Choice for Security {
    const CHOICES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Psk, "psk", "sealed with the secret of the job"),
        (Self::Off, "off", "in clear: whoever is on the path reads and changes it"),
    ];
}
