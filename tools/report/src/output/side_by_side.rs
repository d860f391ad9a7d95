//! What a table says more of when CCI is not alone in it.

use super::columns::align;
use crate::row::Row;

/// How many times as long as CCI a row takes for an operation of that size.
pub(crate) fn to_cci(row: &Row, rows: &[Row]) -> Option<f64> {
    let own = rows.iter().find(|own| own.setting.is_none() && own.size == row.size && own.median_ns > 0.0)?;
    Some(row.median_ns / own.median_ns)
}

/// Library, and which of its settings, or of CCI's transports.
pub(crate) fn name(row: &Row) -> String {
    let which = setting(row).map_or(row.transport.as_str(), |(which, _)| which);
    format!("{} {which}", row.library)
}

/// The short name of a peer's setting, and its description.
fn setting(row: &Row) -> Option<(&str, &str)> {
    row.setting.as_ref()?.split_once(": ")
}

/// What each peer ran in, once; nothing where there is none.
pub(crate) fn settings(rows: &[Row]) -> String {
    let mut lines: Vec<Vec<String>> = Vec::new();
    for (row, (_, setting)) in rows.iter().filter_map(|row| Some((row, setting(row)?))) {
        let line = vec![name(row), setting.to_owned()];
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    align(&lines, &[0, 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Measurement;
    use crate::output::table::table;
    use crate::row::tests::row;

    fn of(library: &str, setting: &str, row: Row, median_ns: f64) -> Row {
        Row { library: library.into(), setting: Some(setting.into()), median_ns, ..row }
    }

    #[test]
    fn libraries_stand_side_by_side() {
        let side = |size| {
            let own = row(Measurement::PingPong, size);
            let peers = [
                of("openmpi", "shm: pml ob1; version 4.1.4", own.clone(), 250.0),
                of("sockets", "udp: polling; version 6.1", own.clone(), 5000.0),
            ];
            std::iter::once(own).chain(peers)
        };
        insta::assert_snapshot!(table(&side(8).chain(side(4096)).collect::<Vec<_>>()));
    }

    #[test]
    fn a_table_of_bandwidth_has_rates() {
        let own = row(Measurement::Bandwidth, 4096);
        let rows = [own.clone(), of("ucx", "tcp: UCX_TLS=tcp; version 1", own, 100.0)];
        insta::assert_snapshot!(table(&rows));
    }

    #[test]
    fn without_cci_at_that_size_there_is_nothing_to_compare_with() {
        let own = row(Measurement::PingPong, 8);
        let peer = of("ucx", "tcp: x; version 1", row(Measurement::PingPong, 64), 100.0);
        assert_eq!(to_cci(&peer, &[own.clone(), peer.clone()]), None);
        assert_eq!(to_cci(&own, std::slice::from_ref(&own)), Some(1.0));
        assert_eq!(settings(&[own]), "");
    }
}
