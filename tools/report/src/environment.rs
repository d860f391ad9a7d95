//! What a run ran on.

use serde::{Deserialize, Serialize};

/// What a run ran on, as far as its figures depend on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of this program.
    pub version: String,
    /// Model of the processor.
    pub processor: String,
    /// Processors that this run may use.
    pub cpus: u64,
    /// Name and release of the kernel.
    pub kernel: String,
    /// Load average over one minute when the run began; what else runs disturbs.
    pub load: f64,
    /// Processors that the ends were pinned to: client, server.
    pub pinned: Option<[usize; 2]>,
    /// Keys of the device, and their values.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// When the run began, seconds since 1970.
    #[serde(default)]
    pub began_s: u64,
    /// Load average over one minute when the run ended, this run included.
    #[serde(default)]
    pub load_after: f64,
    /// Times are those of a virtual network, and say nothing of this machine.
    #[serde(default, rename = "virtual")]
    pub is_virtual: bool,
    /// How the operations travelled; not known of a run that has not begun, or that went through
    /// the C library.
    #[serde(default)]
    pub path: Option<Path>,
}

/// The path of the measured connection, as the library tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// How messages travel.
    pub messages: String,
    /// How RMA travels.
    pub rma: String,
    /// Why these and no others: which offloads are off, and for what reason.
    pub why: String,
}

impl Environment {
    /// The line that ends a table.
    pub fn line(&self) -> String {
        let pinned = match self.pinned {
            None if self.is_virtual => "in virtual time".into(),
            Some([client, server]) if client == server => format!("both ends on processor {client}"),
            Some([client, server]) => format!("ends pinned to processors {client} and {server}"),
            None => "ends not pinned".into(),
        };
        let plural = if self.cpus == 1 { "" } else { "s" };
        let keys: Vec<_> = self.settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let keys = if keys.is_empty() { String::new() } else { format!(", {}", keys.join(" ")) };
        let path = self.path.as_ref().map_or_else(String::new, |path| {
            format!("\nMessages: {}. RMA: {}. Why: {}.", path.messages, path.rma, path.why)
        });
        format!(
            "On {} ({} processor{plural}), {}, load {:.2}, {pinned}{keys}; cci {}.{path}",
            self.processor, self.cpus, self.kernel, self.load, self.version
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_everything() {
        let environment = Environment {
            version: "1.2.3".into(),
            processor: "A 1".into(),
            cpus: 2,
            kernel: "Linux 6.1".into(),
            load: 0.5,
            pinned: Some([0, 1]),
            ..Environment::default()
        };
        assert_eq!(
            environment.line(),
            "On A 1 (2 processors), Linux 6.1, load 0.50, ends pinned to processors 0 and 1; cci 1.2.3."
        );
        let path = Path { messages: "by post".into(), rma: "by rail".into(), why: "it rains".into() };
        let settings = vec![("mss".into(), "64".into()), ("priority".into(), "9".into())];
        let environment = Environment { path: Some(path), settings, ..environment };
        assert!(environment.line().contains("processors 0 and 1, mss=64 priority=9; cci"));
        assert!(environment.line().ends_with("\nMessages: by post. RMA: by rail. Why: it rains."));
    }
}
