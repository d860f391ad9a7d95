//! The thesis's Figures 5, 12 and 13, drawn of this machine with its figures of 1999 beside.

use super::mpi::{Components, LONGEST, components, figures, ways};
use super::sheet::{Area, Sheet};
use super::style::{Failed, GRID, INK, font, short, written};
use super::table::time;
use crate::UserError;
use crate::finding::Mpi;
use crate::thesis;
use plotters::prelude::*;

const COLORS: [RGBColor; 4] =
    [RGBColor(214, 116, 18), RGBColor(40, 132, 72), RGBColor(0, 84, 147), RGBColor(150, 60, 150)];
/// What was measured in 1999.
const OLD: RGBColor = RGBColor(120, 120, 120);

/// A curve of a panel.
struct Curve {
    label: String,
    color: RGBColor,
    line: Vec<(f64, f64)>,
    dots: Vec<(f64, f64)>,
}

impl Curve {
    fn old(label: &str, of: impl Fn(f64) -> f64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let ends = [8.0, LONGEST as f64];
        Self { label: format!("1999: {label}"), color: OLD, line: straight(ends, of), dots: Vec::new() }
    }
}

/// A line between two ends, in steps: it is one on a logarithmic axis only so.
fn straight([from, to]: [f64; 2], of: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let steps = (0..=32).map(|step| from + (to - from) * f64::from(step) / 32.0);
    steps.map(|x| (x, of(x))).filter(|(_, y)| *y > 0.0).collect()
}

/// The plot as SVG.
pub(super) fn svg(found: &Mpi, sheet: &Sheet<'_>) -> Result<String, UserError> {
    written(|text| draw(found, sheet, text))
}

fn draw<'a>(found: &Mpi, sheet: &Sheet<'_>, text: &'a mut String) -> Result<(), Failed<'a>> {
    let (root, panels) = sheet.panels(text, "Windows of SCI and MPI on this host, beside the thesis of 1999", 3)?;
    let components = components(found);
    let drawn = [
        ("5: one way, by stores and by MPI", compared(found)),
        ("12: components of latency", parts(&components)),
        ("13: model and measured, half round trip", validated(&components)),
    ];
    for ((caption, curves), area) in drawn.iter().zip(panels) {
        panel(&area, caption, curves)?;
    }
    root.present()
}

/// Figure 5.
fn compared(found: &Mpi) -> Vec<Curve> {
    let of = |(way, color): (&str, RGBColor)| {
        let line = figures(&found.points, "oneway", way);
        Curve { label: way.to_owned(), color, dots: line.clone(), line }
    };
    let mut curves: Vec<_> = ways(found).into_iter().zip(COLORS).map(of).collect();
    for (label, ns) in [("MPI, 1 B", thesis::MPI_NS), ("stores, 1 B", thesis::API_NS)] {
        let (label, dots) = (format!("1999: {label}"), vec![(1.0, ns)]);
        curves.push(Curve { label, color: OLD, line: Vec::new(), dots });
    }
    curves
}

/// Figure 12. Links, forwarding and switching are not within a host: `make testbed` measures them.
fn parts(components: &[Components]) -> Vec<Curve> {
    let of = |(of, color): (&Components, RGBColor)| {
        let all = of.fitted.iter().chain(&of.left_out);
        let dots = all.map(|(bytes, half)| (*bytes, half / 2.0)).collect();
        let line = of.line(|bytes| of.overhead.of(bytes));
        Curve { label: format!("{}: overhead", of.way), color, line, dots }
    };
    let mut curves: Vec<_> = components.iter().zip(COLORS).map(of).collect();
    curves.push(Curve::old("overhead", thesis::overhead));
    for (label, ns) in [
        ("switching", thesis::SWITCHING_NS),
        ("forwarding", thesis::FORWARDING_NS),
        ("propagation", thesis::PROPAGATION_NS),
    ] {
        curves.push(Curve::old(label, |_| ns));
    }
    curves
}

/// Figure 13a: the sizes that the fit has not seen.
fn validated(components: &[Components]) -> Vec<Curve> {
    let of = |(of, color): (&Components, RGBColor)| {
        let line = of.line(|bytes| 2.0 * of.overhead.of(bytes));
        Curve { label: format!("{}: model, measured", of.way), color, line, dots: of.left_out.clone() }
    };
    let mut curves: Vec<_> = components.iter().zip(COLORS).map(of).collect();
    curves.push(Curve::old("model, 3 hops", |bytes| thesis::ring(bytes, 3.0)));
    curves
}

