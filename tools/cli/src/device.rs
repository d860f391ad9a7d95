//! The arguments that say which device a measurement uses.

use cci_perf::device::Device;
use cci_report::sizes::parse_key;
use clap::Args;

/// The device of the ends.
#[derive(Args, Debug)]
pub(crate) struct DeviceArguments {
    /// Transport to use; the default device's when absent
    #[arg(long)]
    pub(crate) transport: Option<String>,
    /// A key of the device, as in the configuration file: --key port=5000
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_key)]
    pub(crate) key: Vec<(String, String)>,
    /// The port of this end, or a range such as 5000-5003: the same as --key port=PORT
    #[arg(short, long, value_name = "PORT")]
    pub(crate) port: Option<String>,
}

impl DeviceArguments {
    /// The device that is asked for.
    pub(crate) fn asked(&self) -> Device {
        let port = self.port.iter().map(|port| ("port".to_owned(), port.clone()));
        Device { transport: self.transport.clone(), keys: self.key.iter().cloned().chain(port).collect() }
    }
}
