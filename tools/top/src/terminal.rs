//! The live view's terminal: taken over, given back whatever happens, and its keys.
//!
//! Keys are read here and not by `crossterm`, whose reader turns without end when the terminal has
//! gone.

use super::keys::{Key, keys};
use super::look;
use super::processes::Scope;
use super::rows::{EndpointRow, Order, Watch};
use super::view::{LEAST, Screen, draw, too_small};
use cci_report::{UserError, while_doing};
use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{Read, stdin, stdout};
use std::mem::ManuallyDrop;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Shortest and longest time between two looks that the keys allow.
const SHORTEST: Duration = Duration::from_millis(125);
const LONGEST: Duration = Duration::from_secs(64);
/// A signal is noticed within this time.
const NAP: Duration = Duration::from_millis(100);

/// The thread that draws has so long to end after a signal: it may be blocked in a write.
const GRACE: Duration = Duration::from_millis(500);

/// Gives the terminal back when it goes; the panic hook of `ratatui::try_init` does so for panics.
struct Taken;

impl Drop for Taken {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing back.
        let _ = ratatui::try_restore();
        let _ = execute!(stdout(), Show);
    }
}

/// Shows endpoints until the user ends it.
pub(crate) fn run(scope: &Scope, interval: Duration, order: Order) -> Result<(), UserError> {
    let (width, height) =
        ratatui::crossterm::terminal::size().map_err(while_doing("the terminal does not report its size"))?;
    if width < LEAST.0 || height < LEAST.1 {
        return Err(UserError(too_small(width, height)));
    }
    // Before the terminal is taken over: what is wrong is said in a line.
    look(scope)?;
    let ended = Arc::new(AtomicBool::new(false));
    watch_signals(Arc::clone(&ended))?;
    let terminal = ratatui::try_init().map_err(while_doing("cannot take over the terminal"))?;
    // Its destructor complains to standard error when the terminal has gone, and panics, since that
    // has gone too.
    let mut terminal = ManuallyDrop::new(terminal);
    let _taken = Taken;
    live(&mut terminal, scope, Screen::new(order, interval), &ended)
}

/// Ends the live view when a signal asks for it: sets `ended`, and ends the process itself where
/// the thread that draws does not return, as from a write to a terminal that takes no output.
fn watch_signals(ended: Arc<AtomicBool>) -> Result<(), UserError> {
    let failed = while_doing("cannot wait for signals");
    let modes = tcgetattr(stdin()).map_err(while_doing("the terminal does not report its modes"))?;
    let (mut come, write) = UnixStream::pair().map_err(&failed)?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let write = write.try_clone().map_err(&failed)?;
        signal_hook::low_level::pipe::register(signal, write).map_err(&failed)?;
    }
    #[expect(clippy::disallowed_methods, reason = "the thread that would return a status is blocked")]
    std::thread::spawn(move || {
        if come.read_exact(&mut [0]).is_err() {
            return;
        }
        ended.store(true, Ordering::Relaxed);
        std::thread::sleep(GRACE);
        // Without waiting until the output has been shown. A terminal that has gone has no modes.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &modes);
        std::process::exit(0);
    });
    Ok(())
}

/// What came from the keyboard.
enum Input {
    Nothing,
    Keys(Vec<Key>),
    /// The terminal has gone.
    Gone,
}

/// Waits for keys, at most for so long; a signal ends the wait.
fn input(limit: Duration) -> Result<Input, UserError> {
    let failed = while_doing::<Errno>("cannot read from the terminal");
    let limit = Timespec { tv_sec: 0, tv_nsec: limit.min(NAP).subsec_nanos().into() };
    let keyboard = stdin();
    match poll(&mut [PollFd::new(&keyboard, PollFlags::IN)], Some(&limit)) {
        Ok(0) | Err(Errno::INTR) => return Ok(Input::Nothing),
        ready => ready.map_err(&failed)?,
    };
    let mut bytes = [0; 256];
    match rustix::io::read(&keyboard, &mut bytes) {
        Ok(0) | Err(Errno::IO) => Ok(Input::Gone),
        Ok(len) => Ok(Input::Keys(keys(&bytes[..len]))),
        Err(Errno::INTR | Errno::AGAIN) => Ok(Input::Nothing),
        Err(error) => Err(failed(error)),
    }
}

fn live(
    terminal: &mut DefaultTerminal,
    scope: &Scope,
    mut screen: Screen,
    ended: &AtomicBool,
) -> Result<(), UserError> {
    let mut watch = Watch::default();
    let mut found = look(scope)?;
    let mut rows = watch.rows(&found, screen.order);
    let mut looked = Instant::now();
    loop {
        terminal
            .draw(|frame| draw(frame, &mut screen, &rows, &found))
            .map_err(while_doing("cannot write to the terminal"))?;
        loop {
            if ended.load(Ordering::Relaxed) {
                return Ok(());
            }
            if !screen.paused && looked.elapsed() >= screen.interval {
                found = look(scope)?;
                rows = watch.rows(&found, screen.order);
                looked = Instant::now();
                break;
            }
            let left = screen.interval.saturating_sub(looked.elapsed());
            match input(if screen.paused { NAP } else { left })? {
                Input::Gone => return Ok(()),
                Input::Keys(keys) => {
                    if keys.into_iter().any(|key| on_key(key, &mut screen, &mut rows)) {
                        return Ok(());
                    }
                    break;
                }
                Input::Nothing if has_another_size(terminal) => break,
                Input::Nothing => {}
            }
        }
    }
}

/// Whether the terminal has become larger or smaller since it was drawn to.
fn has_another_size(terminal: &mut DefaultTerminal) -> bool {
    let drawn = terminal.current_buffer_mut().area;
    terminal.size().is_ok_and(|size| (size.width, size.height) != (drawn.width, drawn.height))
}

/// What a key does. True: the end.
fn on_key(key: Key, screen: &mut Screen, rows: &mut [EndpointRow]) -> bool {
    match key {
        Key::Interrupt => return true,
        Key::Escape if screen.help => screen.help = false,
        Key::Char('q') | Key::Escape => return true,
        Key::Char('p' | ' ') => screen.paused = !screen.paused,
        Key::Char('h' | '?') => screen.help = !screen.help,
        Key::Char('s') => {
            screen.order = screen.order.next();
            screen.order.sort(rows);
        }
        Key::Char('+') => screen.interval = (screen.interval * 2).min(LONGEST),
        Key::Char('-') => screen.interval = (screen.interval / 2).max(SHORTEST),
        Key::Up => screen.scroll(-1, rows.len()),
        Key::Down => screen.scroll(1, rows.len()),
        Key::PageUp => screen.scroll(-10, rows.len()),
        Key::PageDown => screen.scroll(10, rows.len()),
        Key::Char(_) => {}
    }
    false
}
