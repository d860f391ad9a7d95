//! Ranks that end while others need them: all others end with a sentence.

use super::run;
use cci_splitc::{Error, Fault, World};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The rank that ends.
const BAD: u32 = 1;

/// Longer than others take to notice, and far less than a limit of the job.
const SOON: Duration = Duration::from_secs(20);

/// Comes to its end well, but earlier than the others.
pub(crate) fn quits(world: &World) -> Result<(), Fault> {
    world.barrier()?;
    if world.me() == BAD {
        return Ok(());
    }
    (0..3).try_for_each(|_| world.barrier())
}

/// Is killed while the others wait.
pub(crate) fn is_killed(world: &World) -> Result<(), Fault> {
    world.barrier()?;
    if world.me() == BAD {
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).expect("a signal");
    }
    world.store_sync(1)
}

/// Ends with a fault of its own.
pub(crate) fn fails(world: &World) -> Result<(), Fault> {
    world.barrier()?;
    if world.me() == BAD {
        return Err(Fault::NotAllocated { address: 64 });
    }
    world.store_sync(1)
}

/// Says why a rank ends, as programs do, by one write: ranks share the pipe. The launcher would end
/// the others at a status that is not 0, and they would say nothing.
pub(crate) fn report(why: &Error) -> ExitCode {
    let is_expected = matches!(why, Error::Fault(Fault::Gone { .. }));
    // Without an output there is nobody to tell.
    let _ = std::io::stderr().write_all(format!("{why}\n").as_bytes());
    if is_expected { ExitCode::SUCCESS } else { ExitCode::from(3) }
}

pub(crate) fn all(cci: &Path, transport: &str) {
    let sentence = Fault::Gone { rank: BAD }.to_string();
    for ranks in [2, 4] {
        let start = Instant::now();
        let output = run(cci, "quits", ranks, transport);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "quits over '{transport}': {}\n{words}", output.status);
        assert_eq!(words.lines().count(), ranks as usize - 1, "{words}");
        // Over a network a rank may see the end of another one before it learns why that ended.
        let names_it = |line: &str| line == sentence || !transport.is_empty() && line.contains(" has ended or ");
        assert!(words.lines().all(names_it), "{words}");
        for (name, wanted) in [("is_killed", "rank 1 was killed by signal 9"), ("fails", "no spread memory")] {
            let output = run(cci, name, ranks, transport);
            let words = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && words.contains(wanted), "{name} over '{transport}': {words}");
        }
        assert!(start.elapsed() < SOON, "three jobs of {ranks} over '{transport}' took {:?}", start.elapsed());
    }
}
