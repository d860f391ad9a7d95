//! What the thesis of 2002 on rings and tori of SCI measured in 1999 and 2000: nine PCs with
//! Pentium II at 400 MHz, links of 3.2 Gb/s.

/// One byte one way by stores, and by MPI.
pub const API_NS: f64 = 1900.0;
/// As [`API_NS`], by MPI.
pub const MPI_NS: f64 = 6400.0;
/// Overhead at each end for a message of 64 bytes, and for each byte more.
pub const OVERHEAD_NS: f64 = 2085.0;
/// As [`OVERHEAD_NS`], for a byte.
pub const PER_BYTE_NS: f64 = 11.6;
/// The propagation over a link, of one metre.
pub const PROPAGATION_NS: f64 = 7.0;
/// Forwarding through a node.
pub const FORWARDING_NS: f64 = 60.0;
/// Switching from one ring to another.
pub const SWITCHING_NS: f64 = 670.0;

/// The overhead of so many bytes.
#[must_use]
pub fn overhead(bytes: f64) -> f64 {
    OVERHEAD_NS + PER_BYTE_NS * (bytes - 64.0)
}

/// Half a ping-pong over so many hops of a ring, as the thesis's model has it.
#[must_use]
pub fn ring(bytes: f64, hops: f64) -> f64 {
    2.0 * overhead(bytes) + (hops - 1.0) * FORWARDING_NS + hops * PROPAGATION_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_gives_the_figures_of_the_thesis() {
        // 7,268 ns: the overhead of 512 bytes, as its Figure 12 has it beside the line.
        assert!((overhead(512.0) - 7268.0).abs() < 20.0, "{}", overhead(512.0));
        assert!((ring(64.0, 3.0) - (4170.0 + 120.0 + 21.0)).abs() < 1e-9);
    }
}
