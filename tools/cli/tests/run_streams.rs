//! `cci run`: what goes into ranks and comes out of them, on this host and elsewhere.

mod command_line;

use command_line::{cci, exact as text};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// What the launchers may have in memory besides what they need anyway.
const MORE_MEMORY: u64 = 8 << 20;

/// A folder with a command that stands for `ssh`: it forgets the host and runs the rest here.
struct Elsewhere(tempfile::TempDir);

impl Elsewhere {
    fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rsh");
        std::fs::write(&path, "#!/bin/sh\nshift; exec \"$@\"\n").expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
        Self(folder)
    }

    /// A pipe with a name.
    fn fifo(&self) -> String {
        let fifo = self.0.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
        fifo.into_os_string().into_string().expect("text")
    }

    /// `cci run` with its first ranks there.
    fn run(&self, arguments: &[&str]) -> Command {
        let rsh = self.0.path().join("rsh");
        let mut command = run(&["-H", "there:2", "--rsh", rsh.to_str().expect("text")]);
        command.args(arguments);
        command
    }
}

fn run(arguments: &[&str]) -> Command {
    let mut command = cci(&["run"]);
    command.args(arguments);
    command
}

/// A job that does not outlive a test that fails.
struct Job(Option<Child>);

impl Deref for Job {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.0.as_ref().expect("it runs")
    }
}

impl DerefMut for Job {
    fn deref_mut(&mut self) -> &mut Child {
        self.0.as_mut().expect("it runs")
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(mut job) = self.0.take() {
            let _ = job.kill();
            let _ = job.wait();
        }
    }
}

fn spawn(command: &mut Command) -> Job {
    Job(Some(command.spawn().expect("the command")))
}

/// Waits for the end of a job, and kills one that does not end.
fn ended(mut job: Job) -> Output {
    let begin = Instant::now();
    while job.try_wait().expect("the job").is_none() {
        assert!(begin.elapsed() < LONG, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    job.0.take().expect("it runs").wait_with_output().expect("its end")
}

/// Resident bytes of a process.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// The job's launcher, and those that it has started.
fn launchers(job: &Job) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", job.id())).unwrap_or_default();
    std::iter::once(job.id()).chain(children.split_whitespace().filter_map(|pid| pid.parse().ok())).collect()
}

/// Gives a job as much as it takes, as long as it takes more within a while; how much that was.
fn filled(input: &mut std::process::ChildStdin, until: usize) -> usize {
    let flags = fcntl_getfl(&*input).expect("flags");
    fcntl_setfl(&*input, flags | OFlags::NONBLOCK).expect("flags");
    let (mut given, mut last) = (0, Instant::now());
    while given < until && last.elapsed() < Duration::from_secs(1) {
        match input.write(&[b'i'; 65_536]) {
            Ok(length) => (given, last) = (given + length, Instant::now()),
            Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(1)),
            Err(why) => panic!("{why}"),
        }
    }
    fcntl_setfl(&*input, flags).expect("flags");
    given
}

#[test]
fn a_rank_elsewhere_that_does_not_read_takes_no_more_than_its_share_of_standard_input() {
    let elsewhere = Elsewhere::new();
    let fifo = elsewhere.fifo();
    let script = "echo on; read go <$0; cat >/dev/null; exit 5";
    let mut command = elsewhere.run(&["-n", "1", "sh", "-c", script, &fifo]);
    let mut job = spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut output = BufReader::new(job.stdout.take().expect("a pipe"));
    output.read_line(&mut String::new()).expect("the rank runs");
    let before: Vec<(u32, u64)> = launchers(&job).iter().map(|pid| (*pid, resident(*pid))).collect();
    assert_eq!(before.len(), 2, "a launcher here and one there");
    let mut input = job.stdin.take().expect("a pipe");
    let given = filled(&mut input, 64 << 20);
    for (pid, before) in &before {
        let more = resident(*pid).saturating_sub(*before);
        assert!(more <= MORE_MEMORY, "{more} bytes more at a launcher after {given} bytes");
    }
    // What waits for the rank, and what the pipes of both ends hold.
    assert!(given <= (1 << 20) + 8 * 65_536, "{given} bytes wait");
    std::fs::write(&fifo, "go\n").expect("a reader");
    drop(input);
    assert_eq!(ended(job).status.code(), Some(5), "the rank has read to the end");
}

