//! Active Messages beside CCI's own: the table on the terminal, and the plot.

use super::sheet::{Shape, Sheet};
use super::style::{Failed, INK, font, written};
use super::table::{align, scaled, time};
use crate::UserError;
use crate::finding::{Am, AmPoint};
use crate::sizes::show_size;
use plotters::prelude::*;

/// Colours of CCI's own and of Active Messages, which differ in lightness too.
const OWN: RGBColor = RGBColor(150, 160, 170);
const ACTIVE: RGBColor = RGBColor(0, 84, 147);
/// Above the first pair of bars, pixels.
const TOP: i32 = 30;

/// Places of bars, pixels.
struct Layout {
    /// Where bars begin: behind the longest name of an exchange, or below it.
    label: i32,
    /// The longest bar.
    longest: f64,
    /// From a pair of bars to the next one.
    row: i32,
    /// From the top of a row to its name, and to its bars.
    name: i32,
    bars: i32,
}

impl Layout {
    const fn of(shape: Shape) -> Self {
        match shape {
            Shape::Wide => Self { label: 260, longest: 560.0, row: 54, name: 10, bars: 0 },
            Shape::Narrow => Self { label: 24, longest: 180.0, row: 76, name: 0, bars: 19 },
        }
    }
}

/// The table.
pub(crate) fn table(found: &Am) -> String {
    let head = [
        "exchange",
        "bytes",
        "CCI's own",
        "by",
        "Active Messages",
        "per second",
        "added",
        "cycles",
        "speed to own",
        "peer",
        "time to peer",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(found.points.iter().map(|point| row(found, point)));
    let peer = found.peer.as_ref().map_or_else(String::new, |peer| format!("; peer {peer}"));
    format!(
        "Active Messages over {} beside CCI's own, {} launches; added: to a message where both are alike, else to the exchange{peer}\n{}",
        found.transport,
        found.launches,
        align(&rows, &[0, 3])
    )
}

fn row(found: &Am, point: &AmPoint) -> Vec<String> {
    let spread = |ns: f64, spread: f64| format!("{} ±{:.1} %", time(ns), 100.0 * spread / ns.max(f64::MIN_POSITIVE));
    vec![
        name(point),
        show_size(point.bytes),
        spread(point.own_ns, point.own_spread_ns),
        point.own.clone(),
        spread(point.am_ns, point.am_spread_ns),
        scaled(1e9 / point.am_ns.max(f64::MIN_POSITIVE), ""),
        time(point.difference_ns),
        cycles(found, point),
        format!("{:.3} ±{:.3}", point.ratio, point.ratio_spread),
        point.peer_ns.map_or_else(|| "-".into(), time),
        point.to_peer.map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}")),
    ]
}

/// What an exchange is, with its window.
pub(crate) fn name(point: &AmPoint) -> String {
    if point.window > 1 { format!("{}, {} under way", point.name, point.window) } else { point.name.clone() }
}

/// What Active Messages add, in ticks of the processor's counter.
pub(crate) fn cycles(found: &Am, point: &AmPoint) -> String {
    let of = |ns: f64| ns / found.cycle_ns.max(f64::MIN_POSITIVE);
    format!("{:.0} ±{:.0}", of(point.difference_ns), of(point.difference_spread_ns))
}

/// The plot as SVG: for each exchange its time by CCI's own and by Active Messages, over the first.
pub(super) fn svg(found: &Am, sheet: &Sheet<'_>) -> Result<String, UserError> {
    written(|text| draw(found, sheet, text))
}

#[expect(clippy::cast_possible_truncation, reason = "a bar of some hundred pixels")]
fn draw<'a>(found: &Am, sheet: &Sheet<'_>, text: &'a mut String) -> Result<(), Failed<'a>> {
    let layout = Layout::of(sheet.shape);
    let rows = layout.row * i32::try_from(found.points.len()).unwrap_or(0);
    let title = format!("Active Messages over {} beside CCI's own: time of an exchange", found.transport);
    let (root, panel) = sheet.page(text, &title, &[], u32::try_from(TOP + rows).unwrap_or(0))?;
    for (at, (name, color)) in [("CCI's own", OWN), ("Active Messages", ACTIVE)].into_iter().enumerate() {
        let left = 24 + 150 * i32::try_from(at).unwrap_or(0);
        panel.draw(&Rectangle::new([(left, 2), (left + 14, 14)], color.filled()))?;
        panel.draw(&Text::new(name, (left + 20, 1), font(14).color(&INK)))?;
    }
    let relative = |point: &AmPoint| point.am_ns / point.own_ns.max(f64::MIN_POSITIVE);
    let longest = found.points.iter().map(relative).fold(1.0, f64::max);
    for (at, point) in found.points.iter().enumerate() {
        let top = TOP + layout.row * i32::try_from(at).unwrap_or(0);
        panel.draw(&Text::new(name(point), (24, top + layout.name), font(14).color(&INK)))?;
        let added = format!("{} (added: {} cycles)", time(point.am_ns), cycles(found, point));
        let bars = [(1.0, OWN, format!("{} by {}", time(point.own_ns), point.own)), (relative(point), ACTIVE, added)];
        for (line, (value, color, told)) in bars.into_iter().enumerate() {
            let top = top + layout.bars + 19 * i32::try_from(line).unwrap_or(0);
            let end = layout.label + (value / longest * layout.longest) as i32;
            panel.draw(&Rectangle::new([(layout.label, top), (end, top + 16)], color.filled()))?;
            panel.draw(&Text::new(told, (end + 6, top + 1), font(13).color(&INK)))?;
        }
    }
    root.present()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn found() -> Am {
        let short = AmPoint {
            name: "short, 4 arguments".into(),
            bytes: 24,
            window: 1,
            am_ns: 440.0,
            am_spread_ns: 4.4,
            own: "send".into(),
            own_ns: 400.0,
            own_spread_ns: 2.0,
            difference_ns: 20.0,
            difference_spread_ns: 2.0,
            ratio: 0.909,
            ratio_spread: 0.01,
            peer_ns: Some(500.0),
            to_peer: Some(0.88),
        };
        let rate = AmPoint { name: "rate of short requests".into(), window: 16, ..short.clone() };
        Am {
            transport: "sm".into(),
            cycle_ns: 0.5,
            launches: 12,
            peer: Some("ucx:am: one".into()),
            points: vec![short, rate],
        }
    }

    #[test]
    fn the_table_has_what_is_added_in_cycles() {
        insta::assert_snapshot!(table(&found()));
    }

    #[test]
    fn the_plot_has_two_bars_for_each_exchange() {
        let text = svg(&found(), &crate::output::sheet::tests::wide()).unwrap();
        for words in ["short, 4 arguments", "16 under way", "400.0 ns by send", "added: 40 ±4 cycles"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        crate::output::plot::tests::assert_drawn_for_both_grounds(crate::finding::Finding::Am(found()));
    }
}
