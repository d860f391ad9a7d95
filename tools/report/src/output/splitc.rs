//! Accesses of the global address space of Split-C: the paper's figures, then and now.

use super::parts;
use super::sheet::Sheet;
use super::style::{Failed, INK, legend, mesh, short, written};
use super::table::{align, scaled, time};
use crate::UserError;
use crate::finding::{SplitC, SplitCPair};
use crate::sizes::show_size;
use plotters::coord::Shift;
use plotters::coord::combinators::IntoLogRange;
use plotters::prelude::*;

/// Operations and types, in the order of the paper's Figure 2.
const OPERATIONS: [&str; 5] = ["read", "write", "get", "put", "store"];
const TYPES: [&str; 6] = ["char", "short", "int", "long", "float", "double"];
/// What the paper's text gives of its Figure 2: Split-C over a LANai 7 was slightly faster than
/// Active Messages' round trip and gap.
const THEN: &str = "The paper, over a LANai 7: read and write slightly below 71.2 us, get and put below 30.0 us.";
/// Its Figure 5: the plateau of bulk transfers, 10^6 bytes per second.
const PLATEAU: f64 = 44.0;
/// Colours of the mappings, and of what they stand on.
const COLORS: [RGBColor; 3] = [RGBColor(0, 84, 147), RGBColor(214, 116, 18), RGBColor(90, 140, 60)];
const BARE: RGBColor = RGBColor(120, 120, 120);

/// What an operation is, and what it stands on.
pub(crate) fn described(name: &str) -> (&str, &str) {
    match name {
        "read" => ("read of a line that the other rank has written", "a load of such a line"),
        "get" => ("get of a word, many in a row", "a load and a store"),
        "put" => ("put of a word, many in a row", "a load and a store"),
        "store" => ("store of a word, many in a row", "a load and a store"),
        "local-throughput" => ("own word through a global pointer", "a load"),
        "local-latency" => ("the same, each after the one before", "a load"),
        "bulk-read-64KiB" => ("bulk read of 64 KiB", "memcpy"),
        "bulk-read-1MiB" => ("bulk read of 1 MiB", "memcpy"),
        "em3d" => ("EM3D with stores, a step", "two threads, plain C"),
        "get-rma" => ("get of a word over a network", "RMA read"),
        other => (other, ""),
    }
}

/// The mappings, in the order of the run.
fn mappings(found: &SplitC) -> Vec<&str> {
    let mut all: Vec<&str> = found.bulk.iter().map(|point| &*point.mapping).collect();
    all.dedup();
    all
}

/// The tables.
pub(super) fn table(found: &SplitC) -> String {
    let head = ["operation", "time", "stands on", "time", "more", "cycles", "ratio"];
    let mut pairs = vec![head.map(String::from).to_vec()];
    pairs.extend(found.pairs.iter().map(|pair| row(found, pair)));
    let mut words = vec![[&["mapping", "operation"][..], &TYPES].concat().into_iter().map(String::from).collect()];
    for mapping in mappings(found) {
        words.extend(OPERATIONS.map(|operation| {
            let of = |name: &str| {
                let mut all = found.words.iter().filter(|word| word.mapping == mapping && word.operation == operation);
                all.find(|word| word.of == name).map_or_else(String::new, |word| time(word.ns))
            };
            [vec![mapping.to_owned(), operation.to_owned()], TYPES.map(of).to_vec()].concat()
        }));
    }
    format!(
        "Split-C over {} beside what it stands on, in turn\n{}\nOperations on a word of the other rank, many in a row\n\
         {}{THEN}\n\nBulk operations, MB/s, eight before a sync\n{}The paper: a plateau at {PLATEAU:.0} MB/s, from 4 KiB on.\n{}",
        found.transport,
        align(&pairs, &[0, 2]),
        align(&words, &[0, 1]),
        align(&bulk(found), &[]),
        parts::table(&found.parts, found.cycle_ns, &parts::GET),
    )
}

fn row(found: &SplitC, pair: &SplitCPair) -> Vec<String> {
    let (what, stands_on) = described(&pair.name);
    vec![
        what.into(),
        time(pair.ns),
        stands_on.into(),
        time(pair.bare_ns),
        time(pair.difference_ns),
        format!("{:.1}", pair.difference_ns / found.cycle_ns.max(f64::MIN_POSITIVE)),
        format!("{:.3}", pair.ratio),
    ]
}

