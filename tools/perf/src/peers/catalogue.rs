//! Which peers there are, how each is started, and what `--peers` accepts.

use cci_report::UserError;
use cci_report::names::{AttributeName, Mode};
use std::fmt;
use std::path::Path;

/// A library that CCI is measured beside.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its name in rows, and its program's.
    pub(crate) library: &'static str,
    /// The ways in which it is measured.
    pub(crate) settings: &'static [Setting],
    /// What starts two processes of the program; nothing where it makes the second by itself.
    /// [`OWN_PATH`] stands for a path.
    pub(crate) launcher: &'static [&'static str],
    /// Debian packages to build its program with.
    pub(crate) packages: &'static str,
    /// How its ends wait.
    pub(crate) mode: Mode,
}

/// In the words of a launcher: a path that no other run uses, at which there is nothing.
pub(crate) const OWN_PATH: &str = "{path}";

/// One way in which a peer moves messages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Its name, short.
    pub(crate) name: &'static str,
    /// Whether it goes through the loop-back interface.
    is_network: bool,
    /// What it promises.
    pub(crate) attribute: AttributeName,
}

const fn memory(name: &'static str) -> Setting {
    Setting { name, is_network: false, attribute: AttributeName::Ro }
}

const fn network(name: &'static str) -> Setting {
    Setting { name, is_network: true, attribute: AttributeName::Ro }
}

/// Every peer, in the order of a round.
pub(crate) const PEERS: &[Peer] = &[
    Peer {
        library: "openmpi",
        settings: &[memory("shm"), network("tcp")],
        // Both ends are on this host: no remote shell is needed, not even one that is there. The
        // program pins itself.
        launcher: &[
            "mpirun.openmpi",
            "--mca",
            "plm",
            "isolated",
            // Where two start at the same time, they fail over the directory that they would share.
            "--mca",
            "orte_top_session_dir",
            OWN_PATH,
            "--allow-run-as-root",
            "--host",
            "localhost:2",
            "--bind-to",
            "none",
            "-n",
            "2",
        ],
        packages: "libopenmpi-dev openmpi-bin",
        mode: Mode::Polling,
    },
    Peer {
        library: "mpich",
        settings: &[memory("shm"), network("tcp")],
        launcher: &["mpirun.mpich", "-launcher", "fork", "-n", "2"],
        packages: "libmpich-dev mpich",
        mode: Mode::Polling,
    },
    Peer {
        library: "libfabric",
        settings: &[memory("shm"), memory("tagged"), network("tcp"), network("udp")],
        launcher: &[],
        packages: "libfabric-dev",
        mode: Mode::Polling,
    },
    Peer {
        library: "ucx",
        settings: &[memory("posix"), memory("am"), network("tcp")],
        launcher: &[],
        packages: "libucx-dev",
        mode: Mode::Polling,
    },
    Peer {
        library: "zeromq",
        settings: &[memory("ipc"), network("tcp")],
        launcher: &[],
        packages: "libzmq3-dev",
        mode: Mode::Polling,
    },
    Peer {
        library: "nng",
        settings: &[memory("ipc"), network("tcp")],
        launcher: &[],
        packages: "libnng-dev",
        mode: Mode::Blocking,
    },
    Peer {
        library: "sockets",
        settings: &[
            memory("unix"),
            network("tcp"),
            Setting { name: "udp", is_network: true, attribute: AttributeName::Uu },
        ],
        launcher: &[],
        packages: "libc6-dev",
        mode: Mode::Polling,
    },
];

impl Peer {
    /// Why its program cannot be started from this directory, if it cannot.
    fn missing(&self, directory: &Path) -> Option<UserError> {
        let program = directory.join(self.library);
        (!program.is_file()).then(|| {
            UserError(format!(
                "{} is not built ({} is missing): install {} (or all by `make peers-deps`) and run `make peers`",
                self.library,
                program.display(),
                self.packages
            ))
        })
    }
}

/// One peer in one setting: what a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) peer: &'static Peer,
    pub(crate) setting: &'static Setting,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.peer.library, self.setting.name)
    }
}

impl Choice {
    /// Every choice there is.
    fn every() -> impl Iterator<Item = Self> {
        PEERS.iter().flat_map(|peer| peer.settings.iter().map(move |setting| Self { peer, setting }))
    }

    /// The choice of this name, as it displays itself.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::every().find(|choice| choice.to_string() == name)
    }

    /// Whether one word of `--peers` means it.
    fn is_meant(self, who: &str, which: Option<&str>) -> bool {
        let is_peer = matches!(who, "all" | "installed") || who == self.peer.library;
        is_peer
            && match which {
                None => true,
                Some("memory") => !self.setting.is_network,
                Some("network") => self.setting.is_network,
                Some(name) => name == self.setting.name,
            }
    }
}

