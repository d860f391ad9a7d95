//! Files with secrets, and devices that listen on the network without one.

use super::finding::{Finding, Verdict};
use cci::{Context, Device, Driver, Scope};
use cci_seal::Psk;
use cci_seal::secret::default_path;
use std::path::{Path, PathBuf};

/// What is known of a device: its name, whether it listens on the network, and what protects its
/// connections.
type Listener<'d> = (&'d str, bool, Result<String, String>);

/// One finding for each file that a process takes its secret from, and for each device on the
/// network that is in clear.
pub(super) fn findings() -> Vec<Finding> {
    let variable = std::env::var_os("CCI_SECRET_FILE").filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = default_path().filter(|path| path.exists());
    let mut all: Vec<_> = variable.iter().chain(&home).map(|path| file(path)).collect();
    // The finding about devices has what is wrong with the configuration.
    let context = Context::new().ok();
    let devices = context.iter().flat_map(|context| context.devices()).filter(|device| device.up);
    let variable = std::env::var("CCI_LISTEN").ok();
    all.extend(devices.filter_map(|device| {
        let driver = cci::driver(&device.transport).filter(|driver| driver.scope == Scope::Network)?;
        let protection = device.protection().map_err(|error| error.to_string());
        judge((&device.name, is_open(driver, device, variable.as_deref()), protection))
    }));
    all
}

/// Whether a file has a secret that processes of this user can use.
fn file(path: &Path) -> Finding {
    let subject = "secret file";
    let psk = Psk::from_file(path).map_err(|error| error.to_string());
    match psk.and_then(|psk| psk.label().map_err(|refused| refused.to_string())) {
        Ok(label) => Finding::ok(subject, format!("{} has the secret {label}", path.display())),
        Err(why) => broken(subject, &why),
    }
}

/// A finding from a sentence whose remedy stands behind its last semicolon.
fn broken(subject: &str, sentence: &str) -> Finding {
    let (found, remedy) = sentence.rsplit_once("; ").unwrap_or((sentence, "make another one with `cci key new`"));
    Finding::with_remedy(subject, Verdict::Fails, found, remedy)
}

/// Whether endpoints without a service listen on the network. `variable`: the value of
/// `CCI_LISTEN`.
fn is_open(driver: &Driver, device: &Device, variable: Option<&str>) -> bool {
    let keys = driver.with_environment(&device.arguments);
    let key = |name: &str| keys.iter().rfind(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let is_loopback = |ip: &str| ip.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match (key("ip"), key("interface"), key("listen")) {
        (Some(ip), ..) => !is_loopback(ip),
        (_, Some(interface), _) => interface != "lo",
        (_, _, Some(listen)) => listen == "network",
        _ => variable == Some("network") && driver.key("listen").is_some(),
    }
}

/// None for a device that is sealed, or only for this host.
fn judge((name, is_open, protection): Listener<'_>) -> Option<Finding> {
    let subject = format!("security of {name}");
    match protection {
        Err(why) => Some(broken(&subject, &why)),
        Ok(clause) if is_open && clause.starts_with("plain") => Some(Finding::with_remedy(
            subject,
            Verdict::Hint,
            format!("it listens on the network, and connections are {clause}"),
            "make a secret with `cci key new` and copy its file to each host, or use a network whose every node is \
             trusted",
        )),
        Ok(clause) => is_open.then(|| Finding::ok(subject, format!("it listens on the network: {clause}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_secret_that_others_can_read_fails_with_its_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let label = Psk::write_new(&path).unwrap().label().unwrap().to_string();
        assert!(file(&path).verdict == Verdict::Ok && file(&path).found.contains(&label));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let found = file(&path);
        assert_eq!((found.verdict, found.remedy.as_deref()), (Verdict::Fails, Some("chmod 600 it")));
        assert!(found.found.contains("0640") && found.found.contains(path.to_str().unwrap()), "{found:?}");
    }

    #[test]
    fn a_listener_on_the_network_in_clear_is_named() {
        let plain = || Ok("plain, since there is no secret".to_owned());
        let found = judge(("net0", true, plain())).expect("it is in clear");
        assert_eq!(found.verdict, Verdict::Hint);
        assert!(found.subject.contains("net0") && found.remedy.unwrap().contains("cci key new"));
        assert_eq!(judge(("net0", false, plain())), None, "only its host reaches it");
        let sealed = judge(("net0", true, Ok("sealed by a cipher".into()))).expect("it listens");
        assert_eq!(sealed.verdict, Verdict::Ok);
        let broken = judge(("net0", false, Err("cannot use it: it is short; make another".into())));
        assert_eq!(
            broken.map(|found| (found.verdict, found.remedy)),
            Some((Verdict::Fails, Some("make another".into())))
        );
    }

    #[test]
    fn keys_and_the_environment_say_who_reaches_a_device() {
        let context = Context::found().unwrap();
        let of = |keys: &[(&str, &str)], variable| {
            let mut device = context.default_device().unwrap().clone();
            device.arguments = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            is_open(cci::driver(&device.transport).unwrap(), &device, variable)
        };
        assert!(of(&[("listen", "network")], None) && of(&[], Some("network")));
        assert!(of(&[("ip", "192.0.2.7")], None) && of(&[("listen", "network")], Some("local")));
        assert!(!of(&[], None) && !of(&[("listen", "local")], Some("network")) && !of(&[("ip", "127.0.0.1")], None));
    }
}