impl Components {
    fn line(&self, of: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let sizes = self.fitted.iter().chain(&self.left_out).map(|(bytes, _)| *bytes);
        let (least, most) = sizes.fold((f64::MAX, 0.0_f64), |(least, most), at| (least.min(at), most.max(at)));
        straight([least, most], of)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a small number")]
fn panel<'a>(area: &Area<'a>, caption: &str, curves: &[Curve]) -> Result<(), Failed<'a>> {
    let all = || curves.iter().flat_map(|curve| curve.line.iter().chain(&curve.dots)).map(|(_, y)| *y);
    let (least, most) = all().fold((f64::MAX, 0.0_f64), |(least, most), y| (least.min(y), most.max(y)));
    let (width, height) = area.dim_in_pixel();
    // Of one pixel: bytes, and the factor of a time.
    let across = LONGEST as f64 * 1.02 / f64::from(width.saturating_sub(86).max(1));
    let up = (most * 30.0 / (least * 0.7)).max(1.0).ln() / f64::from(height.saturating_sub(86).max(1));
    let scale = [across, up];
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .caption(caption, font(14).color(&INK))
        .x_label_area_size(42)
        .y_label_area_size(62)
        // Room above for the names of the curves.
        .build_cartesian_2d(0.0..LONGEST as f64 * 1.02, (least * 0.7..most * 30.0).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(GRID)
        .x_desc("bytes")
        .x_labels(8)
        .x_label_formatter(&|bytes| format!("{bytes:.0}"))
        .y_label_formatter(&|value| short(&time(*value)))
        .label_style(font(13).color(&INK))
        .draw()?;
    // Points of the names that stand already.
    let mut names = Vec::new();
    for Curve { label, color, line, dots } in curves {
        let color = *color;
        chart.draw_series(dots.iter().map(|at| Circle::new(*at, 3, color.filled())))?;
        let drawn = chart.draw_series(LineSeries::new(line.iter().copied(), color.stroke_width(2)))?;
        if color == OLD {
            // Named where they are: their colour is the same.
            let beside = if line.is_empty() { dots } else { line };
            let named = name_place(label, beside, (curves, &names), &scale);
            names.extend(named.iter().flat_map(|at| points_of_name(label, *at, &scale)));
            chart.draw_series(named.map(|at| Text::new(label.clone(), at, font(13).color(&OLD))))?;
        } else {
            drawn
                .label(label.clone())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
        }
    }
    chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft).label_font(font(13)).draw()?;
    Ok(())
}

/// Where a name stands beside its line: above or below it, where it covers the fewest points.
/// `scale`: bytes of a pixel, and the logarithm of the factor of one.
#[expect(clippy::cast_precision_loss, reason = "a small number")]
fn name_place(
    label: &str,
    line: &[(f64, f64)],
    (curves, names): (&[Curve], &[(f64, f64)]),
    scale: &[f64; 2],
) -> Option<(f64, f64)> {
    let [across, up] = scale;
    let taken: Vec<_> = curves.iter().flat_map(|curve| curve.line.iter().chain(&curve.dots)).chain(names).collect();
    let [width, height] = name_size(label, scale);
    let right = LONGEST as f64 - width;
    let places = line.iter().filter(|(x, _)| line.len() == 1 || *x + 6.0 <= right).flat_map(|(x, y)| {
        // The place is the upper left corner.
        [18.0, -4.0].map(|above| (x + 6.0, y * (above * up).exp()))
    });
    let covered = |(x, y): &(f64, f64)| {
        let is_covered = |(other, of): &&&(f64, f64)| {
            (*x - 4.0 * across..x + width).contains(other) && (y * (-height).exp()..*y * (3.0 * up).exp()).contains(of)
        };
        taken.iter().filter(is_covered).count()
    };
    places.min_by_key(covered)
}

/// Width of a name, bytes, and the logarithm of the factor of its height.
#[expect(clippy::cast_precision_loss, reason = "a small number")]
fn name_size(label: &str, [across, up]: &[f64; 2]) -> [f64; 2] {
    [label.len() as f64 * 6.5 * across, 15.0 * up]
}

/// Points all over a name whose upper left corner is here.
fn points_of_name(label: &str, (x, y): (f64, f64), scale: &[f64; 2]) -> impl Iterator<Item = (f64, f64)> + use<> {
    let [width, height] = name_size(label, scale);
    let row = move |down: f64| (0..=8).map(move |part| (x + width * f64::from(part) / 8.0, y * (-height * down).exp()));
    [0.0, 0.5, 1.0].into_iter().flat_map(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::mpi::tests::found;

    #[test]
    fn the_three_figures_have_the_curves_of_both_times() {
        let text = svg(&found(), &crate::output::sheet::tests::wide()).unwrap();
        for expected in ["5: one way", "12: components", "13: model", "1999: overhead", "openmpi", "windows: overhead"]
        {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        svg(&Mpi { points: vec![], ..found() }, &crate::output::sheet::tests::wide()).unwrap();
    }

    #[test]
    fn a_name_covers_no_other() {
        let (line, scale) = ([(1.0, 100.0), (250.0, 100.0)], [1.0, 0.01]);
        let first = name_place("a name", &line, (&[], &[]), &scale).unwrap();
        let names: Vec<_> = points_of_name("a name", first, &scale).collect();
        assert_ne!(name_place("a name", &line, (&[], &names), &scale), Some(first));
        assert_eq!(name_place("a name", &line, (&[], &[]), &scale), Some(first), "nothing is there");
    }
}
