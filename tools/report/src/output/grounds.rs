//! A drawing for both grounds: dark on a light page, and light on a dark one.

use std::collections::BTreeSet;
use std::fmt::Write;

/// Lightness in Oklab of the dark ground, which takes the place of white.
const GROUND: f64 = 0.21;
/// Lightness in Oklab that takes the place of black.
const INK: f64 = 0.97;
/// Less than 1: what is between the two comes nearer to the ink, since curves of a middle lightness
/// would not stand out from the dark ground.
const LIFT: f64 = 0.6;

/// Makes a drawing fit a page that is narrower, and gives each of its colours a counterpart of the
/// same hue for a reader who prefers a dark ground.
///
/// `svg` is what `plotters` writes: colours as `fill="#RRGGBB"` and `stroke="#RRGGBB"`.
pub fn for_both_grounds(svg: &str) -> String {
    let mut style = String::from("svg{max-width:100%;height:auto}@media(prefers-color-scheme:dark){");
    for colour in colours(svg) {
        let [red, green, blue] = on_dark(colour);
        let dark = format!("#{red:02X}{green:02X}{blue:02X}");
        let [red, green, blue] = colour;
        let light = format!("#{red:02X}{green:02X}{blue:02X}");
        let _ = write!(style, "[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}");
    }
    style.push('}');
    match svg.split_once('>') {
        Some((head, rest)) => format!("{head}>\n<style>{style}</style>{rest}"),
        None => svg.to_owned(),
    }
}

/// Each colour of a drawing once.
fn colours(svg: &str) -> BTreeSet<[u8; 3]> {
    let values = svg.split("=\"#").skip(1).filter_map(|rest| rest.get(..6));
    values
        .filter_map(|hex| u32::from_str_radix(hex, 16).ok())
        .map(|rgb| rgb.to_be_bytes())
        .map(|[_, r, g, b]| [r, g, b])
        .collect()
}

/// The counterpart of a colour: its lightness turned round between the ground and the ink, its hue
/// kept, and as much of its chroma as a screen can show.
fn on_dark(colour: [u8; 3]) -> [u8; 3] {
    let [lightness, a, b] = oklab(colour);
    let turned = GROUND + (INK - GROUND) * (1.0 - lightness).max(0.0).powf(LIFT);
    // A step is less than a 255th of a channel.
    let fits = (0..=200).rev().map(|part| f64::from(part) / 200.0).find_map(|part| shown([turned, a * part, b * part]));
    fits.unwrap_or([255; 3])
}

/// Lightness, and the two axes of hue and chroma, of a colour of sRGB.
fn oklab(colour: [u8; 3]) -> [f64; 3] {
    let [r, g, b] = colour.map(linear);
    let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
    let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
    let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
    [
        0.210_454_255_3 * l + 0.793_617_785_0 * m - 0.004_072_046_8 * s,
        1.977_998_495_1 * l - 2.428_592_205_0 * m + 0.450_593_709_9 * s,
        0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766_0 * s,
    ]
}

/// The colour of sRGB, unless it lies outside of what a screen shows.
fn shown([lightness, a, b]: [f64; 3]) -> Option<[u8; 3]> {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    let channels = [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ];
    channels.iter().all(|channel| (-1e-4..=1.0001).contains(channel)).then(|| channels.map(stored))
}

/// A channel of sRGB as an amount of light, 0 to 1.
fn linear(stored: u8) -> f64 {
    let part = f64::from(stored) / 255.0;
    if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a byte")]
fn stored(light: f64) -> u8 {
    let light = light.clamp(0.0, 1.0);
    let part = if light <= 0.003_130_8 { light * 12.92 } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 };
    (part * 255.0).round() as u8
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The contrast of two colours, as the Web Content Accessibility Guidelines have it.
    fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
        let light = |colour: [u8; 3]| {
            let [r, g, b] = colour.map(linear);
            0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
        };
        light(one).max(light(other)) / light(one).min(light(other))
    }

    /// Each colour of a drawing that stands out from a white ground stands out from the dark one.
    pub(crate) fn assert_suits_both_grounds(svg: &str) {
        assert!(svg.contains("prefers-color-scheme:dark"), "there is one ground only");
        let ground = on_dark([255; 3]);
        let (_, drawn) = svg.split_once("</style>").unwrap();
        let seen: Vec<_> = colours(drawn).into_iter().filter(|colour| contrast(*colour, [255; 3]) >= 2.6).collect();
        assert!(seen.len() >= 2, "{seen:?}");
        for colour in seen {
            let dark = contrast(on_dark(colour), ground);
            assert!(dark >= 3.0, "{colour:?} has a contrast of {dark:.2} on the dark ground");
        }
        for colour in colours(drawn) {
            let [r, g, b] = colour;
            assert!(svg.contains(&format!("[fill=\"#{r:02X}{g:02X}{b:02X}\"]")), "{colour:?} has no counterpart");
        }
    }

    #[test]
    fn white_becomes_the_ground_and_black_the_ink() {
        let [ground, ink] = [[255; 3], [0; 3]].map(on_dark);
        assert!(ground.iter().all(|channel| *channel < 32), "{ground:?}");
        assert!(ink.iter().all(|channel| *channel > 235), "{ink:?}");
    }

    #[test]
    fn a_colour_keeps_its_hue() {
        for colour in [[0, 84, 147], [214, 116, 18], [40, 132, 72], [200, 40, 40]] {
            let hue = |colour| {
                let [_, a, b]: [f64; 3] = oklab(colour);
                b.atan2(a)
            };
            let turned = (hue(colour) - hue(on_dark(colour))).abs();
            assert!(turned < 0.1, "{colour:?} {turned}");
        }
    }

    #[test]
    fn a_colour_survives_the_way_there_and_back() {
        for colour in [[0, 0, 0], [255, 255, 255], [0, 84, 147], [214, 116, 18]] {
            assert_eq!(shown(oklab(colour)), Some(colour));
        }
    }
}
