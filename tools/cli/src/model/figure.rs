//! Figures: time over size with crossover marks, and model against measurement.

use super::refusal::told;
use super::system;
use cci_model::{Comparison, Family, ModelError, Pattern};
use cci_report::UserError;
use cci_report::output::grounds::for_both_grounds;
use cci_report::output::plot::{Failed, INK, font, mesh, short, written};
use cci_report::output::table;
use plotters::coord::Shift;
use plotters::coord::combinators::{IntoLogRange, LogCoord};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;

pub(super) const PANEL: (u32, u32) = (600, 470);
pub(super) const HEAD: u32 = 16;
pub(super) const FOOT: u32 = 34;
pub(super) const LEGEND: u32 = 150;
/// Colours that also differ in lightness.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 84, 147),
    RGBColor(214, 116, 18),
    RGBColor(20, 120, 70),
    RGBColor(150, 40, 120),
    RGBColor(95, 95, 95),
    RGBColor(200, 40, 40),
    RGBColor(0, 150, 190),
    RGBColor(120, 100, 10),
];

/// Points of a curve for each factor of e in size.
const DENSITY: f64 = 40.0;
/// From this ratio of times on, curves that cross cannot be told apart, and are drawn relative to
/// the best.
const STEEP: f64 = 12.0;
/// How much worse than the best is still drawn.
const WORST: f64 = 1.6;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'b, SVGBackend<'a>, Cartesian2d<LogCoord<f64>, RangedCoordf64>>;

/// What is compared, in words.
pub(crate) fn title(comparison: &Comparison) -> String {
    let pattern = match comparison.pattern {
        Pattern::Average => "Average latency".into(),
        Pattern::Unicasts => "One-to-all by unicasts".into(),
        Pattern::Multicast => "One-to-all along a tree".into(),
        Pattern::AllToAll => "All-to-all".into(),
        Pattern::Neighbour => "Latency to neighbours".into(),
        Pattern::Transpose => "Transposition".into(),
        Pattern::HotSpot(share) => format!("Average latency, {:.0} % to one hot node", 100.0 * share),
    };
    match comparison.rate {
        Some(_) if comparison.pattern == Pattern::AllToAll => format!("{pattern} with contention"),
        Some(rate) => format!("{pattern} at {rate} messages per second from each node"),
        None => pattern,
    }
}

/// One panel: time over size.
pub(crate) struct Curves {
    title: String,
    foot: String,
    lines: Vec<(Family, Vec<(f64, f64)>)>,
    /// Size, time, and what is better above.
    marks: Vec<(f64, f64, Family)>,
    sizes: Range<f64>,
    relative: bool,
}

impl Curves {
    /// Every family of a comparison up to a size; what its links cannot carry is left out.
    pub(crate) fn new(comparison: &Comparison, most: f64) -> Result<Self, UserError> {
        let least = 2.0;
        let points = ((most / least).ln() * DENSITY).ceil().max(1.0);
        let mut lines = vec![];
        for family in &comparison.families {
            let mut line = vec![];
            for point in 0..=points as u32 {
                let nodes = least * (most / least).powf(f64::from(point) / points);
                if nodes < family.least() {
                    continue;
                }
                match family.time_ns(comparison.pattern, nodes, &comparison.parameters, comparison.rate) {
                    Ok(time) => line.push((nodes, time)),
                    Err(ModelError::Saturated { .. }) => {}
                    Err(why) => return Err(told(why)),
                }
            }
            lines.push((*family, line));
        }
        if lines.iter().all(|(_, line)| line.is_empty()) {
            return Err(UserError::new("there is nothing to draw: give a larger --most or a lower --rate"));
        }
        let mut curves = Self {
            title: title(comparison),
            foot: system::line(&comparison.parameters),
            lines,
            marks: comparison
                .crossovers(most)
                .map_err(told)?
                .iter()
                .map(|mark| (mark.nodes, mark.time_ns, mark.to))
                .collect(),
            sizes: least..most,
            relative: false,
        };
        let (low, high) = curves.best();
        if high / low > STEEP {
            curves.make_relative(comparison)?;
        }
        Ok(curves)
    }

    /// The least time of all, and that at the largest size.
    fn best(&self) -> (f64, f64) {
        let all = self.lines.iter().flat_map(|(_, line)| line.iter().map(|(_, time)| *time));
        let last = self.lines.iter().filter_map(|(_, line)| line.last()).map(|(_, time)| *time);
        (all.fold(f64::INFINITY, f64::min), last.fold(f64::INFINITY, f64::min))
    }

    /// Each time divided by the best one's at that size.
    fn make_relative(&mut self, comparison: &Comparison) -> Result<(), UserError> {
        for point in self.lines.iter_mut().flat_map(|(_, line)| line) {
            if let Some((_, best)) = comparison.best(point.0).map_err(told)? {
                point.1 /= best;
            }
        }
        self.marks.iter_mut().for_each(|mark| mark.1 = 1.0);
        self.title += ", relative to the best";
        self.relative = true;
        Ok(())
    }

