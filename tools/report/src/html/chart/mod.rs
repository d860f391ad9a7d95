//! Charts as SVG inside the page: shapes have classes, and the page's style gives them their
//! colours, so that they suit a light ground, a dark one, and paper.

mod area;
mod axis;
mod bars;
mod frame;
mod label;
mod lines;
mod marker;
mod svg;

pub(super) use axis::{Axis, Spread};
pub(super) use bars::{Bar, Part, bars};
pub(super) use frame::Chart;
pub(super) use lines::{Line, Point};
pub(super) use marker::swatch;
