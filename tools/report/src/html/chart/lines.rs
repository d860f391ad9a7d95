//! Lines with their bands, points and labels.

use super::area::Area;
use super::label::spread;
use super::marker::marker;
use super::svg::{at, path};
use crate::html::library::{Look, Mark};
use maud::{Markup, html};

/// One line of a chart.
#[derive(Clone, Debug)]
pub(in crate::html) struct Line {
    /// What stands at its end: a word or two.
    pub(in crate::html) label: String,
    pub(in crate::html) look: Look,
    /// In the order of the abscissa.
    pub(in crate::html) points: Vec<Point>,
}

/// One point of a line.
#[derive(Clone, Debug)]
pub(in crate::html) struct Point {
    pub(in crate::html) x: f64,
    pub(in crate::html) y: f64,
    /// The ends of the band here.
    pub(in crate::html) band: Option<(f64, f64)>,
    pub(in crate::html) is_accurate: bool,
    /// What is told when one points at it.
    pub(in crate::html) told: String,
}

/// Units between two labels.
const GAP: f64 = 11.0;

/// All lines: bands below, then lines, then points, then labels, so that none hides what is read.
pub(super) fn drawn(lines: &[Line], area: &Area<'_>, clip: &str) -> Markup {
    let place = |point: &Point| (area.x_of(point.x), area.y_of(point.y));
    html! {
        g clip-path={ "url(#" (clip) ")" } {
            @for line in lines { (band(area, line)) }
        }
        // The first lines are those that matter most, and are drawn last.
        @for line in lines.iter().rev() {
            g class=(line.look.class) {
                path class={ "line " (line.look.dash) } d=(path(line.points.iter().map(place))) {}
                @if line.look.mark != Mark::Line {
                    @for point in &line.points {
                        @let (x, y) = place(point);
                        g { title { (point.told) } (marker(&line.look, x, y, point.is_accurate)) }
                    }
                }
            }
        }
        (labels(lines, area))
    }
}

/// The band of a line, and a mark at the edge wherever it goes beyond.
fn band(area: &Area<'_>, line: &Line) -> Markup {
    let edge = |end: fn((f64, f64)) -> f64| {
        line.points.iter().filter_map(move |point| {
            Some((area.x_of(point.x), area.y_of(end(point.band?)).clamp(area.top - 9.0, area.bottom + 9.0)))
        })
    };
    let low: Vec<_> = edge(|(low, _)| low).collect();
    let high: Vec<_> = edge(|(_, high)| high).collect();
    let around = low.iter().chain(high.iter().rev()).copied();
    html! {
        @if low.len() > 1 { path class={ "band " (line.look.class) } d={ (path(around)) "Z" } {} }
    }
}

/// The name of each line at its last point.
fn labels(lines: &[Line], area: &Area<'_>) -> Markup {
    let ends: Vec<_> = lines
        .iter()
        .filter(|line| !line.label.is_empty())
        .filter_map(|line| {
            let last = line.points.last()?;
            Some((line, area.x_of(last.x), area.y_of(last.y)))
        })
        .collect();
    let heights: Vec<_> = ends.iter().map(|(_, _, y)| *y).collect();
    let places = spread(&heights, GAP, area.top, area.bottom);
    html! {
        g class="labels" {
            @for ((line, x, y), place) in ends.iter().zip(places) {
                @if (place - y).abs() > 2.0 || area.right - x > 4.0 {
                    path class={ "leader " (line.look.class) } d=(path([(x + 3.0, *y), (area.right + 6.0, place)].into_iter())) {}
                }
                text class=(line.look.class) x=(at(area.right + 8.0)) y=(at(place)) dy=".35em" { (line.label) }
            }
        }
    }
}
