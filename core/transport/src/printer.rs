//! `CCI_LOG`: what happens on slow paths, as lines on standard error, for the bindings of C.
//!
//! The variable names the least important level to print: error, warn, info, debug or trace.
//! Without it nothing is printed, and a slow path costs a test more.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::time::Instant;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Prints events and the beginnings of spans.
struct Printer {
    level: LevelFilter,
    begun: Instant,
}

/// Begins to print, where the environment asks for it; once in a process.
pub fn begin_log() {
    let Some(text) = std::env::var_os("CCI_LOG").filter(|text| !text.is_empty()) else { return };
    let level = text.to_str().and_then(|text| text.parse().ok());
    if level.is_none() {
        print(&format!("cci: CCI_LOG={} is no level; use error, warn, info, debug or trace\n", text.display()));
    }
    let printer = Printer { level: level.unwrap_or(LevelFilter::INFO), begun: Instant::now() };
    // Fails where it has begun before.
    let _ = tracing::subscriber::set_global_default(printer);
}

/// There is nowhere else to complain when standard error is closed.
fn print(line: &str) {
    let _ = std::io::stderr().write_all(line.as_bytes());
}

impl Printer {
    fn line(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Fields)) {
        let mut fields = Fields::default();
        record(&mut fields);
        let what = if metadata.is_span() { metadata.name() } else { &fields.message };
        let (pid, time) = (std::process::id(), self.begun.elapsed().as_secs_f64());
        let words = [format!("cci[{pid}]"), format!("{time:.6}"), metadata.level().to_string(), what.to_owned()];
        print(&(words.join(" ") + &fields.others + "\n"));
    }
}

impl Subscriber for Printer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.line(span.metadata(), |fields| span.record(fields));
        // Ends of spans are not printed, so that they need not be told apart.
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        self.line(event.metadata(), |fields| event.record(fields));
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// What an event says, and its other fields as ` name=value`.
#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.message, "{value:?}");
        } else {
            let _ = write!(self.others, " {}={value:?}", field.name());
        }
    }
}
