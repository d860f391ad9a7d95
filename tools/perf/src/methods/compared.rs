//! A way beside what it is compared with: what the launches of a run make of a row.

use cci_report::finding::{ViaPoint, ViaTold};
use cci_report::statistics::{median, uncertainty};

/// The row with its figures. `ours` and `reference` are nanoseconds of each launch, which is
/// compared within itself.
pub(super) fn compared(row: ViaPoint, ours: &[f64], reference: &[f64], cycle_ns: f64) -> ViaPoint {
    let figure = |(ours, reference): (&f64, &f64)| match row.told {
        ViaTold::Cycles => (ours - reference) / cycle_ns.max(f64::MIN_POSITIVE),
        ViaTold::Speed => reference / ours.max(f64::MIN_POSITIVE),
        ViaTold::Time => ours / reference.max(f64::MIN_POSITIVE),
        ViaTold::Nanoseconds => *ours,
        ViaTold::More => ours - reference,
    };
    let figures: Vec<f64> = ours.iter().zip(reference).map(figure).collect();
    ViaPoint {
        ns: median(ours),
        spread_ns: uncertainty(ours),
        reference_ns: median(reference),
        reference_spread_ns: uncertainty(reference),
        figure: median(&figures),
        figure_spread: uncertainty(&figures),
        ..row
    }
}
