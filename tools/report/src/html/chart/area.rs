//! The area of a chart that its lines are drawn in.

use super::axis::Axis;

/// The place of the lines within a chart, and what its edges stand for.
pub(super) struct Area<'a> {
    pub(super) x: &'a Axis,
    pub(super) y: &'a Axis,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Area<'_> {
    pub(super) fn x_of(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * self.x.part(value)
    }

    pub(super) fn y_of(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.y.part(value)
    }
}