/// How long a job elsewhere takes for so much input, which it counts, beside what pipes take.
fn time_of_input(elsewhere: &Elsewhere, length: usize) -> Duration {
    let mut command = elsewhere.run(&["-n", "1", "wc", "-c"]);
    let mut job = spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let begin = Instant::now();
    let mut input = job.stdin.take().expect("a pipe");
    for _ in 0..length >> 20 {
        input.write_all(&[b'i'; 1 << 20]).expect("a reader");
    }
    drop(input);
    let ended = ended(job);
    assert_eq!(text(&ended.stdout).trim(), length.to_string());
    begin.elapsed()
}

#[test]
fn much_input_for_elsewhere_takes_time_in_proportion() {
    let elsewhere = Elsewhere::new();
    let (few, many) = (8 << 20, 128 << 20);
    let time_of = |length| (0..3).map(|_| time_of_input(&elsewhere, length)).min().expect("a time");
    let (short, long) = (time_of(few), time_of(many));
    // In proportion it is 16 times at most. The square would be 256 times.
    assert!(long < short.max(Duration::from_millis(100)) * 64, "{short:?} and {long:?}");
}

#[test]
fn signals_reach_a_rank_elsewhere_that_does_not_read_its_input() {
    let elsewhere = Elsewhere::new();
    let script = "trap 'exit 7' USR1; echo on; while :; do sleep 0.01; done";
    let mut command = elsewhere.run(&["-n", "1", "sh", "-c", script]);
    let mut job = spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut output = BufReader::new(job.stdout.take().expect("a pipe"));
    output.read_line(&mut String::new()).expect("the rank runs");
    let mut input = job.stdin.take().expect("a pipe");
    filled(&mut input, 64 << 20);
    rustix::process::kill_process(rustix::process::Pid::from_child(&job), rustix::process::Signal::USR1).expect("it");
    assert_eq!(ended(job).status.code(), Some(7));
}

#[test]
fn input_that_a_rank_elsewhere_has_closed_is_left_to_others() {
    let elsewhere = Elsewhere::new();
    let mut command = elsewhere.run(&["-n", "1", "sh", "-c", "exec <&-; echo on; exec sleep 1000"]);
    let mut job = spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut output = BufReader::new(job.stdout.take().expect("a pipe"));
    output.read_line(&mut String::new()).expect("the rank runs");
    let given = filled(job.stdin.as_mut().expect("a pipe"), 64 << 20);
    assert!(given < 2 << 20, "{given} bytes are gone");
    rustix::process::kill_process(rustix::process::Pid::from_child(&job), rustix::process::Signal::TERM).expect("it");
    assert_eq!(ended(job).status.code(), Some(143));
}

/// The status of a job of which a reader takes the first bytes and leaves.
fn unread(command: &mut Command, is_error: bool) -> Option<i32> {
    let (output, errors) = if is_error { (Stdio::null(), Stdio::piped()) } else { (Stdio::piped(), Stdio::null()) };
    let mut job = spawn(command.stdout(output).stderr(errors));
    let mut some = [0; 4096];
    match is_error {
        true => job.stderr.take().expect("a pipe").read_exact(&mut some).expect("lines"),
        false => job.stdout.take().expect("a pipe").read_exact(&mut some).expect("lines"),
    }
    ended(job).status.code()
}

#[test]
fn a_job_elsewhere_that_nobody_reads_ends_by_sigpipe() {
    let elsewhere = Elsewhere::new();
    for label in [&[][..], &["--label"]] {
        for is_error in [false, true] {
            let script = if is_error { "exec yes >&2" } else { "exec yes" };
            let mut command = elsewhere.run(&[label, &["-n", "3", "sh", "-c", script]].concat());
            assert_eq!(unread(&mut command, is_error), Some(141), "{label:?} {is_error}");
        }
    }
    for is_error in [false, true] {
        let script = if is_error { "exec yes >&2" } else { "exec yes" };
        assert_eq!(unread(&mut run(&["--label", "-n", "2", "sh", "-c", script]), is_error), Some(141));
    }
}

