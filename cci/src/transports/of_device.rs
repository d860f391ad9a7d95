//! How an endpoint gets the transport of its device, and what that is.

use super::{DRIVERS, RMA_RIGHTS, driver, inspect};
use crate::device::Device;
use crate::endpoint_options::EndpointOptions;
use cci_proto::Status;
use cci_transport::{Arguments, Core, Driver, OpenError, Protect, Scope, Security, Transport, TransportOptions};
use std::borrow::Cow;

impl Device {
    /// Whether endpoints on it move data by another communication library, or may do so: its
    /// transport does, or one of its ways. Such a library may in turn use this one, and then must
    /// not choose such a device.
    ///
    /// ```
    /// let context = cci::Context::found()?;
    /// assert!(context.devices().iter().all(|device| !device.uses_library()));
    /// # Ok::<(), cci::OpenError>(())
    /// ```
    #[must_use]
    pub fn uses_library(&self) -> bool {
        uses_library(self)
    }

    /// What protects the connections of its endpoints over a network, as a clause: "sealed by ...",
    /// or "plain, since ...". It reads the file of the secret. It has no byte of the secret.
    ///
    /// # Errors
    ///
    /// No endpoint opens for the same reason: a secret is named and cannot be used, or the device
    /// requires one and there is none.
    ///
    /// ```
    /// let context = cci::Context::found()?;
    /// for device in context.devices() {
    ///     println!("{}: {}", device.name, device.protection()?);
    /// }
    /// # Ok::<(), cci::OpenError>(())
    /// ```
    pub fn protection(&self) -> Result<String, OpenError> {
        let Some(own) = driver(&self.transport) else { return Ok("plain, since nothing can seal it".into()) };
        if own.scope < Scope::Network {
            return Ok("within this host, so that nothing of it crosses a network".into());
        }
        let keys = own_keys(self);
        let ways = own.over.map(|over| (over.ways)(&keys, DRIVERS));
        let seals = |way: &&str| driver(way).is_some_and(Driver::seals);
        if !own.seals() || ways.is_some_and(|ways| !ways.iter().any(seals)) {
            return Ok("plain, since nothing can seal it".into());
        }
        let all = if own.over.is_some() { keys.into_owned() } else { own.with_environment(&keys) };
        Ok(Security::of(&Arguments::check(own, &all)?, None)?.to_string())
    }
}

/// How many ways the core of an endpoint with this service on this device needs; 0: none.
pub(crate) fn ways(device: &Device, service: Option<&str>) -> u8 {
    let over = driver(&device.transport).and_then(|driver| driver.over);
    over.map_or(0, |over| u8::try_from((over.most)(&own_keys(device), DRIVERS, service)).unwrap_or(u8::MAX))
}

/// Leaves out ways of a device that stands over others. False: no way is left.
pub(crate) fn keep_ways(device: &mut Device, keeps: impl Fn(&str) -> bool) -> bool {
    let Some((driver, over)) = driver(&device.transport).and_then(|driver| Some((driver, driver.over?))) else {
        return true;
    };
    let own = own_keys(device).into_owned();
    let all = (over.ways)(&own, DRIVERS);
    let kept: Vec<_> = all.iter().copied().filter(|name| keeps(name)).collect();
    if kept.len() < all.len() && !kept.is_empty() {
        device.arguments.push((over.key.to_owned(), kept.join(",")));
        let condition = inspect(driver, &own_keys(device));
        (device.up, device.reason, device.max_send_size) = (condition.up, condition.reason, condition.max_send_size);
    }
    !kept.is_empty()
}

/// Whether the transport of a device, or one of its ways, moves data by another library.
pub(crate) fn uses_library(device: &Device) -> bool {
    let Some(own) = driver(&device.transport) else { return false };
    let ways = own.over.map_or_else(Vec::new, |over| (over.ways)(&own_keys(device), DRIVERS));
    own.uses_library || ways.into_iter().filter_map(driver).any(|way| way.uses_library)
}

/// Whether peers may read and write every registration of endpoints on this device.
pub(crate) fn rights_are_open(device: &Device) -> Result<bool, OpenError> {
    let Some((_, value)) = device.arguments.iter().rfind(|(key, _)| key == RMA_RIGHTS.name) else { return Ok(false) };
    RMA_RIGHTS.check.accept(value).map_err(|remedy| {
        OpenError::new(Status::Inval, format!("the value of the key '{}' is '{value}'; {remedy}", RMA_RIGHTS.name))
    })?;
    Ok(value == "open")
}

/// The keys of a device that its transport reads.
fn own_keys(device: &Device) -> Cow<'_, [(String, String)]> {
    let common = |(key, _): &(String, String)| key == RMA_RIGHTS.name;
    if device.arguments.iter().any(common) {
        Cow::Owned(device.arguments.iter().filter(|pair| !common(pair)).cloned().collect())
    } else {
        Cow::Borrowed(&device.arguments)
    }
}

/// Opens the transport of an endpoint with this core.
pub(crate) fn open(core: &Core, device: &Device, options: &EndpointOptions) -> Result<Box<dyn Transport>, OpenError> {
    let name = &device.transport;
    let driver = driver(name)
        .ok_or_else(|| OpenError::new(Status::NoDev, format!("the transport {name} is not in this build")))?;
    let arguments = own_keys(device);
    let options = TransportOptions {
        service: options.service.as_deref(),
        threading: options.threading,
        drivers: DRIVERS,
        #[cfg(feature = "trace")]
        stamps: options.stamps.clone(),
        ..TransportOptions::new(&arguments, device.max_send_size)
    };
    let transport = cci_transport::within_one_open(|| (driver.open)(core, &options))?;
    if driver.scope == Scope::Network && driver.over.is_none() && !driver.seals() {
        core.note_protection(Protect::Plain);
    }
    #[cfg(feature = "trace")]
    if let Some(stamps) = &options.stamps {
        return Ok(Box::new(cci_transport::trace::Traced::new(transport, stamps.clone())));
    }
    Ok(transport)
}

#[cfg(test)]
mod tests {
    use crate::Context;

    #[test]
    fn the_protection_of_a_device_is_that_of_its_keys() {
        let context = Context::found().expect("devices");
        let of = |transport: &str, keys: &[(&str, &str)]| {
            let mut device =
                context.devices().iter().find(|device| device.transport == transport).expect("one").clone();
            device.arguments.extend(keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
            device.protection().map_err(|error| error.to_string())
        };
        let digits = "5f".repeat(32);
        for transport in ["auto", "sock", "tcp"] {
            let sealed = of(transport, &[("secret", &digits)]).expect("a good secret");
            assert!(sealed.starts_with("sealed by AES-256-GCM") && !sealed.contains(&digits), "{transport}: {sealed}");
            let plain = of(transport, &[("secret", &digits), ("security", "off")]).expect("none is needed");
            assert!(plain.starts_with("plain, since the key security"), "{transport}: {plain}");
            assert!(of(transport, &[("secret_file", "/nowhere")]).expect_err("no file").contains("/nowhere"));
        }
        assert!(of("sm", &[]).expect("none is needed").starts_with("within this host"));
        assert!(of("auto", &[("ways", "sm")]).expect("none is needed").starts_with("plain, since nothing"));
    }
}