/// A line for each size, a column for each operation by each mapping.
fn bulk(found: &SplitC) -> Vec<Vec<String>> {
    let mut columns: Vec<(&str, &str)> = Vec::new();
    let mut sizes: Vec<u64> = Vec::new();
    for point in &found.bulk {
        if !columns.contains(&(&point.mapping, &point.operation)) {
            columns.push((&point.mapping, &point.operation));
        }
        if !sizes.contains(&point.bytes) {
            sizes.push(point.bytes);
        }
    }
    let head = columns.iter().map(|(mapping, operation)| format!("{mapping} {operation}"));
    let mut rows = vec![std::iter::once("bytes".to_owned()).chain(head).collect()];
    for bytes in sizes {
        let cell = |(mapping, operation): &(&str, &str)| {
            let mut all =
                found.bulk.iter().filter(|point| point.mapping == **mapping && point.operation == **operation);
            all.find(|point| point.bytes == bytes).map_or_else(String::new, |point| format!("{:.1}", point.mb_per_s))
        };
        rows.push(std::iter::once(show_size(bytes)).chain(columns.iter().map(cell)).collect::<Vec<_>>());
    }
    rows
}

/// The plot as SVG: operations on words by type, and bulk puts over size.
pub(super) fn svg(found: &SplitC, sheet: &Sheet<'_>) -> Result<String, UserError> {
    if found.words.is_empty() || found.bulk.is_empty() {
        return Err(UserError::new("there is nothing to draw: no operation was measured"));
    }
    written(|text| draw(found, sheet, text))
}

fn draw<'a>(found: &SplitC, sheet: &Sheet<'_>, text: &'a mut String) -> Result<(), Failed<'a>> {
    let title = format!("Split-C over {}: operations on a word by type, and bulk puts", found.transport);
    let (root, panels) = sheet.panels(text, &title, 2)?;
    draw_words(found, &panels[0])?;
    draw_bulk(found, &panels[1])?;
    root.present()
}

/// The place of an operation and a type on the axis, from the left.
#[expect(clippy::cast_precision_loss, reason = "a few dozen places")]
fn place(operation: &str, of: &str) -> Option<f64> {
    let operation = OPERATIONS.iter().position(|name| *name == operation)?;
    let of = TYPES.iter().position(|name| *name == of)?;
    Some((operation * (TYPES.len() + 1) + of) as f64)
}

type Panel<'a, 'b> = DrawingArea<SVGBackend<'b>, Shift>;

fn draw_words<'b>(found: &SplitC, panel: &Panel<'_, 'b>) -> Result<(), Failed<'b>> {
    let times = || found.words.iter().map(|word| word.ns).filter(|ns| *ns > 0.0);
    let (low, high) = (times().fold(f64::MAX, f64::min), times().fold(f64::MIN_POSITIVE, f64::max));
    let width = (OPERATIONS.len() * (TYPES.len() + 1)) as u32;
    let mut chart = ChartBuilder::on(panel)
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(-1.0..f64::from(width), (low.min(high) * 0.5..high * 4.0).log_scale())?;
    mesh(&mut chart.configure_mesh(), 15)
        .disable_x_mesh()
        .x_labels(0)
        .x_desc(format!("{}; each: {} to {}", OPERATIONS.join(", "), TYPES[0], TYPES[TYPES.len() - 1]))
        .y_desc("time of an operation")
        .y_label_formatter(&|ns| short(&time(*ns)))
        .draw()?;
    for (mapping, color) in mappings(found).into_iter().zip(COLORS.iter().cycle()) {
        let of = found.words.iter().filter(|word| word.mapping == mapping);
        let points: Vec<_> = of.filter_map(|word| Some((place(&word.operation, &word.of)?, word.ns))).collect();
        chart
            .draw_series(points.iter().map(|point| Circle::new(*point, 4, color.filled())))?
            .label(mapping)
            .legend(move |(x, y)| Circle::new((x + 10, y), 4, color.filled()));
    }
    legend(&mut chart.configure_series_labels(), SeriesLabelPosition::UpperLeft, 8)
}

