//! Devices from a configuration file, or found.

mod advice;
mod ini;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::names::SharedNames;
use crate::transports::of_device::keep_ways;
use crate::transports::{Known, RMA_RIGHTS, built_names, driver, driver_for_scheme, drivers, inspect, names};
use advice::advice;
pub(crate) use advice::nearest;
use cci_proto::Status;
use cci_transport::{Check, Condition, Driver, OpenError, Scope};
use ini::{Entry, Mistake, Section};
use std::cmp::Reverse;

/// The keys that every device has.
const CORE_KEYS: [&str; 4] = ["transport", "priority", "default", RMA_RIGHTS.name];

/// The devices of `file` (its name for messages, and its bytes), or those found, without the
/// transports that `selection` (`CCI_CTP`) leaves out: those up first, then the default, then by
/// priority and rate, descending.
pub(crate) fn devices(file: Option<(&str, &[u8])>, selection: &str) -> Result<Vec<Device>, OpenError> {
    let selection = Selection::parse(selection)?;
    let mut devices = match file {
        None => discovered(),
        Some((name, bytes)) => from_bytes(bytes).map_err(|mistake| {
            OpenError::new(Status::Inval, format!("{name}:{}: {}", mistake.line, mistake.sentence))
        })?,
    };
    devices.retain_mut(|device| selection.keeps_device(device));
    if file.is_none() {
        choose_default(&mut devices);
    }
    devices.sort_by_key(|device| Reverse((device.up, device.is_default, device.priority, device.rate)));
    Ok(devices)
}

/// The name of the transport that a URI names.
pub(crate) fn transport_of(uri: &str) -> Result<&'static str, OpenError> {
    let refused = |what: String| OpenError::new(Status::Inval, what);
    let Some((scheme, _)) = uri.split_once("://") else {
        let advice = "pass what a server printed, such as";
        return Err(refused(format!("'{uri}' is not a URI of an endpoint; {advice} {}", example_uri())));
    };
    if let Some(driver) = driver_for_scheme(scheme) {
        return Ok(driver.name);
    }
    let known = Known::of(scheme).ok_or_else(|| {
        let advice = advice(scheme, &built_names());
        refused(format!("the URI '{uri}' names an unknown transport '{scheme}'; {advice}"))
    })?;
    Ok(known.name())
}

/// What the URI of an endpoint looks like, of another host if possible: that of the first transport
/// between hosts.
fn example_uri() -> &'static str {
    let farthest = drivers().iter().rev().max_by_key(|driver| driver.scope);
    farthest.map_or("transport://address", |driver| driver.example_uri)
}

/// The devices of this host that need no configuration.
fn discovered() -> Vec<Device> {
    let of = |driver: &&'static Driver| {
        let found = (driver.discover)().into_iter();
        found
            .map(|found| built_device(&found.name, driver, found.arguments.clone(), &inspect(driver, &found.arguments)))
    };
    drivers().iter().flat_map(of).collect()
}

/// Makes one of the found devices the default one: programs that name no device get the best way to
/// each peer, or stay on this host, where shared memory is by far the faster.
fn choose_default(devices: &mut [Device]) {
    let is_over = |device: &Device| driver(&device.transport).is_some_and(|driver| driver.over.is_some());
    let stays = |device: &Device| driver(&device.transport).is_some_and(|driver| driver.scope == Scope::Host);
    let best = devices.iter().position(|device| device.up && is_over(device));
    if let Some(at) = best.or_else(|| devices.iter().position(stays)) {
        devices[at].is_default = true;
    }
}

fn built_device(name: &str, driver: &Driver, arguments: Vec<(String, String)>, condition: &Condition) -> Device {
    Device {
        name: name.to_owned(),
        transport: driver.name.to_owned(),
        up: condition.up,
        reason: condition.reason.clone(),
        arguments,
        max_send_size: condition.max_send_size,
        rate: 0,
        pci: None,
        priority: driver.priority,
        is_default: false,
        names: SharedNames::default(),
    }
}

fn absent_device(name: &str, known: Known, arguments: Vec<(String, String)>) -> Device {
    Device {
        name: name.to_owned(),
        transport: known.name().to_owned(),
        up: false,
        reason: absent(known.name()),
        arguments,
        max_send_size: 0,
        rate: 0,
        pci: None,
        priority: known.priority(),
        is_default: false,
        names: SharedNames::default(),
    }
}

fn from_bytes(bytes: &[u8]) -> Result<Vec<Device>, Mistake> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Mistake::new(line, "not UTF-8 text; save the file as UTF-8, or correct CCI_CONFIG if this is another file")
    })?;
    let mut devices = Vec::new();
    let mut default: Option<usize> = None;
    for section in ini::parse(text)? {
        let device = device(&section)?;
        if device.is_default {
            let line = section.entry("default").map_or(section.line, |entry| entry.line);
            if let Some(first) = default.replace(line) {
                let sentence = format!("[{}] is a second default, after line {first}; keep one of them", section.name);
                return Err(Mistake::new(line, sentence));
            }
        }
        devices.push(device);
    }
    Ok(devices)
}

/// Reads bytes as a file and as a selection, without trying any device.
pub(crate) fn check_bytes(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Selection::parse(text);
    for section in ini::parse(text).unwrap_or_default() {
        let Ok(known) = transport(&section) else { continue };
        let _ = (check_keys(&section, known), arguments(&section, known));
    }
}