/// The list of `--peers`: choices in the order of a round, and whether the absence of each is an
/// error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerList(Vec<(Choice, bool)>);

/// Parses `WHO[:WHICH],...`.
pub fn parse_list(text: &str) -> Result<PeerList, String> {
    let mut missing: Vec<Option<bool>> = vec![None; Choice::every().count()];
    for word in text.split(',').map(str::trim) {
        let (who, which) = word.split_once(':').map_or((word, None), |(who, which)| (who, Some(which)));
        let mut is_known = false;
        for (choice, missing) in Choice::every().zip(&mut missing) {
            if choice.is_meant(who, which) {
                is_known = true;
                *missing = Some(who != "installed" || missing.unwrap_or(false));
            }
        }
        if !is_known {
            return Err(format!("{word:?} is no peer; there are all, installed, {}", known()));
        }
    }
    let chosen = Choice::every().zip(missing).filter_map(|(choice, missing)| Some((choice, missing?)));
    Ok(PeerList(chosen.collect()))
}

/// All names, for people.
fn known() -> String {
    let peer = |peer: &Peer| {
        let settings: Vec<_> = peer.settings.iter().map(|setting| setting.name).collect();
        format!("{} (:{})", peer.library, settings.join(", :"))
    };
    let peers: Vec<_> = PEERS.iter().map(peer).collect();
    format!("{}; :memory and :network choose settings of each kind", peers.join(", "))
}

/// The programs of a list that exist, and those that do not.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Programs {
    pub(crate) choices: Vec<Choice>,
    /// Not there, though asked for by name or by `all`.
    pub(crate) missing: Vec<UserError>,
    /// Not there, and only `installed` ones were asked for.
    pub(crate) left_out: Vec<UserError>,
}

impl PeerList {
    /// Finds the programs of the list in a directory.
    pub(crate) fn find(&self, directory: &Path) -> Programs {
        let mut programs = Programs::default();
        for (choice, is_required) in &self.0 {
            let absent = if *is_required { &mut programs.missing } else { &mut programs.left_out };
            match choice.peer.missing(directory) {
                None => programs.choices.push(*choice),
                // Once for all settings of a peer.
                Some(why) if absent.last() != Some(&why) => absent.push(why),
                Some(_) => {}
            }
        }
        programs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        parse_list(text).unwrap().0.iter().map(|(choice, _)| choice.to_string()).collect()
    }

    #[test]
    fn a_list_names_peers_and_settings() {
        assert_eq!(names("ucx,sockets:udp"), ["ucx:posix", "ucx:am", "ucx:tcp", "sockets:udp"]);
        assert_eq!(names("all").len(), Choice::every().count());
        assert_eq!(names("all"), names("installed"));
        assert_eq!(names("nng:network, zeromq:memory"), ["zeromq:ipc", "nng:tcp"]);
        let (memory, network) = (names("all:memory"), names("all:network"));
        assert_eq!(memory.len() + network.len(), names("all").len());
        assert!(memory.contains(&"openmpi:shm".into()) && network.contains(&"libfabric:udp".into()));
    }

    #[test]
    fn a_choice_named_twice_is_there_once_and_missed_when_either_misses_it() {
        assert_eq!(names("ucx,ucx:tcp"), ["ucx:posix", "ucx:am", "ucx:tcp"]);
        for text in ["installed,ucx", "ucx,installed"] {
            let missing: Vec<_> = parse_list(text).unwrap().0.iter().map(|(_, missing)| *missing).collect();
            assert_eq!(missing.iter().filter(|missing| **missing).count(), 3, "{text}");
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_those_that_there_are() {
        for text in ["openmp", "ucx:shm", "", "ucx,,nng", "ucx:"] {
            let error = parse_list(text).unwrap_err();
            assert!(error.contains("libfabric (:shm, :tagged, :tcp, :udp)") && error.contains("installed"), "{error}");
        }
    }

    #[test]
    fn every_choice_is_found_by_its_name() {
        for choice in Choice::every() {
            assert_eq!(Choice::named(&choice.to_string()), Some(choice));
        }
        assert_eq!(Choice::named("ucx"), None);
    }

    #[test]
    fn what_is_not_built_is_named_once_with_its_packages() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("nng"), "").unwrap();
        let programs = parse_list("nng,mpich").unwrap().find(directory.path());
        assert_eq!(programs.choices.len(), 2);
        let [why] = &programs.missing[..] else { panic!("{programs:?}") };
        assert!(why.0.contains("mpich") && why.0.contains("libmpich-dev") && why.0.contains("make peers"), "{why}");
        let programs = parse_list("installed").unwrap().find(directory.path());
        assert_eq!((programs.choices.len(), programs.missing.len(), programs.left_out.len()), (2, 0, PEERS.len() - 1));
    }
}
