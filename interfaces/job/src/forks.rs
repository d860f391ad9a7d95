//! Forked children of ranks: each call of theirs is refused, and the parent's job goes on.

use crate::sys::{child, ended};
use crate::tests::{LIMIT, free_port, join, secret_file, serve_pmi_2, variables};
use crate::{Job, JobError};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// A child uses its parent's job, and drops it.
fn is_refused_in_a_child(job: &mut Option<Job>) {
    let child = child(|| {
        let job = job.take().expect("a job");
        assert_eq!(job.publish("key", b"of a child"), Err(JobError::Forked));
        assert_eq!(job.look_up(0, "key"), Err(JobError::Forked));
        assert_eq!(job.exchange(b"of a child"), Err(JobError::Forked));
        job.leave();
        assert!(!job.end(3) && job.ended().is_none());
    });
    assert!(ended(child).success());
}

/// The parent's thread that waits inside of a call holds the lock of the job.
#[cfg(feature = "cci")]
#[test]
fn a_child_is_refused_its_parents_job_also_while_a_call_waits() {
    use std::sync::{Mutex, mpsc::channel};
    let (begin, begun) = channel();
    let begun = Mutex::new(begun);
    crate::tests::ranks(2, |job| {
        if job.rank() == 1 {
            begun.lock().expect("no panic").recv_timeout(LIMIT).expect("rank 0 has forked");
            return job.publish("key", b"value").expect("it is new");
        }
        let mut shared = Some(job);
        is_refused_in_a_child(&mut shared);
        let job = shared.expect("the child's was a copy");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| job.look_up(1, "key"));
            while !job.is_in_a_call() {
                std::thread::yield_now();
            }
            let child = child(|| assert_eq!(job.exchange(&[]), Err(JobError::Forked)));
            assert!(ended(child).success());
            begin.send(()).expect("rank 1 is there");
            assert_eq!(waiter.join().expect("no panic"), Ok(b"value".to_vec()));
        });
    });
}

/// The child has no thread that serves the store, for which a drop would wait.
#[test]
fn a_child_of_the_rank_that_serves_the_store_does_not_wait_for_its_end() {
    let store = format!("127.0.0.1:{}", free_port());
    let mut job = Some(Job::joined(join(&variables(0, 1, &store), LIMIT).expect("a job"), LIMIT));
    is_refused_in_a_child(&mut job);
    let job = job.expect("the child's was a copy");
    assert_eq!(job.exchange(b"here"), Ok(vec![b"here".to_vec()]));
}

/// A child that lives on keeps neither the port of the store nor a connection.
#[test]
fn a_child_keeps_no_socket_of_a_store() {
    let store = format!("127.0.0.1:{}", free_port());
    let address: SocketAddr = store.parse().expect("an address");
    let folder = tempfile::tempdir().expect("a folder");
    let mut variables = variables(0, 1, &store);
    variables.insert("CCI_SECRET_FILE", secret_file(folder.path(), 3));
    let job = Job::joined(join(&variables, LIMIT).expect("a job"), LIMIT);
    let mut stranger = TcpStream::connect(address).expect("rank 0 listens");
    stranger.read_exact(&mut [0; 4]).expect("a challenge");
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    let child = child(|| {
        let _ = (&theirs).read(&mut [0]);
    });
    drop(job);
    // A child of another test may just begin.
    let begin = Instant::now();
    while TcpStream::connect(address).is_ok() {
        assert!(begin.elapsed() < LIMIT, "somebody listens");
        std::thread::yield_now();
    }
    stranger.set_read_timeout(Some(LIMIT)).expect("a limit");
    stranger.read_to_end(&mut Vec::new()).expect("it is closed");
    ours.write_all(b"!").expect("the child reads");
    assert!(ended(child).success());
}

/// The end of a child is not that of the rank.
#[test]
fn a_child_of_a_rank_of_pmi_asks_its_manager_nothing() {
    let (manager, rank) = UnixStream::pair().expect("a pair");
    let served = std::thread::spawn(move || serve_pmi_2(manager));
    let number = rank.as_raw_fd().to_string();
    let variables = [("PMI_FD", number), ("PMI_RANK", "0".into()), ("PMI_SIZE", "1".into())].into();
    let mut job = Some(Job::joined(join(&variables, LIMIT).expect("a job"), LIMIT));
    is_refused_in_a_child(&mut job);
    // Neither does a join of the child, which would speak in the midst of the rank.
    let again = child(|| {
        let error = join(&variables, LIMIT).err().expect("it is no rank").to_string();
        assert!(error.contains("which is not open"), "{error}");
    });
    assert!(ended(again).success());
    let job = job.expect("the child's was a copy");
    assert_eq!(job.exchange(b"here"), Ok(vec![b"here".to_vec()]));
    drop(job);
    let asked = served.join().expect("no panic");
    assert_eq!(asked.last().map(String::as_str), Some("cmd=finalize;"));
}