fn device(section: &Section<'_>) -> Result<Device, Mistake> {
    let known = transport(section)?;
    check_keys(section, known)?;
    let arguments = arguments(section, known)?;
    let mut device = match known {
        Known::Built(driver) => {
            let own: Vec<_> = arguments.iter().filter(|(key, _)| key != RMA_RIGHTS.name).cloned().collect();
            built_device(section.name, driver, arguments, &inspect(driver, &own))
        }
        Known::Absent(..) => absent_device(section.name, known, arguments),
    };
    if let Some(entry) = section.entry("priority") {
        device.priority = number(section, entry, 100)?;
    }
    if let Some(entry) = section.entry("default") {
        device.is_default = number(section, entry, 1)? == 1;
    }
    Ok(device)
}

/// The keys of a section but those that the facade itself reads, with their values checked.
fn arguments(section: &Section<'_>, known: Known) -> Result<Vec<(String, String)>, Mistake> {
    let mut arguments = Vec::new();
    for entry in &section.entries {
        let key = match (entry.key, known) {
            ("transport" | "priority" | "default", _) => continue,
            (key, _) if key == RMA_RIGHTS.name => Some(&RMA_RIGHTS),
            (key, Known::Built(driver)) => driver.key(key),
            (_, Known::Absent(..)) => None,
        };
        if let Some(key) = key {
            check(section, entry, key.check)?;
        }
        arguments.push((entry.key.to_owned(), entry.value.to_owned()));
    }
    Ok(arguments)
}

/// Why a transport that exists cannot be used.
fn absent(transport: &str) -> String {
    let built = built_names();
    match built.split_last() {
        None => format!("the transport {transport} is not in this build, which has none"),
        Some((last, [])) => format!("the transport {transport} is not in this build; only {last} is"),
        Some((last, others)) => {
            format!("the transport {transport} is not in this build; only {} and {last} are", others.join(", "))
        }
    }
}

/// Refuses a value that this check does not accept.
fn check(section: &Section<'_>, entry: &Entry<'_>, check: Check) -> Result<(), Mistake> {
    let Entry { line, key, value } = entry;
    let sentence = |remedy| format!("'{key}' of [{}] is {}; {remedy}", section.name, check.show(value));
    check.accept(value).map_err(|remedy| Mistake::new(*line, sentence(remedy)))
}

/// A number from 0 to `most`.
fn number(section: &Section<'_>, entry: &Entry<'_>, most: u32) -> Result<u32, Mistake> {
    check(section, entry, Check::Number(0, most.into()))?;
    Ok(entry.value.parse().unwrap_or(most))
}

/// The transport that the section names.
fn transport(section: &Section<'_>) -> Result<Known, Mistake> {
    let name = section.name;
    let Some(entry) = section.entry("transport") else {
        // A misspelt key is the likelier reason than a missing one.
        let misspelt = section.entries.iter().find(|entry| nearest(entry.key, &["transport"]).is_some());
        return Err(match misspelt {
            Some(entry) => unknown_key(section, entry, &["transport"]),
            None => {
                let example = names().first().copied().unwrap_or_default();
                let sentence = format!("[{name}] has no transport; add a line such as transport = {example}");
                Mistake::new(section.line, sentence)
            }
        });
    };
    Known::of(entry.value).ok_or_else(|| {
        let advice = advice(entry.value, &names());
        Mistake::new(entry.line, format!("unknown transport '{}' of [{name}]; {advice}", entry.value))
    })
}

fn check_keys(section: &Section<'_>, known: Known) -> Result<(), Mistake> {
    let Some(own) = known.keys() else { return Ok(()) };
    let keys = [&CORE_KEYS[..], &own].concat();
    match section.entries.iter().find(|entry| !keys.contains(&entry.key)) {
        Some(entry) => Err(unknown_key(section, entry, &keys)),
        None => Ok(()),
    }
}

fn unknown_key(section: &Section<'_>, entry: &Entry<'_>, keys: &[&str]) -> Mistake {
    let advice = advice(entry.key, keys);
    Mistake::new(entry.line, format!("unknown key '{}' of [{}]; {advice}", entry.key, section.name))
}

/// Which transports `CCI_CTP` keeps.
enum Selection<'s> {
    All,
    Only(Vec<&'s str>),
    Without(Vec<&'s str>),
}

impl<'s> Selection<'s> {
    fn parse(text: &'s str) -> Result<Self, OpenError> {
        let text = text.trim();
        let list = text.strip_prefix('^').unwrap_or(text);
        let chosen: Vec<_> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if let Some(name) = chosen.iter().find(|name| Known::of(name).is_none()) {
            let advice = advice(name, &names());
            return Err(OpenError::new(Status::Inval, format!("CCI_CTP: unknown transport '{name}'; {advice}")));
        }
        Ok(match (chosen.is_empty(), text.starts_with('^')) {
            (true, _) => Self::All,
            (false, true) => Self::Without(chosen),
            (false, false) => Self::Only(chosen),
        })
    }

    /// Whether a device stays. One over several ways loses those that are left out, and stays while
    /// one is left; named alone, it keeps all.
    fn keeps_device(&self, device: &mut Device) -> bool {
        let is_over = driver(&device.transport).is_some_and(|driver| driver.over.is_some());
        let is_alone = matches!(self, Self::Only(names) if names[..] == [device.transport.as_str()]);
        if !is_over || is_alone {
            return self.keeps(&device.transport);
        }
        let is_left_out = matches!(self, Self::Without(names) if names.contains(&device.transport.as_str()));
        !is_left_out && keep_ways(device, |way| self.keeps(way))
    }

    fn keeps(&self, transport: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(&transport),
            Self::Without(names) => !names.contains(&transport),
        }
    }
}