fn draw_bulk<'b>(found: &SplitC, panel: &Panel<'_, 'b>) -> Result<(), Failed<'b>> {
    let rates = || found.bulk.iter().map(|point| point.mb_per_s).filter(|rate| *rate > 0.0);
    let (low, high) = (rates().fold(PLATEAU, f64::min), rates().fold(PLATEAU, f64::max));
    #[expect(clippy::cast_precision_loss, reason = "sizes below 2^52")]
    let size = |bytes: u64| bytes.max(1) as f64;
    let largest = found.bulk.iter().map(|point| size(point.bytes)).fold(8.0, f64::max);
    let mut chart = ChartBuilder::on(panel)
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d((4.0..largest).log_scale().base(2.0), (low * 0.5..high * 8.0).log_scale())?;
    mesh(&mut chart.configure_mesh(), 15)
        .x_desc("bytes")
        .y_desc("bytes per second")
        .x_label_formatter(&|bytes| format!("{bytes:.0}"))
        .y_label_formatter(&|rate| short(&scaled(1e6 * *rate, "B/s")))
        .draw()?;
    let line = |mapping: &str, operation: &str| -> Vec<(f64, f64)> {
        let of = found.bulk.iter().filter(|point| point.mapping == mapping && point.operation == operation);
        of.map(|point| (size(point.bytes), point.mb_per_s)).collect()
    };
    let puts = mappings(found)
        .into_iter()
        .zip(COLORS.iter().cycle())
        .map(|(mapping, color)| (format!("{mapping}, put"), line(mapping, "put"), *color));
    let copies = mappings(found).first().map(|first| ("memcpy".to_owned(), line(first, "memcpy"), BARE));
    for (name, points, color) in puts.chain(copies) {
        chart
            .draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, color.filled())))?;
    }
    chart
        .draw_series(DashedLineSeries::new([(4.0, PLATEAU), (largest, PLATEAU)], 6, 4, INK.stroke_width(1)))?
        .label("the paper's plateau")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 20, y)], INK.stroke_width(1)));
    legend(&mut chart.configure_series_labels(), SeriesLabelPosition::UpperLeft, 8)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::finding::{MappingPart, SplitCBulk, SplitCWord};

    pub(crate) fn found() -> SplitC {
        let pair = |name: &str, ns, bare_ns| SplitCPair {
            mapping: "direct".into(),
            name: name.into(),
            ns,
            bare_ns,
            difference_ns: ns - bare_ns,
            ratio: ns / bare_ns,
        };
        let word = |mapping: &str, of: &str, ns| SplitCWord {
            mapping: mapping.into(),
            operation: "get".into(),
            of: of.into(),
            ns,
        };
        let bulk = |mapping: &str, operation: &str, bytes, mb_per_s| SplitCBulk {
            mapping: mapping.into(),
            operation: operation.into(),
            bytes,
            mb_per_s,
        };
        SplitC {
            transport: "sm".into(),
            cycle_ns: 0.5,
            pairs: vec![pair("read", 81.0, 80.0), pair("em3d", 12000.0, 11000.0)],
            words: vec![word("direct", "long", 3.0), word("am", "char", 500.0)],
            bulk: vec![
                bulk("direct", "put", 4096, 9000.0),
                bulk("direct", "memcpy", 4096, 9500.0),
                bulk("am", "put", 4096, 800.0),
                bulk("am", "put", 8192, 900.0),
            ],
            parts: vec![MappingPart {
                mapping: "vi".into(),
                category: "Base VI".into(),
                name: "PostSend".into(),
                ns: 100.0,
            }],
        }
    }

    #[test]
    fn then_and_now_stand_in_the_tables() {
        let text = table(&found());
        for part in [
            "a load of such a line",
            "A get of a word by vi: 100.0 ns",
            "9.4 %",
            "1.012",
            "2.0",
            "am       get",
            "500.0 ns",
            "am put",
            "9500.0",
            "71.2 us",
            "44 MB/s",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn the_plot_has_a_point_for_each_figure() {
        let text = svg(&found(), &crate::output::sheet::tests::wide()).expect("a plot");
        for words in ["direct, put", "memcpy", "plateau", "time of an operation"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        // Two words, four rates, and two in a legend.
        assert_eq!(text.matches("<circle").count(), 8);
        crate::output::plot::tests::assert_drawn_for_both_grounds(crate::finding::Finding::SplitC(found()));
        assert!(svg(&SplitC::default(), &crate::output::sheet::tests::wide()).is_err());
    }
}
