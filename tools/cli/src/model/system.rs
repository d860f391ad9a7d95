//! The parameters of a system: from a preset, from a file, and from the command line.

use super::quantity::{bytes, bytes_per_ns, ns_per_byte, time_ns};
use super::refusal::told;
use cci_model::{FirstTransmission, Link, Overhead, Parameters, Preset, Relay, preset};
use cci_report::sizes::parse_key;
use cci_report::{UserError, while_doing};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a system is given by.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SystemArguments {
    /// A published system: sci2000. It is taken when nothing else is given
    #[arg(long, value_name = "NAME", help_heading = "System")]
    pub(crate) preset: Option<String>,
    /// Parameters from a JSON file, as `cci model fit` writes it
    #[arg(long, value_name = "FILE", conflicts_with = "preset", help_heading = "System")]
    pub(crate) parameters: Option<PathBuf>,
    /// A parameter: o_0=2085ns m_0=64 c=11.6ns l_p=7ns l_f=60ns l_s=670ns rate=3.2Gb/s header=16
    /// relay=cut-through|store first=in-overhead|apart; o(m) = o_0 + c (m - m_0). Without --preset
    /// or --parameters o_0, l_p, l_f and l_s are needed
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_key, help_heading = "System")]
    pub(crate) set: Vec<(String, String)>,
    /// Size of the message in bytes; 64 when absent
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "System")]
    pub(crate) message: Option<f64>,
}

/// Parameters, and where they are from.
pub(crate) struct System {
    pub(crate) parameters: Parameters,
    /// The preset, if that is what they are from.
    pub(crate) preset: Option<Preset>,
    /// Whether they are the preset's, as it is.
    pub(crate) unchanged: bool,
}

impl SystemArguments {
    /// The system.
    pub(crate) fn system(&self) -> Result<System, UserError> {
        let nothing = self.preset.is_none() && self.parameters.is_none() && self.set.is_empty();
        let name = if nothing { Some("sci2000") } else { self.preset.as_deref() };
        let known = |name: &str| {
            preset(name).ok_or_else(|| UserError(format!("there is no preset `{name}`; there is sci2000")))
        };
        let preset = name.map(known).transpose()?;
        let mut parameters = match (&preset, &self.parameters) {
            (Some(preset), _) => preset.parameters,
            (None, Some(path)) => read(path)?,
            (None, None) => UNKNOWN,
        };
        for (key, value) in &self.set {
            set(&mut parameters, key, value).map_err(|why| UserError(format!("--set {key}={value}: {why}")))?;
        }
        parameters.message_bytes = self.message.unwrap_or(parameters.message_bytes);
        none_missing(&parameters)?;
        parameters.check().map_err(told)?;
        Ok(System { parameters, preset, unchanged: self.set.is_empty() && self.message.is_none() })
    }
}

/// Before anything is set; what stays NaN is missing.
const UNKNOWN: Parameters = Parameters {
    overhead: Overhead { at_reference_ns: f64::NAN, reference_bytes: 64.0, per_byte_ns: 0.0 },
    propagation_ns: f64::NAN,
    forwarding_ns: f64::NAN,
    switching_ns: f64::NAN,
    link: Link {
        bytes_per_ns: None,
        header_bytes: 0.0,
        relay: Relay::CutThrough,
        first: FirstTransmission::InOverhead,
    },
    message_bytes: 64.0,
};

fn set(parameters: &mut Parameters, key: &str, value: &str) -> Result<(), UserError> {
    match key {
        "o_0" => parameters.overhead.at_reference_ns = time_ns(value)?,
        "m_0" => parameters.overhead.reference_bytes = bytes(value)?,
        "c" => parameters.overhead.per_byte_ns = ns_per_byte(value)?,
        "l_p" => parameters.propagation_ns = time_ns(value)?,
        "l_f" => parameters.forwarding_ns = time_ns(value)?,
        "l_s" => parameters.switching_ns = time_ns(value)?,
        "rate" => parameters.link.bytes_per_ns = Some(bytes_per_ns(value)?),
        "header" => parameters.link.header_bytes = bytes(value)?,
        "relay" => {
            parameters.link.relay = match value {
                "cut-through" => Relay::CutThrough,
                "store" => Relay::StoreAndForward,
                _ => return Err(UserError::new("give relay=cut-through or relay=store")),
            }
        }
        "first" => {
            parameters.link.first = match value {
                "in-overhead" => FirstTransmission::InOverhead,
                "apart" => FirstTransmission::Apart,
                _ => return Err(UserError::new("give first=in-overhead or first=apart")),
            }
        }
        _ => {
            return Err(UserError::new(
                "there is no such parameter; there are o_0, m_0, c, l_p, l_f, l_s, rate, header, relay and first, and \
                 --message for the size",
            ));
        }
    }
    Ok(())
}

