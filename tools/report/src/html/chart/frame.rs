//! The frame of a chart: its axes, their grid and labels.

use super::area::Area;
use super::axis::Axis;
use super::lines::{Line, drawn};
use super::svg::{WIDTH, at, width_of};
use maud::{Markup, html};

/// A chart of lines over two axes.
pub(in crate::html) struct Chart {
    /// Its name within the page; no two may have the same.
    pub(in crate::html) id: String,
    /// What a reader who does not see it is told.
    pub(in crate::html) description: String,
    pub(in crate::html) x: Axis,
    pub(in crate::html) y: Axis,
    pub(in crate::html) lines: Vec<Line>,
}

const HEIGHT: f64 = 270.0;

impl Chart {
    pub(in crate::html) fn draw(&self) -> Markup {
        let ticks = self.y.labels();
        let widest = |letters: &mut dyn Iterator<Item = usize>| width_of(letters.max().unwrap_or(0));
        let left = 12.0 + widest(&mut ticks.iter().map(|(_, label)| label.chars().count()));
        let right = 14.0 + widest(&mut self.lines.iter().map(|line| line.label.chars().count()));
        let (right, bottom) = (WIDTH - right.min(120.0), HEIGHT - 36.0);
        let area = Area { x: &self.x, y: &self.y, left, right, top: 22.0, bottom };
        let clip = format!("{}-clip", self.id);
        html! {
            svg class="chart" viewBox={ "0 0 " (at(WIDTH)) " " (at(HEIGHT)) } role="img" aria-labelledby={ (self.id) "-about" } {
                title id={ (self.id) "-about" } { (self.description) }
                defs { clipPath id=(clip) {
                    rect x=(at(area.left)) y=(at(area.top)) width=(at(area.right - area.left))
                        height=(at(area.bottom - area.top)) {}
                } }
                (self.grid(&area, &ticks))
                (drawn(&self.lines, &area, &clip))
            }
        }
    }

    fn grid(&self, area: &Area<'_>, ticks: &[(f64, String)]) -> Markup {
        html! {
            g class="grid" {
                @for (value, label) in ticks {
                    @let y = at(area.y_of(*value));
                    line x1=(at(area.left)) x2=(at(area.right)) y1=(y) y2=(y) {}
                    text class="end" x=(at(area.left - 5.0)) y=(y) dy=".35em" { (label) }
                }
            }
            g class="axis" {
                line x1=(at(area.left)) x2=(at(area.right)) y1=(at(area.bottom)) y2=(at(area.bottom)) {}
                @for (value, label) in self.x.labels() {
                    @let x = at(area.x_of(value));
                    line x1=(x) x2=(x) y1=(at(area.bottom)) y2=(at(area.bottom + 3.0)) {}
                    text class="middle" x=(x) y=(at(area.bottom + 14.0)) { (label) }
                }
                text class="name" x="2" y="11" { (self.y.name) }
                text class="name middle" x=(at(f64::midpoint(area.left, area.right))) y=(at(area.bottom + 30.0)) { (self.x.name) }
            }
        }
    }
}