    /// For the legend; those that no part is drawn of say so.
    fn names(&self) -> Vec<String> {
        let times = self.times();
        let drawn = |line: &[(f64, f64)]| line.iter().any(|(_, time)| times.contains(time));
        let name = |(family, line): &(Family, Vec<_>)| {
            if drawn(line) { family.to_string() } else { format!("{family} (above)") }
        };
        self.lines.iter().map(name).collect()
    }

    /// The axis of time; what is far above the best is cut.
    fn times(&self) -> Range<f64> {
        if self.relative {
            return 0.9..WORST;
        }
        let (least, last) = self.best();
        let height = (2.5 * (last - least)).max(0.6 * least);
        least - 0.15 * height..least + height
    }
}

/// Panels side by side, of the same families.
pub(crate) fn curves_svg(panels: &[Curves]) -> Result<String, UserError> {
    Ok(for_both_grounds(&written(|text| draw(panels, text))?))
}

fn draw<'a>(panels: &[Curves], text: &'a mut String) -> Result<(), Failed<'a>> {
    let width = PANEL.0 * u32::try_from(panels.len()).unwrap_or(1);
    let root = SVGBackend::with_string(text, (width + LEGEND, HEAD + PANEL.1 + FOOT)).into_drawing_area();
    root.fill(&WHITE)?;
    let (above, foot) = root.split_vertically(HEAD + PANEL.1);
    let (panes, right) = above.split_horizontally(width);
    if let Some(first) = panels.first() {
        foot.draw(&Text::new(first.foot.clone(), (24, 4), font(12).color(&INK)))?;
        legend(&right, &first.names())?;
    }
    for (area, curves) in panes.split_evenly((1, panels.len())).iter().zip(panels) {
        panel(area, curves)?;
    }
    root.present()
}

/// Beside the panels, where no curve runs.
pub(super) fn legend(area: &Area<'_>, names: &[String]) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    for (index, (name, y)) in names.iter().zip((52..).step_by(20)).enumerate() {
        if index < COLOURS.len() {
            area.draw(&PathElement::new([(6, y), (30, y)], colour(index).stroke_width(2)))?;
        } else {
            for x in [6, 16, 26] {
                area.draw(&PathElement::new([(x, y), (x + 5, y)], colour(index).stroke_width(2)))?;
            }
        }
        area.draw(&Text::new(name.clone(), (38, y - 6), font(13).color(&INK)))?;
    }
    Ok(())
}

pub(super) fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

fn panel<'a>(area: &Area<'a>, curves: &Curves) -> Result<(), Failed<'a>> {
    let times = curves.times();
    let mut chart = ChartBuilder::on(area)
        .caption(&curves.title, font(16).color(&INK))
        .margin(14)
        .margin_right(30)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(curves.sizes.clone().log_scale(), times.clone())?;
    let time = |time: &f64| short(&table::time(*time));
    let ratio = |ratio: &f64| format!("{ratio:.1}");
    mesh(&mut chart.configure_mesh(), 13)
        .x_desc("nodes")
        .y_desc(if curves.relative { "times the best" } else { "time" })
        .x_labels(8)
        .y_labels(8)
        .x_label_formatter(&|nodes| format!("{nodes:.0}"))
        .y_label_formatter(if curves.relative { &ratio } else { &time })
        .draw()?;
    for (index, (_, line)) in curves.lines.iter().enumerate() {
        let style = colour(index).stroke_width(2);
        // A whole line is above the best, so that it leaves the panel at the top, once.
        let shown = line.iter().copied().filter(|(_, time)| times.contains(time));
        if index < COLOURS.len() {
            chart.draw_series(LineSeries::new(shown, style))?;
        } else {
            chart.draw_series(DashedLineSeries::new(shown, 6, 4, style))?;
        }
    }
    for (index, change) in curves.marks.iter().enumerate() {
        mark(&mut chart, index, change, &times, curves.sizes.end)?;
    }
    Ok(())
}

/// A dot where both are equal, a line down to the axis, and what becomes the best beside its foot.
fn mark<'a: 'b, 'b>(
    chart: &mut Chart<'a, 'b>,
    index: usize,
    (nodes, time, to): &(f64, f64, Family),
    times: &Range<f64>,
    most: f64,
) -> Result<(), Failed<'a>> {
    let down = [(*nodes, times.start), (*nodes, *time)];
    chart.draw_series(DashedLineSeries::new(down, 3, 3, INK.mix(0.6).stroke_width(1)))?;
    chart.draw_series([Circle::new((*nodes, *time), 4, INK.filled())])?;
    // Neighbours at different heights; the last ones to the left.
    let (side, x) = if nodes.ln() > 0.75 * most.ln() { (HPos::Right, -4) } else { (HPos::Left, 4) };
    let up = -2 - 14 * i32::try_from(index % 3).unwrap_or(0);
    let style = font(12).color(&INK).pos(Pos::new(side, VPos::Bottom));
    let label = Text::new(format!("{nodes:.0}: {to}"), (x, up), style);
    chart.draw_series([EmptyElement::at((*nodes, times.start)) + label])?;
    Ok(())
}
