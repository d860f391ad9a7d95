//! What a device asks of its connections over a network: the policy, the secret, and what is said
//! of both (`docs/design/sealed.md`).

use crate::{Arguments, Check, Driver, Key, OpenError};
use cci_proto::Status;
use cci_seal::Psk;
use cci_seal::secret::{Given, Origin, search};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// What an endpoint asks of each of its connections over a network.
///
/// # Example
///
/// ```
/// # use cci_transport::Protect;
/// fn may_be_read(protect: Protect) -> bool {
///     protect != Protect::Sealed
/// }
/// assert!(may_be_read(Protect::Plain) && may_be_read(Protect::Prefer));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protect {
    /// Nothing: it is plain.
    #[default]
    Plain,
    /// That it is sealed, where the peer agrees. It stops no active attacker.
    Prefer,
    /// That it is sealed.
    Sealed,
}

/// The security of a device: what it asks, with which secret, and where that was found.
///
/// # Example
///
/// ```
/// # use cci_transport as cci;
/// use cci::{Protect, Security};
///
/// let security = Security::off();
/// assert_eq!(security.protect(), Protect::Plain);
/// assert!(security.to_string().starts_with("plain"));
/// ```
#[derive(Clone, Debug)]
pub struct Security {
    protect: Protect,
    secret: Option<(Arc<Psk>, Origin)>,
    is_off: bool,
}

impl Security {
    /// The key `security`: `psk` (the default: sealed if there is a secret, and nothing else then),
    /// `required` (the same, and no endpoint without a secret), `prefer` (sealed where the peer
    /// agrees), `off` (plain, whatever secret there is).
    pub const SECURITY: Key = Key { name: "security", check: Check::OneOf(&["psk", "required", "prefer", "off"]) };
    /// The key `secret_file`: a file with the secret, 64 hexadecimal digits.
    pub const SECRET_FILE: Key = Key { name: "secret_file", check: Check::Text };
    /// The key `secret`: the digits themselves.
    pub const SECRET: Key = Key { name: "secret", check: Check::Secret(check_secret) };

    /// Plain connections.
    #[must_use]
    pub const fn off() -> Self {
        Self { protect: Protect::Plain, secret: None, is_off: true }
    }

    /// Connections that are sealed under this secret, or plain where the peer does not agree and
    /// `protect` allows that. For whoever has a secret at hand.
    #[must_use]
    pub fn under(psk: Psk, protect: Protect) -> Self {
        match protect {
            Protect::Plain => Self::off(),
            _ => Self { protect, secret: Some((Arc::new(psk), Origin::Digits)), is_off: false },
        }
    }

    /// Reads the keys of a device, and searches for its secret. `job`: what `cci run` has handed
    /// down, if this process is one of a job. The first of these counts: the keys `secret` and
    /// `secret_file`, `CCI_SECRET_FILE`, the job's, and the user's own file.
    ///
    /// # Errors
    ///
    /// A secret is named and cannot be used, or there is none and the device requires one.
    pub fn of(arguments: &Arguments<'_>, job: Option<Psk>) -> Result<Self, OpenError> {
        let policy = arguments.text(Self::SECURITY.name).unwrap_or("psk");
        if policy == "off" {
            return Ok(Self::off());
        }
        let digits = arguments.text(Self::SECRET.name).map(Given::Digits);
        if digits.is_some() && arguments.text(Self::SECRET_FILE.name).is_some() {
            let what = "there are both the keys secret and secret_file; remove one of them";
            return Err(OpenError::new(Status::Inval, what));
        }
        let file = arguments.text(Self::SECRET_FILE.name).map(|file| Given::File(Path::new(file)));
        let found = search(digits.or(file), job).map_err(|error| {
            let status = if error.is_limit() { Status::NoMem } else { Status::Inval };
            OpenError::new(status, format!("cannot seal connections: {error}"))
        })?;
        if found.is_none() && policy == "required" {
            let what = "the key security is 'required', and there is no secret; make one with `cci key new`, and name \
                        its file by the key secret_file or by CCI_SECRET_FILE";
            return Err(OpenError::new(Status::Inval, what));
        }
        let protect = match (&found, policy) {
            (None, _) => Protect::Plain,
            (Some(_), "prefer") => Protect::Prefer,
            (Some(_), _) => Protect::Sealed,
        };
        let security = Self { protect, secret: found.map(|found| (Arc::new(found.psk), found.origin)), is_off: false };
        crate::log_event!(info, security = %security, "what connections over a network are protected by");
        Ok(security)
    }