#[test]
fn a_last_line_without_a_reader_has_the_status_of_sigpipe() {
    let elsewhere = Elsewhere::new();
    for mut command in [run(&["--label", "-n", "1", "echo", "last"]), elsewhere.run(&["-n", "1", "echo", "last"])] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let job = spawn(command.stdout(writer).stderr(Stdio::piped()));
        let ended = ended(job);
        assert_eq!((ended.status.code(), text(&ended.stderr)), (Some(141), ""));
    }
}

/// The lines of a job, each as its label, its first byte and its length without the label.
fn shapes(command: &mut Command) -> Vec<(String, u8, usize)> {
    let mut job = spawn(command.stdout(Stdio::piped()));
    let mut text_of_all = Vec::new();
    job.stdout.take().expect("a pipe").read_to_end(&mut text_of_all).expect("lines");
    assert!(ended(job).status.success());
    let lines = text_of_all.split_inclusive(|byte| *byte == b'\n');
    let shape = |line: &[u8]| {
        let end = line.iter().position(|byte| *byte == b' ').expect("a label");
        (text(&line[..end]).to_owned(), line[end + 1], line.len() - end - 2)
    };
    let mut shapes: Vec<_> = lines.map(shape).collect();
    shapes.sort_unstable();
    shapes
}

#[test]
fn long_lines_of_several_ranks_stay_whole() {
    let elsewhere = Elsewhere::new();
    let letters = "head -c 3000000 /dev/zero | tr '\\0' $L";
    let script = format!("L=$(printf '\\141'); {letters}; {letters}; echo; echo end");
    let expected: Vec<_> =
        (0..4).flat_map(|rank| [(format!("[{rank}]"), b'a', 6_000_000), (format!("[{rank}]"), b'e', 3)]).collect();
    assert_eq!(shapes(&mut run(&["-n", "4", "--label", "sh", "-c", &script])), expected);
    assert_eq!(shapes(&mut elsewhere.run(&["-n", "4", "--label", "sh", "-c", &script])), expected);
}

/// The rank with the long line goes on only when the other one has written all of its own.
#[test]
fn a_long_line_waits_for_other_ranks_and_is_not_broken_by_what_fits_beside_it() {
    let elsewhere = Elsewhere::new();
    let fifo = elsewhere.fifo();
    let script = "long() { head -c 100000 /dev/zero | tr '\\0' a; }
        if test $RANK = 0; then long; read on <$0; long; echo; else
        i=0; while test $i -lt 1000; do echo line; i=$((i+1)); done; echo on >$0; fi";
    let mut expected = vec![("[0]".to_owned(), b'a', 200_000)];
    expected.extend((0..1000).map(|_| ("[1]".to_owned(), b'l', 4)));
    let arguments = ["-n", "2", "--label", "sh", "-c", script, &fifo];
    assert_eq!(shapes(&mut run(&arguments)), expected);
    assert_eq!(shapes(&mut elsewhere.run(&arguments)), expected);
}

/// As above, but the other rank writes more than is kept: the line is broken off, and nothing hangs
/// or is lost.
#[test]
fn a_long_line_that_waits_for_a_rank_that_is_not_read_is_broken_off() {
    let elsewhere = Elsewhere::new();
    let fifo = elsewhere.fifo();
    let script = "long() { head -c 100000 /dev/zero | tr '\\0' a; }
        if test $RANK = 0; then long; read on <$0; long; echo; else
        yes line | head -n 1000000; echo on >$0; fi";
    let arguments = ["-n", "2", "--label", "sh", "-c", script, &fifo];
    for mut command in [run(&arguments), elsewhere.run(&arguments)] {
        let shapes = shapes(&mut command);
        let of_0: Vec<usize> = shapes.iter().filter(|shape| shape.0 == "[0]").map(|shape| shape.2).collect();
        assert_eq!((of_0.iter().sum::<usize>(), of_0.len()), (200_000, 2), "{of_0:?}");
        assert_eq!(shapes.iter().filter(|shape| shape.0 == "[1]").count(), 1_000_000);
    }
}

