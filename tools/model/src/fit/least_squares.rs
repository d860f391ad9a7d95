//! Linear least squares whose unknowns may not all be determined.
//!
//! What a linear model's data determine are the combinations of unknowns that are orthogonal to the
//! null space of its matrix (*estimable functions*: S. R. Searle, Linear Models, 1971, chapter 5).
//! They are the same for every solution; the one of the smallest norm is taken.

/// Eigenvalues below this part of the largest are zero: counts of components and sizes are small
/// numbers, scaled to length one.
const ZERO: f64 = 1e-9;
/// Entries off the diagonal below this are zero; those on it are one.
const NEGLIGIBLE: f64 = 1e-18;
/// Sweeps of Jacobi's method; five or so are enough for matrices this small.
const SWEEPS: usize = 20;

/// A matrix as a list of rows.
type Rows<const K: usize> = [[f64; K]; K];

/// Data of a linear model: rows of coefficients, what was observed for each, and its standard
/// deviation but for a common factor.
#[derive(Clone, Debug)]
pub(super) struct Data<const K: usize> {
    pub(super) rows: Vec<([f64; K], f64, f64)>,
}

/// A solution.
#[derive(Clone, Debug)]
pub(super) struct Solution<const K: usize> {
    /// The solution of the smallest norm, in scaled unknowns.
    scaled: [f64; K],
    /// The pseudo-inverse of the scaled normal matrix.
    inverse: Rows<K>,
    /// Directions in which the scaled unknowns are not determined.
    null: Vec<[f64; K]>,
    /// Lengths of the columns: what unknowns are scaled by.
    scale: [f64; K],
    /// The common factor of all standard deviations; `None` when as many unknowns as data leave
    /// nothing to tell it from.
    pub(super) deviation: Option<f64>,
    /// Data less determined unknowns.
    pub(super) degrees: u32,
}

impl<const K: usize> Data<K> {
    pub(super) fn solve(&self) -> Solution<K> {
        let rows: Vec<_> =
            self.rows.iter().map(|(row, seen, spread)| (row.map(|x| x / spread), seen / spread)).collect();
        let mut scale = [0.0; K];
        for (row, _) in &rows {
            for (sum, x) in scale.iter_mut().zip(row) {
                *sum += x * x;
            }
        }
        // An unknown that occurs nowhere keeps its scale, and is not determined.
        let scale = scale.map(|sum: f64| if sum > 0.0 { sum.sqrt() } else { 1.0 });
        let (mut normal, mut right) = ([[0.0; K]; K], [0.0; K]);
        for (row, seen) in &rows {
            let row: [f64; K] = std::array::from_fn(|at| row[at] / scale[at]);
            for (at, x) in row.iter().enumerate() {
                right[at] += x * seen;
                for (entry, y) in normal[at].iter_mut().zip(&row) {
                    *entry += x * y;
                }
            }
        }
        let (values, vectors) = eigen(normal);
        let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(*value));
        let (mut inverse, mut null) = ([[0.0; K]; K], vec![]);
        for (at, value) in values.iter().enumerate() {
            let vector: [f64; K] = std::array::from_fn(|row| vectors[row][at]);
            if *value <= ZERO * largest {
                null.push(vector);
                continue;
            }
            for (row, x) in inverse.iter_mut().zip(&vector) {
                for (entry, y) in row.iter_mut().zip(&vector) {
                    *entry += x * y / value;
                }
            }
        }
        let scaled: [f64; K] = std::array::from_fn(|at| dot(&inverse[at], &right));
        let unscaled: [f64; K] = std::array::from_fn(|at| scaled[at] / scale[at]);
        let squares: f64 = rows.iter().map(|(row, seen)| (seen - dot(row, &unscaled)).powi(2)).sum();
        let degrees = u32::try_from(rows.len() - (K - null.len()).min(rows.len())).unwrap_or(u32::MAX);
        let deviation = (degrees > 0).then(|| (squares / f64::from(degrees)).sqrt());
        Solution { scaled, inverse, null, scale, deviation, degrees }
    }
}