    /// Returns what an endpoint asks of its connections.
    #[must_use]
    pub fn protect(&self) -> Protect {
        self.protect
    }

    /// Returns the secret, unless connections are plain.
    #[must_use]
    pub fn psk(&self) -> Option<&Arc<Psk>> {
        self.secret.as_ref().map(|(psk, _)| psk)
    }

    /// Returns where the secret was found.
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        self.secret.as_ref().map(|(_, origin)| origin)
    }
}

impl Driver {
    /// Whether its connections can be sealed: it has the keys of [`Security`].
    #[must_use]
    pub fn seals(&self) -> bool {
        self.key(Security::SECURITY.name).is_some()
    }
}

/// A clause for `info`, `explain` and logs: "sealed by AES-256-GCM (AWS-LC) under the key
/// secret_file (/run/secret)". It has no byte of the secret.
impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((_, origin)) = &self.secret else {
            let why = if self.is_off { "the key security is 'off'" } else { "there is no secret (`cci key new`)" };
            return write!(f, "plain, since {why}");
        };
        let prefers = if self.protect == Protect::Prefer { ", where the peer agrees" } else { "" };
        write!(f, "sealed by {} under the secret of {origin}{prefers}", cci_seal::cipher_name())
    }
}

fn check_secret(digits: &str) -> Result<(), String> {
    Psk::parse(digits).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    static DRIVER: Driver = Driver {
        name: "wire",
        scope: crate::Scope::Network,
        rank: 1,
        priority: 1,
        is_link: true,
        uses_library: false,
        example_uri: "wire://1",
        keys: &[Security::SECURITY, Security::SECRET_FILE, Security::SECRET],
        loopback: &[],
        discover: Vec::new,
        inspect: |_| crate::Condition { up: true, reason: String::new(), max_send_size: 0 },
        open: |_, _| Err(OpenError::new(Status::NoDev, "there is none")),
        over: None,
    };

    fn of(pairs: &[(&str, &str)]) -> Result<Security, String> {
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let arguments = Arguments::check(&DRIVER, &pairs).map_err(|error| error.to_string())?;
        Security::of(&arguments, None).map_err(|error| error.to_string())
    }

    #[test]
    fn a_secret_has_connections_sealed_unless_the_policy_says_otherwise() {
        let digits = "5f".repeat(32);
        for (policy, expected) in [
            (None, Protect::Sealed),
            (Some("psk"), Protect::Sealed),
            (Some("required"), Protect::Sealed),
            (Some("prefer"), Protect::Prefer),
            (Some("off"), Protect::Plain),
        ] {
            let mut pairs = vec![("secret", &digits[..])];
            pairs.extend(policy.map(|policy| ("security", policy)));
            let security = of(&pairs).expect("a good secret");
            assert_eq!(security.protect(), expected, "{policy:?}");
            assert_eq!(security.psk().is_some(), expected != Protect::Plain);
            let said = security.to_string();
            assert!(
                !said.contains(&digits) && said.starts_with(if policy == Some("off") { "plain" } else { "sealed" })
            );
        }
        let refusal = of(&[("security", "maybe")]).expect_err("no policy");
        assert!(refusal.contains("write psk or required or prefer or off"), "{refusal}");
    }

    #[test]
    fn a_secret_that_cannot_be_used_is_refused_and_not_shown() {
        let refusal = of(&[("secret", "open sesame")]).expect_err("a passphrase");
        assert!(refusal.contains("cci key new") && !refusal.contains("sesame"), "{refusal}");
        let folder = std::env::temp_dir().join(format!("cci-security-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("secret");
        std::fs::write(&file, "5f".repeat(32)).expect("a file");
        let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("its owner");
        let path = file.to_str().expect("text");
        mode(0o644);
        assert!(of(&[("secret_file", path)]).is_err(), "others may read it");
        mode(0o600);
        let security = of(&[("secret_file", path)]).expect("a good file");
        assert!(security.to_string().contains(path), "{security}");
        assert!(of(&[("secret_file", "/nowhere"), ("security", "prefer")]).is_err(), "nothing falls through");
        std::fs::remove_dir_all(&folder).expect("its owner");
    }
}
