//! Structures grow as they did from release to release of libfabric.

#![forbid(unsafe_code)]

use cci_fabric_sys::{NEWEST, STRUCTURES, Structure, fi_version};

/// A version, and the size from there on, bytes.
type Size = ((u16, u16), usize);

/// Structures that grew.
const GROWN: &[(&str, &[Size])] = &[
    ("fi_info", &[((1, 5), 112), ((1, 7), 120)]),
    ("fi_tx_attr", &[((1, 5), 72), ((1, 9), 80)]),
    ("fi_ep_attr", &[((1, 5), 96), ((2, 7), 104)]),
    ("fi_domain_attr", &[((1, 5), 184), ((1, 9), 192), ((1, 20), 200), ((2, 0), 208), ((2, 5), 224), ((2, 7), 232)]),
    ("fi_mr_attr", &[((1, 5), 64), ((1, 9), 80), ((1, 19), 88), ((1, 22), 96), ((2, 0), 112)]),
    ("fi_cq_attr", &[((1, 5), 40), ((2, 7), 48)]),
    ("fi_cntr_attr", &[((1, 5), 24), ((2, 7), 32)]),
    ("fi_cq_err_entry", &[((1, 5), 80), ((1, 20), 88)]),
    ("fid_ep", &[((1, 5), 72), ((1, 9), 80)]),
    ("fi_ops", &[((1, 5), 40), ((1, 7), 48), ((1, 11), 56)]),
    ("fi_ops_fabric", &[((1, 5), 48), ((1, 17), 56)]),
    ("fi_ops_domain", &[((1, 5), 80), ((1, 9), 88), ((1, 17), 96), ((2, 7), 104)]),
    ("fi_ops_ep", &[((1, 5), 64), ((2, 7), 72)]),
    ("fi_ops_cq", &[((1, 5), 64), ((2, 7), 72)]),
    ("fi_ops_cntr", &[((1, 5), 64), ((2, 7), 72)]),
    ("fi_ops_av", &[((1, 5), 56), ((1, 9), 64), ((1, 20), 88), ((2, 7), 96)]),
    ("fi_ops_collective", &[((1, 9), 88), ((1, 17), 96)]),
];

fn all() -> impl Iterator<Item = &'static Structure> {
    STRUCTURES.iter().copied().flatten()
}

#[test]
fn structures_grow_with_these_versions_and_no_others() {
    for structure in all() {
        let sizes = GROWN.iter().find(|(name, _)| *name == structure.name).map_or(&[][..], |(_, sizes)| sizes);
        let releases = (5..=22).map(|minor| (1, minor)).chain((0..=7).map(|minor| (2, minor)));
        for (major, minor) in releases {
            let version = fi_version(major, minor);
            if version < structure.since {
                continue;
            }
            let last = sizes.iter().rfind(|((of, since), _)| fi_version(*of, *since) <= version);
            let expected = last.map_or(structure.size, |(_, size)| *size);
            assert_eq!(structure.size_at(version), expected, "{} at {major}.{minor}", structure.name);
        }
        assert_eq!(structure.size_at(NEWEST), structure.size);
        assert_eq!(structure.size_at(0), structure.size_at(fi_version(1, 5)));
        assert_eq!(structure.size_at(u32::MAX), structure.size);
    }
    let names: Vec<_> = all().map(|structure| structure.name).collect();
    GROWN.iter().for_each(|(name, _)| assert!(names.contains(name), "{name}"));
}
