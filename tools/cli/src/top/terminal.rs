//! The live view's terminal: taken over, given back whatever happens, and its keys.

use super::look;
use super::processes::Scope;
use super::rows::{Order, Row, Watch};
use super::view::{LEAST, Screen, draw, too_small};
use crate::measure::{Sentence, while_doing};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Shortest and longest time between two looks that the keys allow.
const SHORTEST: Duration = Duration::from_millis(125);
const LONGEST: Duration = Duration::from_secs(64);
/// A signal is noticed within this time.
const NAP: Duration = Duration::from_millis(100);

/// Gives the terminal back when it goes; the panic hook of `ratatui::try_init` does so for panics.
struct Taken;

impl Drop for Taken {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows endpoints until the user ends it.
pub(crate) fn run(scope: &Scope, interval: Duration, order: Order) -> Result<(), Sentence> {
    let (width, height) =
        ratatui::crossterm::terminal::size().map_err(while_doing("the terminal does not tell its size"))?;
    if width < LEAST.0 || height < LEAST.1 {
        return Err(Sentence(too_small(width, height)));
    }
    // Before the terminal is taken over: what is wrong is said in a line.
    look(scope)?;
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended)).map_err(while_doing("cannot wait for signals"))?;
    }
    let mut terminal = ratatui::try_init().map_err(while_doing("cannot take over the terminal"))?;
    let _taken = Taken;
    live(&mut terminal, scope, Screen::new(order, interval), &ended)
}

fn live(terminal: &mut DefaultTerminal, scope: &Scope, mut screen: Screen, ended: &AtomicBool) -> Result<(), Sentence> {
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
            let nap = if screen.paused { NAP } else { left.min(NAP) };
            if poll(nap).map_err(while_doing("cannot read from the terminal"))? {
                let event = read().map_err(while_doing("cannot read from the terminal"))?;
                if on_event(&event, &mut screen, &mut rows) {
                    return Ok(());
                }
                break;
            }
        }
    }
}

/// What a key does. True: the end.
fn on_event(event: &Event, screen: &mut Screen, rows: &mut [Row]) -> bool {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press | KeyEventKind::Repeat, .. }) = event else {
        return false;
    };
    match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => return true,
        KeyCode::Esc if screen.help => screen.help = false,
        KeyCode::Char('q') | KeyCode::Esc => return true,
        KeyCode::Char('p' | ' ') => screen.paused = !screen.paused,
        KeyCode::Char('h' | '?') => screen.help = !screen.help,
        KeyCode::Char('s') => {
            screen.order = screen.order.next();
            screen.order.sort(rows);
        }
        KeyCode::Char('+') => screen.interval = (screen.interval * 2).min(LONGEST),
        KeyCode::Char('-') => screen.interval = (screen.interval / 2).max(SHORTEST),
        KeyCode::Up => screen.scroll(-1, rows.len()),
        KeyCode::Down => screen.scroll(1, rows.len()),
        KeyCode::PageUp => screen.scroll(-10, rows.len()),
        KeyCode::PageDown => screen.scroll(10, rows.len()),
        _ => {}
    }
    false
}
