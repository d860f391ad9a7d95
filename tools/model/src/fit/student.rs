//! Student's t distribution.

use std::f64::consts::FRAC_2_PI;

/// The probability that |T| stays below `t`, for whole degrees of freedom (Abramowitz and Stegun,
/// Handbook of Mathematical Functions, 26.7.3 and 26.7.4).
fn within(t: f64, degrees: u32) -> f64 {
    let angle = (t / f64::from(degrees).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = degrees % 2 == 1;
    if degrees == 1 {
        return FRAC_2_PI * angle;
    }
    // Odd: cos + 2/3 cos^3 + (2 4)/(3 5) cos^5 ...; even: 1 + 1/2 cos^2 + (1 3)/(2 4) cos^4 ...
    let (mut term, mut sum) = if is_odd { (cosine, cosine) } else { (1.0, 1.0) };
    let first = if is_odd { 2 } else { 1 };
    let mut number = first;
    while number + 2 - first + u32::from(is_odd) < degrees {
        term *= cosine * cosine * f64::from(number) / f64::from(number + 1);
        sum += term;
        number += 2;
    }
    if is_odd { FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

/// The t that |T| stays below with this probability, in (0, 1); infinite without degrees of
/// freedom.
#[must_use]
pub fn quantile(probability: f64, degrees: u32) -> f64 {
    if degrees == 0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while within(high, degrees) < probability {
        high *= 2.0;
    }
    // Each step halves the interval: after these it is as narrow as a double tells.
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if within(middle, degrees) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Abramowitz and Stegun, table 26.10, A = 0.95 and 0.99.
        let table = [
            (1, 12.706, 63.657),
            (2, 4.303, 9.925),
            (3, 3.182, 5.841),
            (4, 2.776, 4.604),
            (5, 2.571, 4.032),
            (10, 2.228, 3.169),
            (29, 2.045, 2.756),
            (30, 2.042, 2.750),
            (120, 1.980, 2.617),
        ];
        for (degrees, at_95, at_99) in table {
            assert!((quantile(0.95, degrees) - at_95).abs() < 6e-4, "{degrees}: {}", quantile(0.95, degrees));
            assert!((quantile(0.99, degrees) - at_99).abs() < 6e-4, "{degrees}: {}", quantile(0.99, degrees));
        }
        assert!((quantile(0.95, 100_000) - 1.96).abs() < 1e-3);
        assert!(quantile(0.95, 0).is_infinite());
    }
}
