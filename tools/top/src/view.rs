//! The live view: what stands where.

use super::plain::{HEADS, LEFT, cells, left_out};
use super::processes::Look;
use super::rows::{Doing, EndpointRow, Order};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row as Cells, Table, TableState, Wrap};
use std::time::Duration;

/// The least terminal: columns and lines.
pub(crate) const LEAST: (u16, u16) = (80, 10);
/// Widths of the columns, in the order of the heads; with one space between them, 80. The endpoint
/// takes what is left.
const WIDTHS: [u16; 11] = [7, 14, 10, 4, 6, 6, 6, 4, 4, 4, 5];
const ENDPOINT: usize = 1;

const _: () = {
    let (mut at, mut sum) = (0, WIDTHS.len() as u16 - 1);
    while at < WIDTHS.len() {
        sum += WIDTHS[at];
        at += 1;
    }
    assert!(sum == LEAST.0);
};

const KEYS: &str = "q quit  p pause  s sort  up/down scroll  h help";

const HELP: [&str; 16] = [
    "PID       process; ENDPOINT: what others connect to",
    "STATE     calling: it calls the library; sleep: it made its handle ready to",
    "          sleep on, and has not called since; quiet: it has not called;",
    "          stop: stopped by a signal. With the time since its last call.",
    "SEAL      whether what crosses a network is sealed; may: where the peer agrees;",
    "          -: nothing crosses one, or the process does not publish it",
    "SEND/S    messages sent a second; RECV/S: received",
    "BYTE/S    bytes a second of RMA and of messages above 56 bytes, both ways",
    "FLY       operations in flight",
    "RETX      frames sent again, in all",
    "RNR       times that a peer had no room, or found none here, in all",
    "BUF       receive buffers taken; full: the program holds all, a peer waits",
    "",
    "q, Esc, Ctrl-C  end        p, Space  pause and go on",
    "s  sort by process, messages, bytes, wait, quiet        + -  interval",
    "h, ?  this page",
];

/// What the user has chosen.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) order: Order,
    pub(crate) paused: bool,
    pub(crate) help: bool,
    pub(crate) interval: Duration,
    pub(crate) table: TableState,
}

impl Screen {
    pub(crate) fn new(order: Order, interval: Duration) -> Self {
        Self { order, paused: false, help: false, interval, table: TableState::default() }
    }

    /// Goes up or down in the table.
    pub(crate) fn scroll(&mut self, by: isize, rows: usize) {
        let at = self.table.offset().saturating_add_signed(by).min(rows.saturating_sub(1));
        *self.table.offset_mut() = at;
    }
}

/// Draws everything.
pub(crate) fn draw(frame: &mut Frame<'_>, screen: &mut Screen, rows: &[EndpointRow], look: &Look) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = too_small(area.width, area.height);
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    }
    let remarks: Vec<String> = rows.iter().flat_map(EndpointRow::remarks).chain(left_out(look)).collect();
    let below = u16::try_from(remarks.len()).unwrap_or(u16::MAX).min(area.height / 3);
    let framed = if below == 0 { 0 } else { below + 1 };
    let [head, middle, bottom, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(framed),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(headline(screen, rows), head);
    if screen.help {
        frame.render_widget(Paragraph::new(HELP.map(Line::from).to_vec()), middle);
    } else {
        frame.render_stateful_widget(table(rows), middle, &mut screen.table);
    }
    draw_remarks(frame, bottom, &remarks);
    frame.render_widget(Paragraph::new(KEYS).style(Style::new().add_modifier(Modifier::DIM)), foot);
}

/// Why nothing is shown.
pub(crate) fn too_small(width: u16, height: u16) -> String {
    format!(
        "cci top needs a terminal of {} columns and {} lines, this one has {width} and {height}: make it larger, or use `cci top --once`.",
        LEAST.0, LEAST.1
    )
}

fn headline(screen: &Screen, rows: &[EndpointRow]) -> Paragraph<'static> {
    let endpoints = if rows.len() == 1 { "1 endpoint".into() } else { format!("{} endpoints", rows.len()) };
    let paused = if screen.paused { ", paused" } else { "" };
    let text = format!(
        "cci top: {endpoints}, by {}, every {}{paused}",
        screen.order.title(),
        super::rows::seconds(screen.interval.as_secs_f64())
    );
    Paragraph::new(text).style(Style::new().add_modifier(Modifier::BOLD))
}

