//! The page that a plot is drawn on: its width, its heading, its panels, and what the run ran on.

use super::style::{Failed, INK, font};
use crate::environment::Environment;
use plotters::coord::Shift;
use plotters::prelude::*;

/// Where something is drawn.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// How wide the page is for which a plot is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// For a screen or a sheet of paper: panels side by side.
    Wide,
    /// For a phone, or a column of text: panels below each other.
    Narrow,
}

/// Height of a line of the footer, and of the heading, pixels.
const LINE_HEIGHT: u32 = 17;
const HEADING_HEIGHT: u32 = 26;
/// Size of the text of both, pixels.
const FOOTER: i32 = 13;
const HEADING: i32 = 19;
/// Between the edge and text, pixels.
const EDGE: i32 = 24;

impl Shape {
    /// Pixels.
    pub(super) const fn width(self) -> u32 {
        match self {
            Self::Wide => 1160,
            Self::Narrow => 480,
        }
    }

    /// Pixels of a panel with an axis below it.
    const fn panel_height(self) -> u32 {
        match self {
            Self::Wide => 446,
            Self::Narrow => 360,
        }
    }

    /// Characters of a text that fit in the width, where a character is that much of the size of
    /// the text, on average.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a hundred characters")]
    fn characters(self, size: i32) -> usize {
        const PART: f64 = 0.53;
        ((f64::from(self.width()) - 2.0 * f64::from(EDGE)) / (PART * f64::from(size))) as usize
    }
}

/// A page of a shape, with what stands below its panels.
#[derive(Clone, Copy)]
pub struct Sheet<'e> {
    /// What the run ran on.
    pub environment: &'e Environment,
    /// How wide it is.
    pub shape: Shape,
}

impl<'e> Sheet<'e> {
    /// A page of a shape for a run on something.
    pub const fn new(environment: &'e Environment, shape: Shape) -> Self {
        Self { environment, shape }
    }

    /// An empty page with a heading, so many panels, and what the run ran on: the page, to be
    /// presented when it is full, and its panels.
    pub(super) fn panels<'a>(
        &self,
        text: &'a mut String,
        heading: &str,
        count: usize,
    ) -> Result<(Area<'a>, Vec<Area<'a>>), Failed<'a>> {
        let across = self.shape == Shape::Wide;
        let rows = if across { 1 } else { u32::try_from(count).unwrap_or(1).max(1) };
        let (root, body) = self.page(text, heading, &[], rows * self.shape.panel_height())?;
        let panels = body.split_evenly(if across { (1, count) } else { (count, 1) });
        Ok((root, panels))
    }

    /// An empty page with a heading, lines below it, and what the run ran on: the page, to be
    /// presented when it is full, and the place between, of this height.
    pub(super) fn page<'a>(
        &self,
        text: &'a mut String,
        heading: &str,
        lines: &[String],
        height: u32,
    ) -> Result<(Area<'a>, Area<'a>), Failed<'a>> {
        let heading = wrapped(heading, self.shape.characters(HEADING));
        let lines: Vec<_> = lines.iter().flat_map(|line| wrapped(line, self.shape.characters(FOOTER))).collect();
        let footer = wrapped(&self.environment.line(), self.shape.characters(FOOTER));
        let tall = |of: &[String], line: u32| line * u32::try_from(of.len()).unwrap_or(0);
        let top = 18 + tall(&heading, HEADING_HEIGHT) + tall(&lines, LINE_HEIGHT);
        let bottom = 14 + tall(&footer, LINE_HEIGHT);
        let page = (self.shape.width(), top + height + bottom);
        let root = SVGBackend::with_string(text, page).into_drawing_area();
        root.fill(&WHITE)?;
        let (above, rest) = root.split_vertically(top);
        let (body, foot) = rest.split_vertically(height);
        let below = write(&above, &heading, 14, (HEADING, HEADING_HEIGHT))?;
        write(&above, &lines, below, (FOOTER, LINE_HEIGHT))?;
        write(&foot, &footer, 6, (FOOTER, LINE_HEIGHT))?;
        Ok((root, body))
    }
}

/// Writes lines below each other; where the next one would stand.
fn write<'a>(area: &Area<'a>, lines: &[String], top: i32, (size, height): (i32, u32)) -> Result<i32, Failed<'a>> {
    let mut at = top;
    for line in lines {
        area.draw(&Text::new(line.as_str(), (EDGE, at), font(size).color(&INK)))?;
        at += i32::try_from(height).unwrap_or(0);
    }
    Ok(at)
}

/// A text in lines of at most so many characters, broken between words and where it is broken
/// already.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::sync::LazyLock;

    static NOWHERE: LazyLock<Environment> = LazyLock::new(Environment::default);

    /// A wide page for a run on nothing.
    pub(in super::super) fn wide() -> Sheet<'static> {
        Sheet::new(&NOWHERE, Shape::Wide)
    }

    /// A narrow one.
    pub(in super::super) fn narrow() -> Sheet<'static> {
        Sheet::new(&NOWHERE, Shape::Narrow)
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("a bb ccc\nd", 4), ["a bb", "ccc", "d"]);
    }
}
