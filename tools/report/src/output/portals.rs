//! Portals 3.3 beside CCI's own: the tables on the terminal, and the plot.

use super::experiments::{self, Experiment, Place, Unit};
use crate::UserError;
use crate::environment::Environment;
use crate::finding::Portals;

/// All, in the order of the table.
pub(crate) const EXPERIMENTS: [Experiment; 15] = [
    Experiment {
        name: "pingpong",
        title: "(1) half round trip of a put, by bytes",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "100 ns above CCI's own at 8 B; the copies alone make the rest",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "gups",
        title: "(2) updates of 8 B at random places by put with ack, 16 under way, by processes",
        place: Place::Count,
        unit: Unit::Rate,
        expected: "what injection gives: the table fits a cache",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "throughput",
        title: "(3) bytes per second of puts with ack, 16 under way, by bytes",
        place: Place::Bytes,
        unit: Unit::Bandwidth,
        expected: "curves meet from 64 KiB on, where an offer costs little beside the copy",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "alone",
        title: "(3) bytes per second of puts with ack, one at a time, by bytes",
        place: Place::Bytes,
        unit: Unit::Bandwidth,
        expected: "0.95 of RMA of the same memory: one registration and two messages more",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "availability",
        title: "(4) part of the processor that is left to the target while 1 MiB arrives",
        place: Place::Bytes,
        unit: Unit::Part,
        expected: "generic: little, for the program copies; accelerated: 95 %",
        processors: "two for the programs, two for the engines",
        least: 4,
    },
    Experiment {
        name: "bypass",
        title: "(5) time to the ack of a put whose target makes no calls for 50 ms, by bytes",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "generic: 50 ms; accelerated: as if it made calls, and a wake-up",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "depth",
        title: "(6) half round trip of 8 B behind entries that refuse, by entries of one of two walks",
        place: Place::Count,
        unit: Unit::Time,
        expected: "2 ns an entry",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "waking",
        title: "(7) time to the ack of a put to a target that sleeps in a wait, by bytes",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "generic: one wake-up; accelerated: two at most",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "idle",
        title: "(7) processor time of a wait for nothing, of 1",
        place: Place::Count,
        unit: Unit::Part,
        expected: "none",
        processors: "any",
        least: 1,
    },
    Experiment {
        name: "injection",
        title: "(8) puts of 8 B with ack per second, 16 under way; CCI: messages that are answered",
        place: Place::Bytes,
        unit: Unit::Rate,
        expected: "a third of CCI's own: match, events and ack",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "beside",
        title: "(9) half round trip of 8 B, generic, with an engine present and unused",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "1.02 of generic without",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "over",
        title: "(10) half round trip of a message, native puts and CCI over Portals, by bytes",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "CCI 200 ns above a native put at 8 B: its ack, and two events more for each message",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "over-bandwidth",
        title: "(10) bytes per second of the same",
        place: Place::Bytes,
        unit: Unit::Bandwidth,
        expected: "curves meet towards 8 KiB, where copies count",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "over-rma",
        title: "(10) time to the end of a put with ack, and of an RMA write of CCI over Portals, by bytes",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "CCI 200 ns above: it binds and unlinks memory for each write",
        processors: "one for each program",
        least: 2,
    },
    Experiment {
        name: "over-overhead",
        title: "(10) time of the call that begins it, by bytes",
        place: Place::Bytes,
        unit: Unit::Time,
        expected: "the same at every size: the bytes are read later",
        processors: "one for each program",
        least: 2,
    },
];

/// The tables.
pub(crate) fn table(found: &Portals) -> String {
    let head = format!(
        "Portals 3.3 over {} beside CCI's own (cci), {} launches, {} processors",
        found.transport, found.launches, found.processors
    );
    experiments::tables(head, &EXPERIMENTS, &found.points, found.processors)
}

/// Experiments that are drawn, as panels side by side.
const DRAWN: [&str; 3] = ["pingpong", "throughput", "depth"];

/// The plot as SVG: figures over bytes and over entries.
pub(super) fn svg(found: &Portals, environment: &Environment) -> Result<String, UserError> {
    let mut text = String::new();
    draw(found, environment, &mut text).map_err(while_doing("cannot draw the plot"))?;
    Ok(text)
}

