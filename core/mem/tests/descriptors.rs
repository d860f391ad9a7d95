//! Descriptors in a process without standard input, output and error. Each test does its work in a
//! child of its own, which closes them.
#![cfg(all(not(loom), not(miri)))]

use cci_mem::descriptors;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::{Errno, FdFlags, IoSlice, fcntl_getfd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use rustix::net::{SocketType, sendmsg};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::mem::MaybeUninit;
use std::process::{Command, Stdio};

/// Has a test of this name do its work in a child. True: this is the child.
fn is_child(name: &str) -> bool {
    if std::env::var_os("WITHOUT_STANDARD").is_some() {
        return true;
    }
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", name, "--test-threads=1"]).env("WITHOUT_STANDARD", "1");
    let status = child.stdout(Stdio::null()).status().expect("it starts");
    assert!(status.success(), "{status}");
    false
}

fn close_standard() {
    for number in 0..3 {
        // SAFETY: nothing in this process needs them.
        unsafe { libc::close(number) };
    }
}

/// Whether nothing has this number.
fn is_free(number: i32) -> bool {
    // SAFETY: it asks for flags alone.
    unsafe { libc::fcntl(number, libc::F_GETFD) == -1 }
}

fn is_right(made: impl AsFd) -> bool {
    made.as_fd().as_raw_fd() >= 3 && fcntl_getfd(made) == Ok(FdFlags::CLOEXEC)
}

#[test]
fn no_descriptor_is_a_standard_one_or_inherited() {
    if !is_child("no_descriptor_is_a_standard_one_or_inherited") {
        return;
    }
    close_standard();
    let listener = descriptors::listener("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut rights = vec![is_right(&listener)];
    rights.push(is_right(descriptors::stream(address).expect("a stream")));
    rights.push(is_right(descriptors::accept_stream(&listener).expect("a stream")));
    let one = descriptors::stream_within(&address, std::time::Duration::from_secs(60)).expect("a stream");
    rights.push(is_right(&one));
    rights.push(is_right(descriptors::accept(&listener).expect("a stream")));
    rights.push(is_right(descriptors::begin_stream(&address).expect("a stream")));
    rights.push(is_right(descriptors::udp("127.0.0.1:0").expect("a port")));
    let (one, other) = descriptors::stream_pair().expect("a pair");
    rights.extend([is_right(&one), is_right(&other), is_right(descriptors::duplicate(&one).expect("a copy"))]);
    let me = rustix::process::getpid();
    for made in [
        descriptors::socket(AddressFamily::UNIX, SocketType::SEQPACKET),
        descriptors::eventfd(0),
        descriptors::epoll(),
        descriptors::timer(),
        descriptors::memory_file("cci-test"),
        descriptors::process(me),
    ] {
        rights.push(is_right(made.expect("a descriptor")));
    }
    assert!(rights.iter().all(|right| *right), "{rights:?}");
    assert!((0..3).all(is_free));
}

#[test]
fn what_a_peer_sends_is_no_standard_one_and_keeps_its_order() {
    if !is_child("what_a_peer_sends_is_no_standard_one_and_keeps_its_order") {
        return;
    }
    close_standard();
    let (one, other) = descriptors::stream_pair().expect("a pair");
    let sent = [descriptors::memory_file("first"), descriptors::memory_file("second")].map(Result::unwrap);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let both = [sent[0].as_fd(), sent[1].as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&both)));
    sendmsg(&one, &[IoSlice::new(b"x")], &mut control, SendFlags::NOSIGNAL).expect("room");
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = descriptors::receive(&other, &mut [0; 8], &mut control, RecvFlags::empty()).expect("a message");
    assert_eq!(got.bytes, 1);
    let found: Vec<OwnedFd> = descriptors::received(&mut control).collect();
    assert!(found.len() == 2 && found.iter().all(is_right));
    let number = |of: &OwnedFd| rustix::fs::fstat(of).expect("a file").st_ino;
    assert_eq!([number(&found[0]), number(&found[1])], [number(&sent[0]), number(&sent[1])]);
    assert!((0..3).all(is_free));
}

#[test]
fn where_no_number_is_left_the_call_fails_and_nothing_stays() {
    if !is_child("where_no_number_is_left_the_call_fails_and_nothing_stays") {
        return;
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: getrlimit(Resource::Nofile).maximum })
        .expect("a lower limit");
    let mut all = Vec::new();
    while let Ok(made) = descriptors::eventfd(0) {
        all.push(made);
    }
    close_standard();
    assert_eq!(descriptors::eventfd(0).err(), Some(Errno::MFILE));
    assert_eq!(descriptors::memory_file("cci-test").err(), Some(Errno::MFILE));
    assert!((0..3).all(is_free));
    all.pop();
    assert!(descriptors::eventfd(0).is_ok_and(is_right));
}
