//! Markers: one shape a library, so that lines are told apart without colour as well.

use super::svg::{at, path};
use crate::html::library::{Look, Mark};
use maud::{Markup, html};

/// The marker of a point, hollow where that is not accurate; nothing for a line without points.
pub(super) fn marker(look: &Look, x: f64, y: f64, is_accurate: bool) -> Markup {
    let Mark::Shape(shape) = look.mark else { return html! {} };
    let class = if is_accurate { "dot" } else { "dot hollow" };
    let corner = |(dx, dy): &(f64, f64)| (x + dx, y + dy);
    match corners(shape) {
        None => html! { circle class=(class) cx=(at(x)) cy=(at(y)) r="3.2" {} },
        Some(corners) => html! { path class=(class) d={ (path(corners.iter().map(corner))) "Z" } {} },
    }
}

/// The corners of a shape around its middle; none for a disc.
fn corners(shape: usize) -> Option<&'static [(f64, f64)]> {
    const SHAPES: [&[(f64, f64)]; 5] = [
        &[(-2.9, -2.9), (2.9, -2.9), (2.9, 2.9), (-2.9, 2.9)],
        &[(0.0, -4.2), (4.2, 0.0), (0.0, 4.2), (-4.2, 0.0)],
        &[(0.0, -4.0), (3.9, 3.0), (-3.9, 3.0)],
        &[(0.0, 4.0), (-3.9, -3.0), (3.9, -3.0)],
        &[(-4.0, 0.0), (-1.2, -1.2), (0.0, -4.0), (1.2, -1.2), (4.0, 0.0), (1.2, 1.2), (0.0, 4.0), (-1.2, 1.2)],
    ];
    SHAPES.get(shape.checked_sub(1)?).copied()
}

/// A piece of a line with its marker, or of a surface, for a legend.
pub(in crate::html) fn swatch(look: &Look) -> Markup {
    html! {
        svg class={ "swatch " (look.class) } viewBox="0 0 28 12" aria-hidden="true" {
            @if look.mark == Mark::Block {
                rect class="part" x="8" y="0" width="12" height="12" {}
            } @else {
                path class={ "line " (look.dash) } d="M1 6L27 6" {}
                (marker(look, 14.0, 6.0, true))
            }
        }
    }
}
