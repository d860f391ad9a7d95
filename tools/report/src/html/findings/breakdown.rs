//! Where the time of one request and its reply goes.

use super::section::{Found, Section, origins};
use crate::finding::{Breakdown, Share};
use crate::html::chart::{Bar, Part, bars};
use crate::html::curves::transport;
use crate::html::figure::{Entry, Figure, FigureTable};
use crate::html::library::{Look, Mark};
use crate::html::unit;
use crate::sizes::show_size;

pub(super) fn section(found: &Found<'_, Breakdown>) -> Section {
    let figures = if found.is_empty() { Vec::new() } else { vec![figure(found)] };
    Section {
        anchor: "breakdown",
        heading: "Breakdown",
        text: "Where the time of one request and its reply goes.",
        figures,
    }
}

fn figure(found: &Found<'_, Breakdown>) -> Figure {
    let mut names: Vec<&str> = Vec::new();
    for share in found.iter().flat_map(|(_, breakdown)| &breakdown.shares) {
        if !names.contains(&share.name.as_str()) {
            names.push(&share.name);
        }
    }
    let look = |share: &Share| Look::of_number(names.iter().position(|name| *name == share.name).unwrap_or(0));
    let label = |breakdown: &Breakdown| format!("{}, {}", transport(&breakdown.transport), show_size(breakdown.size));
    let told = |share: &Share, breakdown: &Breakdown| {
        format!("{}: {}, {}", share.name, unit::time(share.ns), unit::percent(share.ns / breakdown.total_ns))
    };
    let all: Vec<_> = found
        .iter()
        .map(|(_, breakdown)| Bar {
            label: label(breakdown),
            parts: breakdown
                .shares
                .iter()
                .map(|share| Part {
                    class: look(share).class,
                    value: share.ns / breakdown.total_ns,
                    told: told(share, breakdown),
                })
                .collect(),
            told: unit::time(breakdown.total_ns),
        })
        .collect();
    let sentence = |(_, breakdown): &(usize, &Breakdown)| {
        let shares: Vec<_> = breakdown.shares.iter().map(|share| told(share, breakdown)).collect();
        format!("{}: {}", label(breakdown), shares.join("; "))
    };
    let about: Vec<_> = found.iter().map(sentence).collect();
    let rows = found.iter().flat_map(|(_, breakdown)| {
        let of = |share: &Share| {
            let part = unit::percent(share.ns / breakdown.total_ns);
            vec![label(breakdown), share.name.clone(), unit::time(share.ns), part]
        };
        breakdown.shares.iter().map(of).collect::<Vec<_>>()
    });
    let entry = |(at, name): (usize, &&str)| Entry {
        look: Look::of_number(at).with(Mark::Block),
        name: (*name).into(),
        detail: String::new(),
    };
    Figure {
        title: "One request and its reply".into(),
        note: "Each bar is the whole of its time.".into(),
        picture: bars("breakdown-1", &format!("{}.", about.join(". ")), &all),
        legend: names.iter().enumerate().map(entry).collect(),
        table: FigureTable { head: vec!["run", "part", "time", "share"], rows: rows.collect(), words: 2 },
        runs: origins(found),
        is_wide: false,
    }
}
