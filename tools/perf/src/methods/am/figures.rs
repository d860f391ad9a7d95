//! From the blocks of all launches to the lines of the table.

use super::blocks::Samples;
use super::shot::{Load, SHOTS, Shot};
use cci_report::finding::AmPoint;
use cci_report::statistics::{median, uncertainty};

/// What all launches have measured.
#[derive(Debug, Default)]
pub(super) struct Launches(Vec<Samples>);

impl Launches {
    pub(super) fn add(&mut self, samples: Samples) {
        self.0.push(samples);
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// A line for each shot.
    pub(super) fn points(&self) -> Vec<AmPoint> {
        SHOTS.iter().enumerate().map(|(at, shot)| self.point(at, shot)).collect()
    }

    /// CCI's own is its cheapest way. Launches are compared within themselves.
    fn point(&self, at: usize, shot: &Shot) -> AmPoint {
        let of = |way: usize| -> Vec<f64> { self.0.iter().map(|launch| median(&launch[at][way])).collect() };
        let ways = shot.ways();
        let others = (1..ways.len()).map(|way| (way, of(way)));
        // What stands behind these, a launch has measured of a peer.
        let of_peer: Vec<f64> =
            self.0.iter().filter_map(|launch| launch[at].get(ways.len())).map(|blocks| median(blocks)).collect();
        let peer_ratios: Vec<f64> =
            of(0).iter().zip(&of_peer).map(|(active, peer)| active / peer.max(f64::MIN_POSITIVE)).collect();
        let cheapest = others.min_by(|(_, left), (_, right)| median(left).total_cmp(&median(right)));
        let (own_way, own) = cheapest.unwrap_or_default();
        let active = of(0);
        let pairs = || active.iter().zip(&own);
        let differences: Vec<f64> = pairs().map(|(active, own)| (active - own) / f64::from(shot.messages())).collect();
        let ratios: Vec<f64> = pairs().map(|(active, own)| own / active.max(f64::MIN_POSITIVE)).collect();
        AmPoint {
            name: shot.name.into(),
            bytes: if let Load::Bulk(bytes) = shot.load { bytes } else { shot.message() as u64 },
            window: shot.window,
            am_ns: median(&active),
            am_spread_ns: uncertainty(&active),
            own: ways[own_way].name().into(),
            own_ns: median(&own),
            own_spread_ns: uncertainty(&own),
            difference_ns: median(&differences),
            difference_spread_ns: uncertainty(&differences),
            ratio: median(&ratios),
            ratio_spread: uncertainty(&ratios),
            peer_ns: (!of_peer.is_empty()).then(|| median(&of_peer)),
            to_peer: (!of_peer.is_empty()).then(|| median(&peer_ratios)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A launch whose Active Messages take so long, and CCI's own ways 100 and 90.
    fn launch(active: f64) -> Samples {
        let ways = |shot: &Shot| shot.ways().iter().zip([active, 100.0, 90.0]).map(|(_, ns)| vec![ns; 3]).collect();
        SHOTS.iter().map(ways).collect()
    }

    #[test]
    fn a_line_compares_with_the_cheapest_own_way_and_shares_a_difference_out_to_its_messages() {
        let mut launches = Launches::default();
        [130.0, 150.0, 140.0].into_iter().for_each(|ns| launches.add(launch(ns)));
        let points = launches.points();
        let close = |left: f64, right: f64| assert!((left - right).abs() < 1e-9, "{left} is not {right}");
        let short = &points[1];
        assert_eq!((short.own.as_str(), short.bytes), ("reserve", 24));
        close(short.am_ns, 140.0);
        close(short.difference_ns, 25.0);
        close(short.difference_spread_ns, 5.0);
        close(short.ratio, 90.0 / 140.0);
        let bulk = points.iter().find(|point| point.name == "bulk, 1 MiB").expect("a line");
        assert_eq!((bulk.own.as_str(), bulk.bytes), ("write", 1 << 20));
        close(bulk.difference_ns, 40.0);
    }
}