/// The reader pauses also where the launcher has room, and too little of it to read ranks again.
#[test]
fn a_long_line_is_not_broken_off_while_its_rank_is_not_read() {
    let elsewhere = Elsewhere::new();
    // Rank 1 has more than is kept before the output is full.
    let script = "a() { head -c $1 /dev/zero | tr '\\0' a; }
        if test $RANK = 1; then sleep 0.1; yes line | head -n 1000000; exit; fi
        a 100000; for i in 1 2 3 4 5 6 7 8 9 10; do a 1; sleep 0.05; done; a 6000000; echo";
    let mut job = spawn(elsewhere.run(&["-n", "2", "--label", "sh", "-c", script]).stdout(Stdio::piped()));
    let mut output = job.stdout.take().expect("a pipe");
    std::thread::sleep(Duration::from_secs(1));
    let (mut all, mut some) = (Vec::new(), vec![0; 400_000]);
    for _ in 0..6 {
        output.read_exact(&mut some).expect("bytes");
        all.extend_from_slice(&some);
        std::thread::sleep(Duration::from_millis(1500));
    }
    output.read_to_end(&mut all).expect("bytes");
    assert!(ended(job).status.success());
    let of_0 = all.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"[1]"));
    assert_eq!(of_0.map(<[u8]>::len).collect::<Vec<_>>(), [6_100_014, 0]);
}

/// What it left behind has its output, and is not read while there is no room, as if it were it.
#[test]
fn what_a_rank_elsewhere_that_has_ended_left_behind_needs_bounded_memory() {
    let elsewhere = Elsewhere::new();
    let fifo = elsewhere.fifo();
    let script = "if test $RANK = 0; then cat /dev/zero & exit 0; fi; read go <$0; exit 5";
    let mut job = spawn(elsewhere.run(&["-n", "2", "sh", "-c", script, &fifo]).stdout(Stdio::piped()));
    let mut output = job.stdout.take().expect("a pipe");
    let mut some = vec![0; 1 << 20];
    output.read_exact(&mut some).expect("bytes");
    let before: Vec<(u32, u64)> = launchers(&job).iter().map(|pid| (*pid, resident(*pid))).collect();
    assert_eq!(before.len(), 2, "a launcher here and one there");
    std::thread::sleep(Duration::from_secs(3));
    for (pid, before) in &before {
        let more = resident(*pid).saturating_sub(*before);
        assert!(more <= MORE_MEMORY, "{more} bytes more at a launcher");
    }
    // It goes on where somebody reads, and ends with the job.
    (0..16).for_each(|_| output.read_exact(&mut some).expect("bytes"));
    std::fs::write(&fifo, "go\n").expect("a reader");
    let rest = std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    assert_eq!(ended(job).status.code(), Some(5));
    rest.join().expect("no panic").expect("the end of the output");
}

#[test]
fn endless_lines_need_bounded_memory_and_end_with_their_reader() {
    let elsewhere = Elsewhere::new();
    for mut command in
        [run(&["-n", "3", "--label", "cat", "/dev/zero"]), elsewhere.run(&["-n", "3", "--label", "cat", "/dev/zero"])]
    {
        let mut job = spawn(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        let mut output = job.stdout.take().expect("a pipe");
        let mut some = vec![0; 1 << 20];
        output.read_exact(&mut some).expect("bytes");
        let before = resident(job.id());
        (0..100).for_each(|_| output.read_exact(&mut some).expect("bytes"));
        let more = resident(job.id()).saturating_sub(before);
        assert!(more <= MORE_MEMORY, "{more} bytes more");
        drop(output);
        assert_eq!(ended(job).status.code(), Some(141));
    }
}

/// What a rank leaves behind holds its output open, so that its end is not seen there.
#[test]
fn a_begun_line_of_a_rank_elsewhere_is_written_at_its_end() {
    let elsewhere = Elsewhere::new();
    let script = "sleep 1000 & printf begun";
    let output = elsewhere.run(&["-n", "1", "--label", "sh", "-c", script]).output().expect("the command");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "[0] begun\n"));
}

/// The end of a job that writes a line to this file, by its standard output or standard error.
fn written_to(path: &Path, command: &mut Command, is_error: bool) -> Output {
    let file = || std::fs::OpenOptions::new().append(true).open(path).expect("the file");
    let (output, errors) = if is_error { (Stdio::piped(), file().into()) } else { (file().into(), Stdio::piped()) };
    ended(spawn(command.stdout(output).stderr(errors)))
}