fn table(rows: &[EndpointRow]) -> Table<'static> {
    let aligned = |column: usize, text: String| {
        let line = Line::from(text);
        Cell::from(if LEFT.contains(&column) { line.left_aligned() } else { line.right_aligned() })
    };
    let cells = |row: &EndpointRow| {
        let cells = cells(row).into_iter().enumerate().map(|(column, text)| aligned(column, text));
        Cells::new(cells.collect::<Vec<_>>()).style(style(row))
    };
    let head = HEADS.iter().enumerate().map(|(column, text)| aligned(column, (*text).into()));
    let head = Cells::new(head.collect::<Vec<_>>()).style(Style::new().add_modifier(Modifier::REVERSED));
    let widths = WIDTHS.iter().enumerate().map(|(column, width)| match column {
        ENDPOINT => Constraint::Min(*width),
        _ => Constraint::Length(*width),
    });
    Table::new(rows.iter().map(cells).collect::<Vec<_>>(), widths).header(head).column_spacing(1)
}

/// What deserves a look stands out; each is told by its words too.
fn style(row: &EndpointRow) -> Style {
    if row.doing == Doing::Stopped || row.endpoint.snapshot.is_starving {
        Style::new().fg(Color::Red)
    } else if !row.waits.is_empty() {
        Style::new().fg(Color::Yellow)
    } else if row.doing == Doing::Calling {
        Style::new()
    } else {
        Style::new().add_modifier(Modifier::DIM)
    }
}

fn draw_remarks(frame: &mut Frame<'_>, area: Rect, remarks: &[String]) {
    let room = usize::from(area.height.saturating_sub(1));
    let mut lines: Vec<Line<'_>> = remarks.iter().take(room).map(|line| Line::from(line.as_str())).collect();
    if remarks.len() > room
        && let Some(last) = lines.last_mut()
    {
        *last = Line::from(format!("... and {} more", remarks.len() - room + 1));
    }
    frame.render_widget(Paragraph::new(lines).block(Block::new().borders(Borders::TOP)), area);
}

#[cfg(test)]
mod tests {
    use super::super::rows::Watch;
    use super::super::rows::tests::endpoint;
    use super::*;
    use cci::{WaitFor, WaitShown};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    /// Some endpoints, as a second look finds them.
    fn looks() -> (Vec<EndpointRow>, Look) {
        let mut before = Look {
            at: Duration::from_secs(9),
            endpoints: vec![endpoint(4_194_304), endpoint(22), endpoint(7)],
            ..Look::default()
        };
        before.endpoints[1].snapshot.progress = Duration::from_secs(8);
        let mut look = Look { at: Duration::from_secs(10), others: 3, ..before.clone() };
        let busy = &mut look.endpoints[0].snapshot;
        (busy.sent, busy.received, busy.rma_bytes) = (2_345_678, 999, 1 << 36);
        busy.is_sealed = true;
        (busy.in_flight, busy.resent, busy.not_ready) = (16, 3, 70_000);
        let waiting = &mut look.endpoints[1].snapshot;
        (waiting.is_sealed, waiting.is_clear) = (true, true);
        waiting.uri = "sock://[fe80::1234:5678:9abc:def0%3]:50000".into();
        (waiting.progress, waiting.is_starving) = (Duration::from_secs(8), true);
        let peer = "sock://192.0.2.7:5000".into();
        waiting.waits =
            vec![WaitShown { peer, what: Some(WaitFor::Acknowledgement), since: Duration::ZERO, operations: 1 }];
        look.endpoints[2].state = 'T';
        let mut watch = Watch::default();
        watch.rows(&before, Order::Pid);
        (watch.rows(&look, Order::Pid), look)
    }

    fn drawn(width: u16, height: u16, change: impl FnOnce(&mut Screen)) -> String {
        let (rows, look) = looks();
        let mut screen = Screen::new(Order::Pid, Duration::from_secs(1));
        change(&mut screen);
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &mut screen, &rows, &look)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn eighty_columns_suffice() {
        insta::assert_snapshot!(drawn(80, 16, |_| ()));
    }

    #[test]
    fn a_wide_terminal_shows_more_of_the_endpoint() {
        assert!(drawn(120, 16, |_| ()).contains("sock://[fe80::1234:5678:9abc:def0%3]:50000 "));
    }

    #[test]
    fn the_help_fits_the_least_terminal_that_shows_all_of_it() {
        let help = drawn(80, 24, |screen| screen.help = true);
        for line in HELP {
            assert!(help.contains(line), "{line:?} is cut in {help}");
        }
    }

    #[test]
    fn a_terminal_that_becomes_too_small_says_so() {
        let text = drawn(40, 9, |_| ());
        assert!(text.contains("80 columns") && !text.contains("SEND/S"), "{text}");
        drawn(1, 1, |_| ());
    }

    #[test]
    fn scrolling_stays_in_the_table() {
        let text = drawn(80, 12, |screen| screen.scroll(2, 3));
        assert!(text.contains("4194304") && !text.contains("sm://7/0"), "{text}");
        let mut screen = Screen::new(Order::Pid, Duration::from_secs(1));
        screen.scroll(-1, 3);
        assert_eq!(screen.table.offset(), 0);
        screen.scroll(100, 3);
        assert_eq!(screen.table.offset(), 2);
    }
}