fn none_missing(parameters: &Parameters) -> Result<(), UserError> {
    let all = [
        ("o_0", parameters.overhead.at_reference_ns),
        ("l_p", parameters.propagation_ns),
        ("l_f", parameters.forwarding_ns),
        ("l_s", parameters.switching_ns),
    ];
    let missing: Vec<_> = all.iter().filter(|(_, value)| value.is_nan()).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let each: Vec<_> = missing.iter().map(|name| format!("--set {name}=TIME")).collect();
    Err(UserError(format!(
        "{} {} missing: give {}, or start from --preset sci2000 or --parameters FILE",
        missing.join(", "),
        if missing.len() == 1 { "is" } else { "are" },
        each.join(" ")
    )))
}

/// Parameters as they stand in JSON; the units are in the names.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct ParametersJson {
    pub(crate) o_0_ns: f64,
    pub(crate) m_0_bytes: f64,
    pub(crate) c_ns_per_byte: f64,
    pub(crate) l_p_ns: f64,
    pub(crate) l_f_ns: f64,
    pub(crate) l_s_ns: f64,
    #[serde(default)]
    pub(crate) rate_bytes_per_ns: Option<f64>,
    #[serde(default)]
    pub(crate) header_bytes: f64,
    #[serde(default = "cut_through")]
    pub(crate) relay: String,
    #[serde(default = "in_overhead")]
    pub(crate) first: String,
    #[serde(default = "sixty_four")]
    pub(crate) message_bytes: f64,
}

fn cut_through() -> String {
    "cut-through".into()
}

fn in_overhead() -> String {
    "in-overhead".into()
}

fn sixty_four() -> f64 {
    64.0
}

impl From<&Parameters> for ParametersJson {
    fn from(parameters: &Parameters) -> Self {
        Self {
            o_0_ns: parameters.overhead.at_reference_ns,
            m_0_bytes: parameters.overhead.reference_bytes,
            c_ns_per_byte: parameters.overhead.per_byte_ns,
            l_p_ns: parameters.propagation_ns,
            l_f_ns: parameters.forwarding_ns,
            l_s_ns: parameters.switching_ns,
            rate_bytes_per_ns: parameters.link.bytes_per_ns,
            header_bytes: parameters.link.header_bytes,
            relay: match parameters.link.relay {
                Relay::CutThrough => cut_through(),
                Relay::StoreAndForward => "store".into(),
            },
            first: match parameters.link.first {
                FirstTransmission::InOverhead => in_overhead(),
                FirstTransmission::Apart => "apart".into(),
            },
            message_bytes: parameters.message_bytes,
        }
    }
}

impl ParametersJson {
    fn parameters(&self) -> Result<Parameters, UserError> {
        let mut parameters = Parameters {
            overhead: Overhead {
                at_reference_ns: self.o_0_ns,
                reference_bytes: self.m_0_bytes,
                per_byte_ns: self.c_ns_per_byte,
            },
            propagation_ns: self.l_p_ns,
            forwarding_ns: self.l_f_ns,
            switching_ns: self.l_s_ns,
            message_bytes: self.message_bytes,
            ..UNKNOWN
        };
        parameters.link.bytes_per_ns = self.rate_bytes_per_ns;
        parameters.link.header_bytes = self.header_bytes;
        set(&mut parameters, "relay", &self.relay)?;
        set(&mut parameters, "first", &self.first)?;
        Ok(parameters)
    }
}

/// A document with parameters in it: what `cci model` writes with --json, or these alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum File {
    Within { parameters: ParametersJson },
    Alone(ParametersJson),
}

fn read(path: &PathBuf) -> Result<Parameters, UserError> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(while_doing(&format!("cannot read {name}")))?;
    if text.trim().is_empty() {
        return Err(UserError(format!("{name} is empty: give the JSON file that cci model fit --json writes")));
    }
    let file: File = serde_json::from_str(&text).map_err(|error| {
        let why = if error.is_data() {
            String::from("o_0_ns, m_0_bytes, c_ns_per_byte, l_p_ns, l_f_ns and l_s_ns are needed")
        } else {
            error.to_string()
        };
        UserError(format!("{name} has no parameters: {why}; give the JSON file that cci model fit --json writes"))
    })?;
    let (File::Within { parameters } | File::Alone(parameters)) = file;
    parameters.parameters().map_err(while_doing(&format!("{name}")))
}

