//! Devices from a configuration file, or found.

mod found;
mod ini;
mod known;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::transports::{RMA_RIGHTS, RMA_RIGHTS_VALUES};
use cci_proto::Status;
use cci_transport::OpenError;
use ini::{Entry, Mistake, Section};
use known::{CORE_KEYS, Known};
use std::cmp::Reverse;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Largest message that `mss` may ask for, bytes.
const MSS: RangeInclusive<u32> = 64..=1 << 20;

/// The devices of `file` (its name for messages, and its bytes), or those found, without the transports that `selection`
/// (`CCI_CTP`) leaves out: those up first, then the default, then by priority and rate, descending.
pub(crate) fn devices(file: Option<(&str, &[u8])>, selection: &str) -> Result<Vec<Device>, OpenError> {
    let selection = Selection::parse(selection)?;
    let mut devices = match file {
        // Without a configuration programs that name no device stay on this host, where shared memory is by far the faster.
        None => vec![Device { is_default: true, ..found::shared_memory("sm0") }, found::udp("sock0", &[])],
        Some((name, bytes)) => from_bytes(bytes).map_err(|mistake| {
            OpenError::new(Status::Inval, format!("{name}:{}: {}", mistake.line, mistake.sentence))
        })?,
    };
    devices.retain(|device| selection.keeps(&device.transport));
    devices.sort_by_key(|device| Reverse((device.up, device.is_default, device.priority, device.rate)));
    Ok(devices)
}

/// The name of the transport that a URI names.
pub(crate) fn transport_of(uri: &str) -> Result<&'static str, OpenError> {
    let refused = |what: String| OpenError::new(Status::Inval, what);
    let Some((scheme, _)) = uri.split_once("://") else {
        let example = "pass what a server printed, such as sock://192.0.2.1:5000";
        return Err(refused(format!("'{uri}' is not a URI of an endpoint; {example}")));
    };
    let known = known::transport(scheme).ok_or_else(|| {
        let advice = known::advice(scheme, &known::built_names());
        refused(format!("the URI '{uri}' names an unknown transport '{scheme}'; {advice}"))
    })?;
    Ok(known.name)
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

fn device(section: &Section<'_>) -> Result<Device, Mistake> {
    let known = transport(section)?;
    check_keys(section, known)?;
    let mut device = match known.name {
        "sm" => found::shared_memory(section.name),
        "sock" => found::udp(section.name, &socket_keys(section)?),
        "sim" => found::simulated(section.name),
        _ => Device {
            name: section.name.to_owned(),
            transport: known.name.to_owned(),
            up: false,
            reason: absent(known.name),
            arguments: Vec::new(),
            max_send_size: 0,
            rate: 0,
            pci: None,
            priority: known.priority,
            is_default: false,
        },
    };
    // Those of a socket are there already, without the keys that every device has.
    device.arguments.clear();
    for entry in &section.entries {
        match entry.key {
            "transport" => (),
            "priority" => device.priority = number(section, entry, &(0..=100))?,
            "default" => device.is_default = number::<u32>(section, entry, &(0..=1))? == 1,
            key => {
                if key == RMA_RIGHTS {
                    one_of(section, entry, &RMA_RIGHTS_VALUES)?;
                } else if known.name == "sm" {
                    shared_memory_key(section, entry, &mut device)?;
                }
                device.arguments.push((key.to_owned(), entry.value.to_owned()));
            }
        }
    }
    Ok(device)
}

/// Why a transport that exists cannot be used.
fn absent(transport: &str) -> String {
    let built = known::built_names();
    let (last, others) = built.split_last().map_or(("", &[][..]), |(last, others)| (*last, others));
    format!("the transport {transport} is not in this build; only {} and {last} are", others.join(", "))
}

/// The keys of a section that belong to its transport.
fn socket_keys(section: &Section<'_>) -> Result<Vec<(String, String)>, Mistake> {
    let own = section.entries.iter().filter(|entry| !CORE_KEYS.contains(&entry.key));
    own.map(|entry| {
        socket_key(section, entry)?;
        Ok((entry.key.to_owned(), entry.value.to_owned()))
    })
    .collect()
}