#[expect(clippy::cast_precision_loss, reason = "sizes below 2^52")]
fn draw<'a>(found: &Portals, environment: &Environment, text: &'a mut String) -> Result<(), Failed<'a>> {
    let (root, panels) = page(text, &format!("Portals 3.3 over {}", found.transport), environment)?;
    for (name, panel) in DRAWN.iter().zip(panels.split_evenly((1, DRAWN.len()))) {
        let Some(experiment) = EXPERIMENTS.iter().find(|experiment| experiment.name == *name) else { continue };
        let (points, ways) = experiment.found(found);
        if points.is_empty() {
            continue;
        }
        // A panel is too narrow for all of a title: its end names the axis.
        let (caption, across) = experiment.title.rsplit_once(", by ").unwrap_or((experiment.title, ""));
        // Nothing has no place on a logarithmic axis.
        let x = |point: &PortalsPoint| point.x.max(1) as f64;
        let ends = |of: &dyn Fn(&PortalsPoint) -> f64| {
            points.iter().fold((f64::MAX, 0.0_f64), |(low, high), point| (low.min(of(point)), high.max(of(point))))
        };
        let (xs, ys) = (ends(&x), ends(&|point| point.value));
        let mut chart = ChartBuilder::on(&panel)
            .margin(12)
            .caption(caption, font(12).color(&INK))
            .x_label_area_size(42)
            .y_label_area_size(70)
            .build_cartesian_2d((xs.0..xs.1 * 1.1).log_scale(), (ys.0 * 0.8..ys.1 * 1.2).log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .x_desc(across)
            .x_label_formatter(&|x| experiment.place(x.round() as u64))
            .y_label_formatter(&|value| experiment.value(*value))
            .label_style(font(11).color(&INK))
            .draw()?;
        for (way, color) in ways.iter().zip(COLORS) {
            let line = || points.iter().filter(|point| point.way == *way).map(|point| (x(point), point.value));
            chart
                .draw_series(LineSeries::new(line(), color.stroke_width(2)))?
                .label((*way).to_owned())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
            chart.draw_series(line().map(|at| Circle::new(at, 3, color.filled())))?;
        }
        chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft).label_font(font(11)).draw()?;
    }
    root.present()
    let title = format!("Portals 3.3 over {}", found.transport);
    experiments::svg(&title, (&DRAWN, &EXPERIMENTS), &found.points, environment)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::finding::PortalsPoint;

    fn found() -> Portals {
        let point = |experiment: &str, x, way: &str, value| PortalsPoint {
            experiment: experiment.into(),
            x,
            way: way.into(),
            value,
            spread: value / 100.0,
        };
        let mut points = vec![
            point("pingpong", 0, "generic", 300.0),
            point("pingpong", 8, "generic", 310.0),
            point("pingpong", 8, "cci", 200.0),
            point("throughput", 65536, "generic", 9e9),
            point("throughput", 65536, "cci", 1e10),
            point("idle", 1, "generic", 0.00002),
        ];
        points.extend([(0, 300.0), (1024, 1324.0)].map(|(x, value)| point("depth", x, "generic", value)));
        Portals { transport: "sm".into(), launches: 3, processors: 2, points }
    }

    #[test]
    fn the_table_has_what_was_expected_and_why_a_figure_is_not_there() {
        insta::assert_snapshot!(table(&found()));
    }

    #[test]
    fn the_plot_has_a_panel_for_each_experiment_that_is_drawn() {
        let text = svg(&found(), &Environment::default()).unwrap();
        for experiment in EXPERIMENTS.iter().filter(|experiment| DRAWN.contains(&experiment.name)) {
            let (caption, across) = experiment.title.rsplit_once(", by ").unwrap();
            assert!(text.contains(caption) && text.contains(across), "{}", experiment.title);
            // So many characters fit above a third of the page.
            assert!(caption.chars().count() < 64, "{caption}");
        }
        crate::output::plot::tests::assert_drawn_for_both_grounds(crate::finding::Finding::Portals(found()));
    }
}
