//! `cci doctor`: what on this host keeps the library from being fast or from working.
//!
//! `docs/design/doctor.md` has what is examined, and why.

mod devices;
mod environment;
mod finding;
mod firewall;
mod groups;
mod host;
mod libraries;
mod memory;
mod network;
mod processors;
mod rights;
mod secrets;

use cci_report::{UserError, while_doing};
use clap::Args;
use finding::{Finding, Verdict};
use host::Host;
use std::io::Write as _;

/// Arguments of `cci doctor`.
#[derive(Args, Debug)]
pub(crate) struct DoctorArguments {
    /// Print JSON instead
    #[arg(long)]
    json: bool,
    /// Show only what can be improved
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
}

/// Examines this host; whether everything works, if not as fast as it could.
pub(crate) fn doctor(arguments: &DoctorArguments) -> Result<bool, UserError> {
    let findings = examine(&Host::new("/"));
    let works = findings.iter().all(|finding| finding.verdict != Verdict::Fails);
    let text = if arguments.json {
        format!("{:#}\n", finding::as_json(&findings))
    } else {
        let is_shown = |finding: &&Finding| !arguments.quiet || finding.verdict != Verdict::Ok;
        finding::listing(&findings.iter().filter(is_shown).cloned().collect::<Vec<_>>())
    };
    // Colours go to terminals only, and NO_COLOR removes them.
    anstream::stdout().write_all(text.as_bytes()).map_err(while_doing("cannot write what was found"))?;
    Ok(works)
}

fn examine(host: &Host) -> Vec<Finding> {
    let files = [rights::findings, processors::findings, memory::findings, network::findings, firewall::findings];
    let mut all: Vec<_> = files.iter().flat_map(|findings| findings(host)).collect();
    all.extend(libraries::findings(host, std::env::var_os("LD_LIBRARY_PATH").as_deref()));
    all.extend(environment::findings(cci::unknown_variables()));
    all.extend(devices::findings());
    all.extend(secrets::findings());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever this host is like, each thing that is not as it should be has a remedy.
    #[test]
    fn this_host_is_examined() {
        let findings = examine(&Host::new("/"));
        for subject in
            ["kernel", "yama", "seccomp", "processors", "governor", "descriptors", "memory", "lo MTU", "firewall"]
        {
            assert!(findings.iter().any(|finding| finding.subject == subject), "{subject} in {findings:?}");
        }
        for finding in &findings {
            assert_eq!(finding.remedy.is_none(), finding.verdict == Verdict::Ok, "{finding:?}");
        }
    }
}