#[test]
fn a_full_disk_ends_the_job_with_a_status_and_a_reason() {
    let elsewhere = Elsewhere::new();
    let full = Path::new("/dev/full");
    let why = "cci run: cannot write to standard output: No space left on device (os error 28); make room there; \
               the job ends with status 1\n";
    for script in ["echo out", "echo out; exec sleep 1000", "exec yes"] {
        for mut command in [
            run(&["-n", "2", "--label", "sh", "-c", script]),
            elsewhere.run(&["-n", "2", "--label", "sh", "-c", script]),
            elsewhere.run(&["-n", "3", "sh", "-c", script]),
        ] {
            let ended = written_to(full, &mut command, false);
            assert_eq!((ended.status.code(), text(&ended.stderr)), (Some(1), why), "{script}");
        }
    }
    for script in ["echo error >&2", "echo error >&2; exec sleep 1000"] {
        for mut command in
            [run(&["-n", "2", "--label", "sh", "-c", script]), elsewhere.run(&["-n", "2", "sh", "-c", script])]
        {
            assert_eq!(written_to(full, &mut command, true).status.code(), Some(1), "{script}");
        }
    }
    // Nothing was lost: ranks of this host write themselves, or nothing.
    assert_eq!(written_to(full, &mut run(&["-n", "2", "--label", "true"]), false).status.code(), Some(0));
}

#[test]
fn a_disk_that_fills_up_keeps_what_it_took_and_ends_the_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("output");
    std::fs::write(&path, "").expect("a file");
    // A limit of the size of files fails as a full disk does, with another reason.
    let script = format!(
        "trap '' XFSZ; ulimit -f 64; exec {} run -n 2 --label sh -c 'yes line | head -n 100000' >>{}",
        env!("CARGO_BIN_EXE_cci"),
        path.display()
    );
    let ended = Command::new("bash").args(["-c", &script]).output().expect("a shell");
    let errors = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{errors}");
    assert!(errors.contains("cannot write to standard output: File too large"), "{errors}");
    let kept = std::fs::read(&path).expect("the file");
    assert!(kept.len() == 64 * 1024 && kept.starts_with(b"["), "{}", kept.len());
}

/// Names the folder in which a rank reports that it has met the other one.
const MET: &str = "CCI_TEST_MET";
/// More than the launchers and the pipes between them hold.
const FLOOD: usize = 8 << 20;

/// A rank: rank 0 writes until nobody takes it any more, and both meet in the store then.
fn meet(folder: &Path) {
    let job = cci_job::Job::join().expect("a job");
    let written = std::sync::atomic::AtomicUsize::new(0);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        if job.rank() == 0 {
            scope.spawn(|| {
                while written.load(relaxed) < FLOOD {
                    std::io::stdout().write_all(&[b'x'; 65_536]).expect("a reader");
                    written.fetch_add(65_536, relaxed);
                }
            });
            let mut before = usize::MAX;
            while std::mem::replace(&mut before, written.load(relaxed)) != written.load(relaxed) || before == 0 {
                std::thread::sleep(Duration::from_millis(500));
            }
            assert!(before < FLOOD, "somebody reads");
        }
        job.exchange(b"here").expect("the other rank");
        std::fs::write(folder.join(job.rank().to_string()), "").expect("a file");
    });
}

#[test]
fn ranks_elsewhere_meet_in_the_store_while_nobody_reads_what_they_write() {
    if let Some(folder) = std::env::var_os(MET) {
        return meet(Path::new(&folder));
    }
    let (elsewhere, met) = (Elsewhere::new(), tempfile::tempdir().expect("a folder"));
    let program = std::env::current_exe().expect("this test");
    let test = "ranks_elsewhere_meet_in_the_store_while_nobody_reads_what_they_write";
    let mut command = elsewhere.run(&["-n", "2", program.to_str().expect("text"), "--exact", test, "--nocapture"]);
    command.env(MET, met.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut job = spawn(&mut command);
    let begin = Instant::now();
    while ["0", "1"].iter().any(|rank| !met.path().join(rank).exists()) {
        assert!(begin.elapsed() < LONG, "their messages wait behind the output");
        assert_eq!(job.try_wait().expect("the job"), None, "it ends too early");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut output = Vec::new();
    job.stdout.take().expect("a pipe").read_to_end(&mut output).expect("the output");
    assert_eq!(output.iter().filter(|byte| **byte == b'x').count() / 65_536, FLOOD / 65_536);
    assert_eq!(ended(job).status.code(), Some(0));
}
