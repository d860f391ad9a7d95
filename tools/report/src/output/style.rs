//! What all plots look like: their text, the colour of their lines, and the ends of their axes.

use crate::{UserError, while_doing};
use plotters::chart::{MeshStyle, SeriesLabelStyle};
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;
use std::ops::Range;

/// Colour of lines behind the curves.
pub const GRID: RGBColor = RGBColor(222, 222, 222);
/// Colour of axes and text.
pub const INK: RGBColor = RGBColor(40, 40, 40);

/// Why a plot could not be drawn.
pub type Failed<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

/// Text of this height, pixels.
pub fn font(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(0, 0))
}

/// The SVG of what draws to a text.
///
/// # Errors
///
/// It could not be drawn.
pub fn written(draw: impl for<'a> FnOnce(&'a mut String) -> Result<(), Failed<'a>>) -> Result<String, UserError> {
    let mut text = String::new();
    draw(&mut text).map_err(while_doing("cannot draw the plot"))?;
    Ok(text)
}

/// A mesh in the colours of all plots, with labels of this height.
pub fn mesh<'m, 'a, 'b, X, Y, B: DrawingBackend>(
    mesh: &'m mut MeshStyle<'a, 'b, X, Y, B>,
    height: i32,
) -> &'m mut MeshStyle<'a, 'b, X, Y, B>
where
    X: Ranged<ValueType: std::fmt::Debug> + ValueFormatter<X::ValueType>,
    Y: Ranged<ValueType: std::fmt::Debug> + ValueFormatter<Y::ValueType>,
{
    mesh.bold_line_style(GRID).light_line_style(TRANSPARENT).axis_style(INK).label_style(font(height).color(&INK))
}

/// Draws the names of the lines of a chart.
pub(super) fn legend<'a, 's: 'a, C: CoordTranslate>(
    labels: &mut SeriesLabelStyle<'a, '_, SVGBackend<'s>, C>,
    position: SeriesLabelPosition,
    margin: u32,
) -> Result<(), Failed<'s>> {
    labels
        .position(position)
        .margin(margin)
        .background_style(WHITE.filled())
        .border_style(GRID)
        .label_font(font(15).color(&INK))
        .draw()
}

/// Without decimals that are all zero: axes have round numbers.
pub fn short(text: &str) -> String {
    text.replacen(".00 ", " ", 1).replacen(".0 ", " ", 1)
}

/// The range of a logarithmic axis, with two powers of ten at least: its labels.
pub(super) fn labelled(range: Range<f64>) -> Range<f64> {
    let (low, high) = (range.start.log10(), range.end.log10());
    // The next powers outside of it.
    let (below, above) = (low.ceil() - 1.0, high.floor() + 1.0);
    let inside = high.floor() - low.ceil() + 1.0;
    let (extend_down, extend_up) = match inside {
        inside if inside >= 2.0 => (false, false),
        inside if inside >= 1.0 => (low - below <= above - high, low - below > above - high),
        _ => (true, true),
    };
    // A power itself is reached by a step of the rounding.
    let start = if extend_down { 10_f64.powf(below) * (1.0 - 1e-9) } else { range.start };
    start..if extend_up { 10_f64.powf(above) * (1.0 + 1e-9) } else { range.end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_has_two_labels() {
        let powers = |range: Range<f64>| (-3..9).filter(|power| range.contains(&10_f64.powi(*power))).count();
        let of = |low, high| labelled(low..high);
        assert_eq!(of(5.0, 500.0), 5.0..500.0);
        for (low, high) in [(90.0, 200.0), (2.0, 8.0), (2.0, 30.0), (20.0, 900.0), (10.0, 20.0), (0.02, 0.03)] {
            let range = of(low, high);
            assert!(powers(range.clone()) == 2 && range.start <= low && range.end >= high, "{range:?}");
        }
    }
}
