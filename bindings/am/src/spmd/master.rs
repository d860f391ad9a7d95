//! The master of a program that starts its own workers: it becomes their launcher, and never
//! returns.

use crate::answer::{guarded, say};
use crate::refusal::{Answer, Refusal};
use cci_launcher::RunOptions;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

/// Starts so many workers with these arguments, waits for their end, and returns the status that
/// the program ends with; below 0: it could not. The arguments are strings, readable until it
/// returns, and as many as it is told.
pub(super) type Spawn = unsafe extern "C" fn(c_int, c_int, *mut *mut c_char) -> c_int;

/// `amudp_spawnfn_desc_t`.
#[repr(C)]
pub(super) struct Description {
    letter: c_char,
    text: *const c_char,
    function: Option<Spawn>,
}

// SAFETY: constants.
unsafe impl Sync for Description {}

#[unsafe(export_name = "AMUDP_Spawnfn_Desc")]
static DESCRIPTIONS: [Description; 4] = [
    Description { letter: b'L' as c_char, text: c"starts the workers on this host".as_ptr(), function: Some(local) },
    Description {
        letter: b'S' as c_char,
        text: c"starts the workers on the hosts of AMUDP_SSH_SERVERS, by ssh".as_ptr(),
        function: Some(ssh),
    },
    Description {
        letter: b'C' as c_char,
        text: c"starts the workers by the command AMUDP_CSPAWN_CMD".as_ptr(),
        function: Some(custom),
    },
    Description { letter: 0, text: std::ptr::null(), function: None },
];

const NAME: &str = "AMUDP_SPMDStartup";

fn failed(why: &str) -> c_int {
    say(NAME, why);
    -1
}

/// A variable of the library's, also by the name that GASNet gives it.
fn variable(name: &str) -> Option<String> {
    ["AMUDP_", "GASNET_"].into_iter().find_map(|prefix| std::env::var(format!("{prefix}{name}")).ok())
}

/// The words of a C program.
///
/// # Safety
///
/// `count` pointers are readable at `start`, each to a string that ends with a NUL. Nobody changes
/// them during the call.
unsafe fn words(count: c_int, start: *mut *mut c_char) -> Vec<OsString> {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: `at` is below `count`, so a string that ends with a NUL, by the contract above.
    let word = |at| unsafe { CStr::from_ptr(*start.add(at)) };
    (0..count).map(|at| OsStr::from_bytes(word(at).to_bytes()).to_owned()).collect()
}

/// Runs workers of this program with the launcher of `cci run`.
fn launch(ranks: c_int, words: &[OsString], options: RunOptions) -> c_int {
    let program = match std::env::current_exe() {
        Ok(program) => program.into_os_string(),
        Err(why) => return failed(&format!("cannot find the path of this program: {why}")),
    };
    let speaker = words.first().map(|word| word.to_string_lossy().into_owned());
    let arguments = words.iter().skip(1).cloned().collect();
    let ranks = ranks.unsigned_abs();
    // A pipe without a reader is an error to the launcher. Workers get the signal's default back.
    // SAFETY: no handler is set.
    let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let ran = cci_launcher::run(&RunOptions { ranks, program, arguments, speaker, ..options });
    // SAFETY: what the call before has returned.
    unsafe { libc::signal(libc::SIGPIPE, before) };
    match ran {
        Ok(status) => c_int::from(status),
        Err(why) => failed(&why.to_string()),
    }
}

/// # Safety
///
/// As `words`.
unsafe extern "C" fn local(ranks: c_int, count: c_int, start: *mut *mut c_char) -> c_int {
    // SAFETY: `count` strings at `start`, by the contract above.
    guarded(1, || launch(ranks, &unsafe { words(count, start) }, RunOptions::default()))
}

/// # Safety
///
/// As `words`.
unsafe extern "C" fn ssh(ranks: c_int, count: c_int, start: *mut *mut c_char) -> c_int {
    // SAFETY: `count` strings at `start`, by the contract above.
    guarded(1, || unsafe { by_ssh(ranks, count, start) })
}

/// # Safety
///
/// As `words`.
unsafe fn by_ssh(ranks: c_int, count: c_int, start: *mut *mut c_char) -> c_int {
    let Some(servers) = variable("SSH_SERVERS") else {
        return failed("AMUDP_SSH_SERVERS is not set; name the hosts in it, between spaces");
    };
    let hosts = servers.split([' ', ',']).filter(|host| !host.is_empty());
    let hosts: Vec<String> =
        hosts.map(|host| if host.contains(':') { host.into() } else { format!("{host}:1") }).collect();
    let hosts = match cci_launcher::parse_hosts(&hosts.join(",")) {
        Ok(hosts) => hosts,
        Err(why) => return failed(&format!("AMUDP_SSH_SERVERS: {why}")),
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("cci")).find(|command| command.is_file());
    let command = found.map_or_else(|| "cci".into(), std::path::PathBuf::into_os_string);
    let options = RunOptions { hosts, rsh: variable("SSH_CMD"), command: Some(command), ..Default::default() };
    // SAFETY: `count` strings at `start`, by the contract above.
    launch(ranks, &unsafe { words(count, start) }, options)
}

