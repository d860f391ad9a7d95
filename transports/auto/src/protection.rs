//! What an endpoint asks of its ways over a network: which are offered, and with which keys they
//! are opened (`docs/design/auto.md`, Ways that are sealed).

use cci_transport::{Arguments, Driver, Key, OpenError, Protect, Scope, Security};

/// The keys that ways over a network get as the device has them.
const KEYS: [Key; 3] = [Security::SECURITY, Security::SECRET_FILE, Security::SECRET];

/// The security of an endpoint.
pub(crate) struct Protection {
    protect: Protect,
    given: Vec<(String, String)>,
}

impl Protection {
    /// Reads the keys of a device, and searches for its secret. A secret that cannot be used is an
    /// error of the endpoint. As an error of each way it would leave the endpoint with weaker ways.
    pub(crate) fn of(arguments: &Arguments<'_>) -> Result<Self, OpenError> {
        let given = |key: &Key| Some((key.name.to_owned(), arguments.text(key.name)?.to_owned()));
        let protect = Security::of(arguments, None)?.protect();
        Ok(Self { protect, given: KEYS.iter().filter_map(given).collect() })
    }

    /// Keeps the ways that meet what is asked for. A sentence about each other one goes to
    /// `reasons`.
    pub(crate) fn offered(&self, ways: Vec<&'static Driver>, reasons: &mut Vec<String>) -> Vec<&'static Driver> {
        let is_met = |way: &&Driver| self.protect != Protect::Sealed || way.scope < Scope::Network || way.seals();
        let (offered, others): (Vec<_>, Vec<_>) = ways.into_iter().partition(is_met);
        let why = "it cannot seal connections; set security = prefer to use it all the same";
        reasons.extend(others.iter().map(|way| format!("{}: {why}", way.name)));
        offered
    }

    /// Adds what a way of this transport gets of these keys to its keys.
    pub(crate) fn extend(&self, own: &mut Vec<(String, String)>, way: &Driver) {
        let takes = |(key, _): &&(String, String)| way.scope == Scope::Network && way.key(key).is_some();
        own.extend(self.given.iter().filter(takes).cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci_proto::Status;
    use cci_transport::Condition;

    const fn driver(name: &'static str, scope: Scope, keys: &'static [Key]) -> Driver {
        Driver {
            name,
            scope,
            rank: 1,
            priority: 0,
            is_link: true,
            uses_library: false,
            example_uri: "none://1",
            keys,
            loopback: &[],
            discover: Vec::new,
            inspect: |_| Condition { up: true, reason: String::new(), max_send_size: 1 },
            open: |_, _| Err(OpenError::new(Status::NoDev, "there is none")),
            over: None,
        }
    }

    static NEAR: Driver = driver("near", Scope::Host, &KEYS);
    static SEALED: Driver = driver("sealed", Scope::Network, &KEYS);
    static CLEAR: Driver = driver("clear", Scope::Network, &[]);

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn protection(keys: &[(&str, &str)]) -> Protection {
        let keys = pairs(keys);
        Protection::of(&Arguments::check(&crate::DRIVER, &keys).expect("right keys")).expect("a good secret")
    }

    #[test]
    fn a_way_is_offered_only_if_it_meets_what_is_asked_for() {
        let digits = "5f".repeat(32);
        let offered = |security: &str| {
            let mut reasons = Vec::new();
            let ways = protection(&[("secret", &digits), ("security", security)])
                .offered(vec![&NEAR, &CLEAR, &SEALED], &mut reasons);
            (ways.iter().map(|way| way.name).collect::<Vec<_>>(), reasons)
        };
        for security in ["psk", "required"] {
            let (ways, reasons) = offered(security);
            assert_eq!(ways, ["near", "sealed"], "{security}: nothing of a host crosses a network");
            assert!(reasons.len() == 1 && reasons[0].starts_with("clear: it cannot seal"), "{reasons:?}");
        }
        for security in ["prefer", "off"] {
            assert_eq!(offered(security), (vec!["near", "clear", "sealed"], Vec::new()), "{security}");
        }
    }

    #[test]
    fn a_way_over_a_network_gets_the_keys_that_it_has() {
        let digits = "5f".repeat(32);
        let given = [("security", "prefer"), ("secret", &*digits)];
        let protection = protection(&given);
        let keys = |way: &Driver| {
            let mut own = pairs(&[("ip", "127.0.0.1")]);
            protection.extend(&mut own, way);
            own.split_off(1)
        };
        assert_eq!(keys(&SEALED), pairs(&given));
        assert!(keys(&NEAR).is_empty() && keys(&CLEAR).is_empty());
    }

    #[test]
    fn a_secret_that_cannot_be_used_opens_no_endpoint() {
        let keys = pairs(&[("secret_file", "/nowhere/secret")]);
        let arguments = Arguments::check(&crate::DRIVER, &keys).expect("right keys");
        let why = Protection::of(&arguments).err().expect("no such file").to_string();
        assert!(why.contains("/nowhere/secret") && why.contains("cci key new"), "{why}");
    }
}