fn socket_key(section: &Section<'_>, entry: &Entry<'_>) -> Result<(), Mistake> {
    let (name, value) = (section.name, entry.value);
    let wrong = |want: &str| Err(Mistake::new(entry.line, format!("'{}' of [{name}] is '{value}'; {want}", entry.key)));
    match entry.key {
        "port" => number::<u32>(section, entry, &(0..=65_535)).map(|_| ()),
        "mtu" => number::<u32>(section, entry, &(1280..=65_535)).map(|_| ()),
        "bufsize" => number::<u32>(section, entry, &(65_536..=1 << 30)).map(|_| ()),
        "ip" if value.parse::<IpAddr>().is_err() => wrong("write an IP address of this host, such as 192.0.2.1"),
        "check" => one_of(section, entry, &["always", "remote"]),
        _ => Ok(()),
    }
}

/// Refuses a value that is none of these two.
fn one_of(section: &Section<'_>, entry: &Entry<'_>, values: &[&str; 2]) -> Result<(), Mistake> {
    if values.contains(&entry.value) {
        return Ok(());
    }
    let (name, value, [one, other]) = (section.name, entry.value, values);
    Err(Mistake::new(entry.line, format!("'{}' of [{name}] is '{value}'; write {one} or {other}", entry.key)))
}

fn shared_memory_key(section: &Section<'_>, entry: &Entry<'_>, device: &mut Device) -> Result<(), Mistake> {
    match entry.key {
        "mss" => device.max_send_size = number(section, entry, &MSS)?,
        "pid" | "id" => {
            number::<u32>(section, entry, &(0..=u32::MAX))?;
        }
        "rma" => one_of(section, entry, &["auto", "segment"])?,
        // `path` is free text.
        _ => (),
    }
    Ok(())
}

/// The transport that the section names.
fn transport(section: &Section<'_>) -> Result<&'static Known, Mistake> {
    let name = section.name;
    let Some(entry) = section.entry("transport") else {
        // A misspelt key is the likelier reason than a missing one.
        let misspelt = section.entries.iter().find(|entry| known::nearest(entry.key, &["transport"]).is_some());
        return Err(match misspelt {
            Some(entry) => unknown_key(section, entry, &["transport"]),
            None => Mistake::new(section.line, format!("[{name}] has no transport; add a line such as transport = sm")),
        });
    };
    known::transport(entry.value).ok_or_else(|| {
        let advice = known::advice(entry.value, &known::names());
        Mistake::new(entry.line, format!("unknown transport '{}' of [{name}]; {advice}", entry.value))
    })
}

fn check_keys(section: &Section<'_>, known: &Known) -> Result<(), Mistake> {
    let Some(keys) = known.keys else { return Ok(()) };
    let keys = [&CORE_KEYS, keys].concat();
    match section.entries.iter().find(|entry| !keys.contains(&entry.key)) {
        Some(entry) => Err(unknown_key(section, entry, &keys)),
        None => Ok(()),
    }
}

fn unknown_key(section: &Section<'_>, entry: &Entry<'_>, keys: &[&str]) -> Mistake {
    let advice = known::advice(entry.key, keys);
    Mistake::new(entry.line, format!("unknown key '{}' of [{}]; {advice}", entry.key, section.name))
}

fn number<T>(section: &Section<'_>, entry: &Entry<'_>, range: &RangeInclusive<T>) -> Result<T, Mistake>
where
    T: FromStr + PartialOrd + std::fmt::Display,
{
    entry.value.parse().ok().filter(|value| range.contains(value)).ok_or_else(|| {
        let (key, value, first, last) = (entry.key, entry.value, range.start(), range.end());
        let sentence =
            format!("'{key}' of [{}] is '{value}'; write a whole number from {first} to {last}", section.name);
        Mistake::new(entry.line, sentence)
    })
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
        let names: Vec<_> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if let Some(name) = names.iter().find(|name| known::transport(name).is_none()) {
            let advice = known::advice(name, &known::names());
            return Err(OpenError::new(Status::Inval, format!("CCI_CTP: unknown transport '{name}'; {advice}")));
        }
        Ok(match (names.is_empty(), text.starts_with('^')) {
            (true, _) => Self::All,
            (false, true) => Self::Without(names),
            (false, false) => Self::Only(names),
        })
    }

    fn keeps(&self, transport: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(&transport),
            Self::Without(names) => !names.contains(&transport),
        }
    }
}
