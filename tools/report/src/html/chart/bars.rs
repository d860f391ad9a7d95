//! Bars: a value each, or the parts of a whole, with the numbers beside them.

use super::svg::{WIDTH, at, width_of};
use maud::{Markup, html};

/// One bar.
#[derive(Clone, Debug)]
pub(in crate::html) struct Bar {
    pub(in crate::html) label: String,
    /// From left to right; a value alone is one part.
    pub(in crate::html) parts: Vec<Part>,
    /// What stands behind it.
    pub(in crate::html) told: String,
}

/// One part of a bar.
#[derive(Clone, Debug)]
pub(in crate::html) struct Part {
    /// Its colour, as a class of the style.
    pub(in crate::html) class: String,
    pub(in crate::html) value: f64,
    /// What is told when one points at it.
    pub(in crate::html) told: String,
}

impl Bar {
    /// Where its parts begin and how long they are, and where it ends.
    fn places(&self, scale: f64) -> (Vec<(f64, f64, &Part)>, f64) {
        let mut end = 0.0;
        let mut places = Vec::new();
        for part in self.parts.iter().filter(|part| part.value > 0.0) {
            let length = part.value * scale;
            places.push((end, length, part));
            end += length;
        }
        (places, end)
    }
}

/// Height of a bar and its label.
const ROW: f64 = 34.0;
/// Bars over the same scale, from zero. `about` is what a reader who does not see them is told.
pub(in crate::html) fn bars(id: &str, about: &str, bars: &[Bar]) -> Markup {
    let longest = bars.iter().map(|bar| bar.places(1.0).1).fold(f64::MIN_POSITIVE, f64::max);
    let letters = bars.iter().map(|bar| bar.told.chars().count()).max().unwrap_or(0);
    let scale = (WIDTH - 8.0 - width_of(letters)) / longest;
    #[expect(clippy::cast_precision_loss, reason = "a few bars")]
    let top = |row: usize| row as f64 * ROW;
    html! {
        svg class="chart bars" viewBox={ "0 0 " (at(WIDTH)) " " (at(top(bars.len()))) } role="img" aria-labelledby={ (id) "-about" } {
            title id={ (id) "-about" } { (about) }
            @for (row, bar) in bars.iter().enumerate() {
                @let (places, end) = bar.places(scale);
                text class="name" x="0" y=(at(top(row) + 11.0)) { (bar.label) }
                @for (left, length, part) in places {
                    // A gap of the ground's colour keeps neighbours apart without colour.
                    rect class={ "part " (part.class) } x=(at(left)) y=(at(top(row) + 15.0))
                        width=(at((length - 1.0).max(0.6))) height="13" { title { (part.told) } }
                }
                text x=(at(end + 5.0)) y=(at(top(row) + 21.5)) dy=".35em" { (bar.told) }
            }
        }
    }
}
