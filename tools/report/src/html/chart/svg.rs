//! Lengths, coordinates and paths of SVG.

/// Width of a chart in its own units. It is shown between 0.85 and 1.5 times as large.
pub(super) const WIDTH: f64 = 400.0;

/// Units that so many letters of a label take, in the largest size that it is shown in.
#[expect(clippy::cast_precision_loss, reason = "letters of a label")]
pub(super) fn width_of(letters: usize) -> f64 {
    letters as f64 * 6.1
}

/// A coordinate: a tenth of a unit is less than a pixel.
pub(super) fn at(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), String::from)
}

/// A path through points.
pub(super) fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut text = String::new();
    for (index, (x, y)) in points.enumerate() {
        text += &format!("{}{} {}", if index == 0 { "M" } else { "L" }, at(x), at(y));
    }
    text
}