impl<const K: usize> Solution<K> {
    /// A combination of unknowns: its value and its standard deviation, as a multiple of
    /// [`Solution::deviation`]. `None` when the data do not determine it.
    pub(super) fn combination(&self, of: &[f64; K]) -> Option<(f64, f64)> {
        let of: [f64; K] = std::array::from_fn(|at| of[at] / self.scale[at]);
        let length = dot(&of, &of).sqrt();
        // Rounding leaves a rest of about the square root of what counts as zero.
        if self.null.iter().any(|null| dot(null, &of).abs() > 1e-5 * length) {
            return None;
        }
        let spread: [f64; K] = std::array::from_fn(|at| dot(&self.inverse[at], &of));
        Some((dot(&of, &self.scaled), dot(&of, &spread).max(0.0).sqrt()))
    }
}

fn dot<const K: usize>(a: &[f64; K], b: &[f64; K]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Eigenvalues and eigenvectors (as columns) of a symmetric matrix, by Jacobi's rotations (G. H.
/// Golub, C. F. Van Loan, Matrix Computations, section 8.5).
fn eigen<const K: usize>(mut a: Rows<K>) -> ([f64; K], Rows<K>) {
    let mut vectors: Rows<K> = std::array::from_fn(|row| std::array::from_fn(|at| f64::from(u8::from(row == at))));
    for _ in 0..SWEEPS {
        for p in 0..K {
            for q in p + 1..K {
                if a[p][q].abs() > NEGLIGIBLE {
                    rotate(&mut a, &mut vectors, p, q);
                }
            }
        }
    }
    (std::array::from_fn(|at| a[at][at]), vectors)
}

/// Makes one entry off the diagonal zero.
fn rotate<const K: usize>(a: &mut Rows<K>, vectors: &mut Rows<K>, p: usize, q: usize) {
    let ratio = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
    let tangent = ratio.signum() / (ratio.abs() + ratio.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    let sine = tangent * cosine;
    for row in a.iter_mut().chain(vectors.iter_mut()) {
        (row[p], row[q]) = (cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]);
    }
    let (of_p, of_q) = (a[p], a[q]);
    a[p] = std::array::from_fn(|at| cosine * of_p[at] - sine * of_q[at]);
    a[q] = std::array::from_fn(|at| sine * of_p[at] + cosine * of_q[at]);
}

#[cfg(test)]
mod tests {
    use super::Data;

    fn data(rows: &[([f64; 2], f64)]) -> Data<2> {
        Data { rows: rows.iter().map(|(row, seen)| (*row, *seen, 1.0)).collect() }
    }

    #[test]
    fn a_straight_line_and_its_standard_errors() {
        // y = 1.1, 1.9, 3.1, 3.9 at x = 1..4: slope 0.96, intercept 0.1; residual variance 0.072 /
        // 2 / ... by hand.
        let fit = data(&[([1.0, 1.0], 1.1), ([1.0, 2.0], 1.9), ([1.0, 3.0], 3.1), ([1.0, 4.0], 3.9)]).solve();
        let (intercept, _) = fit.combination(&[1.0, 0.0]).unwrap();
        let (slope, spread) = fit.combination(&[0.0, 1.0]).unwrap();
        assert!((intercept - 0.1).abs() < 1e-12 && (slope - 0.96).abs() < 1e-12, "{intercept} {slope}");
        // Residuals 0.04, -0.12, 0.12, -0.04: sum of squares 0.032, two degrees of freedom; Sxx
        // = 5.
        assert!((fit.deviation.unwrap() - 0.016_f64.sqrt()).abs() < 1e-12);
        assert!((spread - 0.2_f64.sqrt()).abs() < 1e-12);
        assert_eq!(fit.degrees, 2);
    }

    #[test]
    fn only_what_the_data_determine_is_told() {
        // x + y alone.
        let fit = data(&[([1.0, 1.0], 3.0), ([2.0, 2.0], 6.0), ([3.0, 3.0], 9.0)]).solve();
        assert!(fit.combination(&[1.0, 0.0]).is_none() && fit.combination(&[0.0, 1.0]).is_none());
        assert!((fit.combination(&[1.0, 1.0]).unwrap().0 - 3.0).abs() < 1e-12);
        assert_eq!(fit.degrees, 2);
    }

    #[test]
    fn data_of_less_spread_weigh_more() {
        let rows = vec![([1.0, 0.0], 10.0, 1.0), ([1.0, 0.0], 20.0, 3.0), ([0.0, 1.0], 5.0, 1.0)];
        let fit = Data { rows }.solve();
        // Weights 1 and 1/9.
        assert!((fit.combination(&[1.0, 0.0]).unwrap().0 - (10.0 + 20.0 / 9.0) / (10.0 / 9.0)).abs() < 1e-12);
    }
}
