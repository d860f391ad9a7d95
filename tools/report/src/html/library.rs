//! How each library is called and drawn: always the same, whichever chart it is in.

/// The libraries that the report knows, with the names that they give themselves, in the order of
/// their colours.
const LIBRARIES: [(&str, &str); 8] = [
    ("cci", "CCI"),
    ("openmpi", "Open MPI"),
    ("mpich", "MPICH"),
    ("libfabric", "libfabric"),
    ("ucx", "UCX"),
    ("zeromq", "ZeroMQ"),
    ("nng", "nng"),
    ("sockets", "sockets"),
];

/// Dashes of the second, third, ... line of a library in one chart.
const DASHES: [&str; 4] = ["", "dash-1", "dash-2", "dash-3"];

/// The name of a library.
pub(super) fn name(library: &str) -> String {
    LIBRARIES.iter().find(|(known, _)| *known == library).map_or_else(|| library.into(), |(_, name)| (*name).into())
}

/// Where a library stands in lists: as in [`LIBRARIES`], the others after these.
pub(super) fn rank(library: &str) -> usize {
    LIBRARIES.iter().position(|(known, _)| *known == library).unwrap_or(LIBRARIES.len())
}

/// How a line is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// Its colour, as a class of the style.
    pub(super) class: String,
    /// Its dashes, as a class of the style; empty when solid.
    pub(super) dash: &'static str,
    pub(super) mark: Mark,
}

/// What tells a look from others without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// The number of a shape, which each point has.
    Shape(usize),
    /// A line without points.
    Line,
    /// A surface.
    Block,
}

impl Look {
    /// Of a library; `number` counts its lines in a chart from 0.
    pub(super) fn of(library: &str, number: usize) -> Self {
        let rank = rank(library);
        let class = if rank < LIBRARIES.len() { format!("of-{library}") } else { "of-other".into() };
        Self { class, dash: DASHES[number.min(DASHES.len() - 1)], mark: Mark::Shape(rank % 6) }
    }

    /// Of a bare probe.
    pub(super) fn of_probe() -> Self {
        Self { class: "of-bare".into(), dash: "dash-1", mark: Mark::Line }
    }

    /// Of the number-th of things that are no libraries.
    pub(super) fn of_number(number: usize) -> Self {
        Self::of(LIBRARIES[number % LIBRARIES.len()].0, 0)
    }

    /// The same with another mark.
    pub(super) fn with(self, mark: Mark) -> Self {
        Self { mark, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_called_by_its_name_and_an_unknown_one_by_its_own() {
        assert_eq!((name("openmpi"), name("novel")), ("Open MPI".into(), "novel".into()));
        assert!(rank("cci") < rank("sockets") && rank("sockets") < rank("novel"));
    }

    #[test]
    fn every_look_is_in_the_style_and_no_two_libraries_look_alike() {
        let style = include_str!("style.css");
        let looks: Vec<_> = LIBRARIES.iter().map(|(library, _)| Look::of(library, 0)).collect();
        for look in looks.iter().chain([&Look::of("novel", 9), &Look::of_probe()]) {
            assert!(style.contains(&format!(".{} ", look.class)), "{}", look.class);
            assert!(look.dash.is_empty() || style.contains(&format!(".{} ", look.dash)), "{}", look.dash);
        }
        for (at, look) in looks.iter().enumerate() {
            assert!(!looks[..at].contains(look), "{look:?}");
        }
    }
}
