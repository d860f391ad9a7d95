//! Charts as SVG inside the page: shapes have classes, and the page's style gives them their
//! colours, so that they suit a light ground, a dark one, and paper.

mod axis;
mod bars;
mod frame;
mod label;
mod lines;
mod marker;

pub(super) use axis::{Axis, Spread};
pub(super) use bars::{Bar, Part, bars};
pub(super) use frame::Chart;
pub(super) use lines::{Line, Point};
pub(super) use marker::swatch;

/// Width of a chart in its own units. It is shown between 0.85 and 1.5 times as large.
const WIDTH: f64 = 400.0;

/// Units that so many letters of a label take, in the largest size that it is shown in.
#[expect(clippy::cast_precision_loss, reason = "letters of a label")]
fn width_of(letters: usize) -> f64 {
    letters as f64 * 6.1
}

/// A coordinate: a tenth of a unit is less than a pixel.
fn at(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), String::from)
}

/// A path through points.
fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut text = String::new();
    for (index, (x, y)) in points.enumerate() {
        text += &format!("{}{} {}", if index == 0 { "M" } else { "L" }, at(x), at(y));
    }
    text
}