/// The parameters in a line.
pub(crate) fn line(parameters: &Parameters) -> String {
    let overhead = parameters.overhead;
    let link = parameters.link;
    let relay = match (link.relay, link.bytes_per_ns) {
        (Relay::CutThrough, _) => "cut-through",
        (Relay::StoreAndForward, _) => "store-and-forward",
    };
    let rate = link.bytes_per_ns.map_or_else(String::new, |rate| format!(", links of {} Gb/s", round(8.0 * rate)));
    let header = if link.header_bytes > 0.0 { format!(", header {} bytes", link.header_bytes) } else { String::new() };
    format!(
        "o(m) = {} + {} (m - {}) ns, l_p = {} ns, l_f = {} ns, l_s = {} ns, m = {} bytes{header}{rate}, {relay}",
        round(overhead.at_reference_ns),
        round(overhead.per_byte_ns),
        overhead.reference_bytes,
        round(parameters.propagation_ns),
        round(parameters.forwarding_ns),
        round(parameters.switching_ns),
        parameters.message_bytes,
    )
}

/// Three decimals at most.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(set: &[(&str, &str)]) -> SystemArguments {
        let set = set.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        SystemArguments { set, ..SystemArguments::default() }
    }

    fn refused(set: &[(&str, &str)]) -> String {
        given(set).system().err().unwrap().0
    }

    #[test]
    fn nothing_given_is_the_thesis_s_system() {
        let system = SystemArguments::default().system().unwrap();
        assert!(system.unchanged && system.preset.unwrap().name == "sci2000");
    }

    #[test]
    fn what_is_missing_is_named() {
        let why = refused(&[("l_s", "335ns"), ("o_0", "1us")]);
        assert!(why.contains("l_p, l_f are missing") && why.contains("--set l_f=TIME"), "{why}");
        let why = refused(&[("l_s", "335ns"), ("o_0", "1us"), ("l_p", "7ns")]);
        assert!(why.contains("l_f is missing"), "{why}");
    }

    #[test]
    fn what_is_set_replaces_the_preset_s() {
        let arguments =
            SystemArguments { preset: Some("sci2000".into()), message: Some(128.0), ..given(&[("l_s", "335ns")]) };
        let system = arguments.system().unwrap();
        assert!(!system.unchanged);
        assert_eq!((system.parameters.switching_ns, system.parameters.message_bytes), (335.0, 128.0));
    }

    #[test]
    fn wrong_parameters_are_told_with_right_ones() {
        assert!(refused(&[("l_q", "1ns")]).contains("l_p, l_f, l_s"));
        assert!(refused(&[("l_p", "7")]).contains("7ns"));
        assert!(refused(&[("relay", "fast")]).contains("relay=store"));
        let zero = [("o_0", "1us"), ("l_p", "0ns"), ("l_f", "1ns"), ("l_s", "1ns")];
        assert!(refused(&zero).contains("l_p is 0") && refused(&zero).contains("7ns"));
        let negative = [("o_0", "-1us"), ("l_p", "1ns"), ("l_f", "1ns"), ("l_s", "1ns")];
        assert!(refused(&negative).contains("o_0 is -1000"));
        let arguments = SystemArguments { preset: Some("sci1999".into()), ..SystemArguments::default() };
        assert!(arguments.system().err().unwrap().0.contains("sci2000"));
    }

    #[test]
    fn parameters_are_written_and_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fit.json");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            super::read(&path)
        };
        let mut parameters = cci_model::sci2000().parameters;
        parameters.link.relay = Relay::StoreAndForward;
        let json = serde_json::to_value(ParametersJson::from(&parameters)).unwrap();
        assert_eq!(read(&json.to_string()).unwrap(), parameters);
        assert_eq!(read(&serde_json::json!({ "parameters": json }).to_string()).unwrap(), parameters);
        assert!(read("").unwrap_err().0.contains("is empty"));
        assert!(read("{\"o_0_ns\": 1}").unwrap_err().0.contains("l_s_ns are needed"));
        assert!(read("nonsense").unwrap_err().0.contains("has no parameters"));
    }
}
