//! The LogP signature: time per request over the length of the burst, one line a delay.

use super::logp::{delays, is_same};
use super::sheet::Sheet;
use super::style::{Failed, INK, legend, mesh, short, written};
use super::table::time;
use crate::UserError;
use crate::finding::Logp;
use crate::sizes::show_size;
use plotters::coord::combinators::IntoLogRange;
use plotters::prelude::*;

/// Colours of the lines, in order of the delay: from dark to light, for print without colour.
const LINES: [RGBColor; 7] = [
    RGBColor(0, 49, 92),
    RGBColor(0, 84, 147),
    RGBColor(0, 121, 140),
    RGBColor(90, 140, 60),
    RGBColor(190, 140, 20),
    RGBColor(214, 116, 18),
    RGBColor(190, 60, 40),
];

/// The plot as SVG.
pub(crate) fn svg(found: &Logp, sheet: &Sheet<'_>) -> Result<String, UserError> {
    written(|text| draw(found, sheet, text))
}

/// The line of one delay.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn line(found: &Logp, delay: f64) -> Vec<(f64, f64)> {
    let of = found.points.iter().filter(|point| is_same(point.delay_ns, delay));
    let mut line: Vec<_> = of.map(|point| (point.burst as f64, point.ns_per_message)).collect();
    line.sort_by(|left, right| left.0.total_cmp(&right.0));
    line
}

fn draw<'a>(found: &Logp, sheet: &Sheet<'_>, text: &'a mut String) -> Result<(), Failed<'a>> {
    let title = format!("LogP signature over {} ({}), {}", found.transport, found.attribute, show_size(found.size));
    let (root, panel) = sheet.page(text, &title, &[parameters(found)], 430)?;
    let delays = delays(&found.points);
    let lines: Vec<_> = delays.iter().map(|delay| line(found, *delay)).collect();
    let heights = || lines.iter().flatten().map(|(_, height)| *height).filter(|height| *height > 0.0);
    let (low, high) = (heights().fold(f64::MAX, f64::min), heights().fold(f64::MIN_POSITIVE, f64::max));
    let longest = lines.iter().flatten().map(|(length, _)| *length).fold(2.0, f64::max);
    let mut chart =
        ChartBuilder::on(&panel).margin(14).x_label_area_size(46).y_label_area_size(80).build_cartesian_2d(
            (0.9..longest * 3.0).log_scale().base(2.0),
            (low.min(high) * 0.7..high * 1.5).log_scale(),
        )?;
    mesh(&mut chart.configure_mesh(), 15)
        .x_desc("requests in the burst")
        .y_desc("time per request")
        .x_label_formatter(&|length| format!("{length:.0}"))
        .y_label_formatter(&|ns| short(&time(*ns)))
        .draw()?;
    for ((delay, line), color) in delays.iter().zip(&lines).zip(LINES.iter().cycle()) {
        let color = *color;
        chart
            .draw_series(LineSeries::new(line.iter().copied(), color.stroke_width(2)))?
            .label(format!("delay {}", time(*delay)))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], color.stroke_width(2)));
        chart.draw_series(line.iter().map(|point| Circle::new(*point, 3, color.filled())))?;
    }
    chart.draw_series(DashedLineSeries::new([(0.9, found.g_ns), (longest, found.g_ns)], 6, 4, INK.stroke_width(1)))?;
    legend(&mut chart.configure_series_labels(), SeriesLabelPosition::UpperRight, 12)?;
    root.present()
}

fn parameters(found: &Logp) -> String {
    format!(
        "L {}   o_s {}   o_r {}   g {} (dashed)   G {:.4} ns/B   {:.1} % left over",
        time(found.l_ns),
        time(found.o_s_ns),
        time(found.o_r_ns),
        time(found.g_ns),
        found.g_ns_per_byte,
        100.0 * found.residual
    )
}

#[cfg(test)]
mod tests {
    use super::super::logp::tests::found;
    use super::*;

    #[test]
    fn the_signature_has_a_line_for_each_delay_and_says_the_parameters() {
        let text = svg(&found(), &crate::output::sheet::tests::wide()).unwrap();
        for words in ["delay 0.0 ns", "delay 15.00 us", "L 5.00 us", "requests in the burst"] {
            assert!(text.contains(words), "{words}");
        }
        assert_eq!(text.matches("<circle").count(), found().points.len());
        crate::output::plot::tests::assert_drawn_for_both_grounds(crate::finding::Finding::Logp(found()));
    }
}