/// A word that a shell takes as it is.
fn quoted(word: &OsStr) -> String {
    format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"))
}

/// # Safety
///
/// As `words`.
unsafe extern "C" fn custom(ranks: c_int, count: c_int, start: *mut *mut c_char) -> c_int {
    // SAFETY: `count` strings at `start`, by the contract above.
    guarded(1, || unsafe { by_command(ranks, count, start) })
}

/// # Safety
///
/// As `words`.
unsafe fn by_command(ranks: c_int, count: c_int, start: *mut *mut c_char) -> c_int {
    let Some(command) = variable("CSPAWN_CMD") else {
        return failed("AMUDP_CSPAWN_CMD is not set; write the command in it, %N for the workers, %C for theirs");
    };
    let program = match std::env::current_exe() {
        Ok(program) => program.into_os_string(),
        Err(why) => return failed(&format!("cannot find the path of this program: {why}")),
    };
    // SAFETY: `count` strings at `start`, by the contract above.
    let rest = unsafe { words(count, start) };
    let all: Vec<String> = std::iter::once(&program).chain(rest.iter().skip(1)).map(|word| quoted(word)).collect();
    let line = command.replace("%N", &ranks.to_string()).replace("%C", &all.join(" "));
    // The shell is replaced by the command, so that signals of the terminal reach it.
    match Command::new("/bin/sh").arg("-c").arg(format!("exec {line}")).status() {
        Ok(status) => {
            use std::os::unix::process::ExitStatusExt;
            status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
        }
        Err(why) => failed(&format!("cannot start the command of AMUDP_CSPAWN_CMD: {why}")),
    }
}

/// The function that a letter stands for.
fn of_letter(word: &OsStr) -> Option<Spawn> {
    let [letter] = *word.as_bytes() else { return None };
    DESCRIPTIONS.iter().find(|known| letter != 0 && known.letter as u8 == letter)?.function
}

/// Starts the workers, waits for their end, and ends this process with the status of the program.
/// Returns only when they cannot be started.
///
/// # Safety
///
/// Each is NULL, or what `main` has got: `*count` strings at `*start`. `spawn` may be called as its
/// type says.
pub(super) unsafe fn run(
    (count, start): (*mut c_int, *mut *mut *mut c_char),
    ranks: c_int,
    spawn: Option<Spawn>,
) -> Answer {
    const USAGE: Refusal = Refusal::BadArg("the program's first argument is the number of workers");
    if count.is_null() || start.is_null() {
        return Err(Refusal::BadArg("argc or argv is NULL"));
    }
    // SAFETY: neither is NULL, so `*count` strings at `*start`, by the contract above.
    let all = unsafe { words(*count, *start) };
    let mut rest = all.iter().skip(1).peekable();
    let mut ranks = ranks;
    if ranks == 0 {
        let number = rest.next().and_then(|word| word.to_str()?.parse::<c_int>().ok());
        let Some(number) = number.filter(|number| *number > 0) else {
            let program = all.first().map_or("PROGRAM".into(), |word| word.to_string_lossy());
            say(NAME, &format!("usage: {program} WORKERS [L|S|C] ARGUMENTS..."));
            return Err(USAGE);
        };
        ranks = number;
    }
    if ranks < 0 {
        return Err(USAGE);
    }
    let spawn = spawn.or_else(|| {
        let given = rest.peek().and_then(|word| of_letter(word));
        if given.is_some() {
            rest.next();
        }
        given.or_else(|| of_letter(variable("SPAWNFN")?.as_ref()))
    });
    let words: Result<Vec<CString>, _> =
        all.first().into_iter().chain(rest).map(|word| CString::new(word.as_bytes())).collect();
    let words = words.map_err(|_| USAGE)?;
    let mut pointers: Vec<*mut c_char> = words.iter().map(|word| word.as_ptr().cast_mut()).collect();
    let count = c_int::try_from(pointers.len()).map_err(|_| USAGE)?;
    pointers.push(std::ptr::null_mut());
    // SAFETY: `count` strings of `words`, which lives until it has returned.
    let status = unsafe { spawn.unwrap_or(local)(ranks, count, pointers.as_mut_ptr()) };
    if status < 0 {
        return Err(Refusal::Resource("the workers cannot be started"));
    }
    // SAFETY: functions that the program has registered for its end run.
    unsafe { libc::exit(status) }
}
