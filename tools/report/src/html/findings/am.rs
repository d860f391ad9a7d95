//! Active Messages beside CCI's own.

use super::section::{Found, Section};
use crate::finding::{Am, AmPoint};
use crate::html::chart::{Bar, Part, bars};
use crate::html::curves::transport;
use crate::html::figure::{Entry, Figure, FigureTable};
use crate::html::library::{Look, Mark};
use crate::html::unit;
use crate::output::am::{cycles, name};
use crate::sizes::show_size;

pub(super) fn section(found: &Found<'_, Am>) -> Section {
    Section {
        anchor: "am",
        heading: "Active Messages",
        text: "An exchange of Active Messages, beside the cheapest of CCI's own ways to carry the same bytes, in turn in the same \
               run.",
        figures: found.iter().enumerate().map(|(number, (run, am))| figure(number, *run, am)).collect(),
    }
}

fn figure(number: usize, run: usize, am: &Am) -> Figure {
    let look = |is_active: bool| Look::of_number(usize::from(!is_active)).with(Mark::Block);
    let bar = |label: String, is_active: bool, value: f64, told: String| Bar {
        label,
        parts: vec![Part { class: look(is_active).class, value, told: told.clone() }],
        told,
    };
    let of_point = |point: &AmPoint| {
        let relative = point.am_ns / point.own_ns.max(f64::MIN_POSITIVE);
        let own = format!("{} by {}", unit::time(point.own_ns), point.own);
        let active = format!("{}, added: {} cycles", unit::time(point.am_ns), cycles(am, point));
        [
            bar(format!("{}: CCI's own", name(point)), false, 1.0, own),
            bar("Active Messages".into(), true, relative, active),
        ]
    };
    let all: Vec<_> = am.points.iter().flat_map(of_point).collect();
    let about: Vec<_> = all.iter().map(|bar| format!("{}: {}", bar.label, bar.told)).collect();
    let rows = am.points.iter().map(|point| {
        vec![
            name(point),
            point.own.clone(),
            show_size(point.bytes),
            unit::time(point.own_ns),
            unit::time(point.am_ns),
            unit::time(point.difference_ns),
            cycles(am, point),
            format!("{:.3}", point.ratio),
            point.peer_ns.map_or_else(String::new, unit::time),
            point.to_peer.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        ]
    });
    let entry =
        |(is_active, name): (bool, &str)| Entry { look: look(is_active), name: name.into(), detail: String::new() };
    Figure {
        title: format!("{}: exchanges", transport(&am.transport)),
        note: format!(
            "Bars are over the time by CCI's own. What is added is a message's share where both messages are alike.{}",
            am.peer.as_ref().map_or_else(String::new, |peer| format!(" Peer: {peer}."))
        ),
        picture: bars(&format!("am-{}", number + 1), &format!("{}.", about.join("; ")), &all),
        legend: [(false, "CCI's own"), (true, "Active Messages")].into_iter().map(entry).collect(),
        table: FigureTable {
            head: vec![
                "exchange",
                "own way",
                "bytes",
                "CCI's own",
                "Active Messages",
                "added",
                "cycles",
                "speed to own",
                "peer",
                "time to peer",
            ],
            rows: rows.collect(),
            words: 2,
        },
        runs: vec![run],
        is_wide: false,
    }
}
