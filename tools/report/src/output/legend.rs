//! The heading of a panel: its title, and the names of its curves in rows below it, where no curve
//! can be.

use super::sheet::{Area, wrapped};
use super::style::{Failed, INK, font};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Above the title, and the height of a line of it and of a row of names, pixels.
const TOP: u32 = 8;
const ROW: u32 = 17;
/// Size of the text of both.
const TITLE_SIZE: i32 = 14;
const NAME_SIZE: i32 = 13;
/// Of a name: its stroke, from the stroke to the text, a letter, and what lies behind.
const STROKE: i32 = 16;
const GAP: i32 = 6;
const LETTER: i32 = 7;
const BEHIND: i32 = 14;
/// A letter of the title.
const TITLE_LETTER: i32 = 6;
/// Between the edge of a panel and what is drawn in it.
const EDGE: i32 = 12;

fn width(name: &str) -> i32 {
    STROKE + GAP + LETTER * i32::try_from(name.chars().count()).unwrap_or(0)
}

/// The row of each name, and where it begins in it, where a row has so many pixels.
fn places(names: &[(&str, RGBColor)], room: i32) -> Vec<(u32, i32)> {
    let (mut row, mut at) = (0, 0);
    let place = |(name, _): &(&str, RGBColor)| {
        if at > 0 && at + width(name) > room {
            (row, at) = (row + 1, 0);
        }
        let place = (row, at);
        at += width(name) + BEHIND;
        place
    };
    names.iter().map(place).collect()
}

/// Draws the heading of a panel whose plot begins `left` pixels from its edge; the rest of the
/// panel.
pub(super) fn heading<'a>(
    panel: &Area<'a>,
    title: &str,
    names: &[(&str, RGBColor)],
    left: i32,
) -> Result<Area<'a>, Failed<'a>> {
    let (across, height) = panel.dim_in_pixel();
    let across = i32::try_from(across).unwrap_or(i32::MAX);
    let title = wrapped(title, usize::try_from((across - EDGE) / TITLE_LETTER).unwrap_or(0));
    let lines = u32::try_from(title.len()).unwrap_or(0);
    let places = places(names, across - left - EDGE);
    let rows = places.last().map_or(0, |(row, _)| row + 1);
    let (head, rest) = panel.split_vertically((TOP + ROW * (lines + rows)).min(height));
    let middle = |row| i32::try_from(TOP + ROW * row + ROW / 2).unwrap_or(0);
    for (line, row) in title.iter().zip(0..) {
        let centred = font(TITLE_SIZE).color(&INK).pos(Pos::new(HPos::Center, VPos::Center));
        head.draw(&Text::new(line.as_str(), (across / 2, middle(row)), centred))?;
    }
    for ((name, color), (row, at)) in names.iter().zip(places) {
        let (from, middle) = (left + at, middle(lines + row));
        head.draw(&PathElement::new([(from, middle), (from + STROKE, middle)], color.stroke_width(2)))?;
        let beside = font(NAME_SIZE).color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
        head.draw(&Text::new(*name, (from + STROKE + GAP, middle), beside))?;
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_beside_and_below_each_other_and_none_is_cut() {
        let names = ["aligned", "unaligned", "flushed", "library", "bare"].map(|name| (name, INK));
        let places = places(&names, 200);
        assert_eq!(places.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [0, 0, 1, 1, 2]);
        for ((name, _), (row, at)) in names.iter().zip(&places) {
            let end = at + width(name);
            assert!(end <= 200 && places.iter().all(|(other, from)| other != row || from <= at || *from > end));
        }
        assert_eq!(super::places(&[("a name wider than its panel", INK)], 20), [(0, 0)]);
    }
}
