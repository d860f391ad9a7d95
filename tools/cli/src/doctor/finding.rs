//! What an examination finds, and how it is shown.

use anstyle::{AnsiColor, Style};
use cci_report::named;
use serde_json::{Value, json};
use std::fmt::Write as _;

named! {
    /// What a property of the host does to the library.
    pub(crate) enum Verdict {
        /// Nothing stands in the way
        Ok = "ok",
        /// It costs nothing by itself; a change may help some programs
        Hint = "hint",
        /// It could not be found out
        Unknown = "unknown",
        /// The library works, and is slower than it could be
        Slow = "slow",
        /// Something does not work
        Fails = "fails",
    }
}

/// One property of the host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    /// What was examined.
    pub(crate) subject: String,
    pub(crate) verdict: Verdict,
    /// What was found, with its value.
    pub(crate) found: String,
    /// What to do about it, in the imperative.
    pub(crate) remedy: Option<String>,
}

impl Finding {
    pub(crate) fn ok(subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self { subject: subject.into(), verdict: Verdict::Ok, found: found.into(), remedy: None }
    }

    /// A finding with a remedy.
    pub(crate) fn with_remedy(
        subject: impl Into<String>,
        verdict: Verdict,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { subject: subject.into(), verdict, found: found.into(), remedy: Some(remedy.into()) }
    }
}

impl Verdict {
    fn style(self) -> Style {
        match self {
            Self::Ok => AnsiColor::Green.on_default(),
            Self::Hint => AnsiColor::Cyan.on_default(),
            Self::Unknown => Style::new().dimmed(),
            Self::Slow => AnsiColor::Yellow.on_default(),
            Self::Fails => AnsiColor::Red.on_default().bold(),
        }
    }
}

/// A line for each finding, its remedy below it, and how many there are of each verdict. The
/// verdicts are coloured; the writer removes the colours where they are not wanted.
pub(crate) fn listing(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.subject.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        let style = finding.verdict.style();
        let _ = writeln!(
            text,
            "{style}{:<8}{style:#} {:<width$}  {}",
            finding.verdict.name(),
            finding.subject,
            finding.found
        );
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "{:9}remedy: {remedy}", "");
        }
    }
    let _ = writeln!(text, "\n{}.", counts(findings));
    text
}

/// How many findings there are of each verdict, the worst first.
fn counts(findings: &[Finding]) -> String {
    let all = [Verdict::Fails, Verdict::Slow, Verdict::Unknown, Verdict::Hint, Verdict::Ok];
    let number = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let some = all.into_iter().map(|verdict| (verdict, number(verdict))).filter(|(_, number)| *number > 0);
    some.map(|(verdict, number)| format!("{number} {}", verdict.name())).collect::<Vec<_>>().join(", ")
}

/// The same for programs.
pub(crate) fn as_json(findings: &[Finding]) -> Value {
    let findings: Vec<_> = findings
        .iter()
        .map(|it| {
            json!({
                "subject": it.subject, "verdict": it.verdict.name(), "found": it.found, "remedy": it.remedy,
            })
        })
        .collect();
    json!({ "schema": "cci-doctor/1", "findings": findings })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> [Finding; 3] {
        [
            Finding::ok("kernel", "Linux 6.18"),
            Finding::with_remedy("lo MTU", Verdict::Slow, "1,500 bytes", "ip link set dev lo mtu 65536"),
            Finding::with_remedy("file size", Verdict::Fails, "0 bytes", "ulimit -f unlimited"),
        ]
    }

    #[test]
    fn remedies_stand_below_what_they_cure() {
        let plain = anstream::adapter::strip_str(&listing(&findings())).to_string();
        assert_eq!(
            plain,
            "ok       kernel     Linux 6.18\n\
             slow     lo MTU     1,500 bytes\n         remedy: ip link set dev lo mtu 65536\n\
             fails    file size  0 bytes\n         remedy: ulimit -f unlimited\n\n\
             1 fails, 1 slow, 1 ok.\n"
        );
    }

    #[test]
    fn the_json_has_the_same() {
        let json = as_json(&findings());
        assert_eq!(json["findings"][1]["remedy"], "ip link set dev lo mtu 65536");
        assert_eq!(json["findings"][0]["remedy"], Value::Null);
        assert_eq!(json["findings"][2]["verdict"], "fails");
    }
}
