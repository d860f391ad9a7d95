//! Forks of a process that uses `sm`.

use crate::program;
use cci_conformance::{Peer, alone};

/// The role `fork` asserts everything in parent and child.
#[test]
fn fork_child_is_refused_and_starts_afresh_while_the_parent_goes_on() {
    let _alone = alone();
    let mut peer = Peer::spawn(program(), "fork", &[]);
    assert_eq!(peer.line(), "undisturbed");
    assert!(peer.wait().success());
}

#[test]
fn fork_children_that_exit_or_execute_do_not_disturb_the_parent() {
    let _alone = alone();
    let mut peer = Peer::spawn(program(), "fork-silently", &[]);
    let mut line = peer.line();
    while line == "another program" {
        line = peer.line();
    }
    assert_eq!(line, "undisturbed");
    assert!(peer.wait().success());
}
