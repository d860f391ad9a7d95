//! The headline table: what each library makes of each wire, in three figures.

use super::Run;
use super::curves;
use super::curves::Value;
use super::library;
use crate::documents::Key;
use crate::row::Row;
use crate::sizes::show_size;
use maud::{Markup, html};

/// The three figures of a library in a setting over a transport.
struct Headline<'a> {
    transport: &'a str,
    library: &'a str,
    setting: Option<&'a str>,
    latency: Option<&'a Row>,
    rate: Option<&'a Row>,
    bandwidth: Option<&'a Row>,
}

/// The table; none when no row has a place in it.
pub(super) fn draw(runs: &[Run]) -> Option<Markup> {
    let lines = lines(runs);
    let mut transports: Vec<_> = lines.iter().map(|line| line.transport).collect();
    transports.dedup();
    let latency = same_size(lines.iter().filter_map(|line| line.latency));
    let rate = same_size(lines.iter().filter_map(|line| line.rate));
    let of_size = |size: Option<u64>| size.map_or_else(String::new, |size| format!(", {}", show_size(size)));
    (!lines.is_empty()).then(|| {
        html! {
            div class="scroll" role="region" aria-label="Headline figures" tabindex="0" {
                table class="headline" {
                    thead { tr {
                        th scope="col" class="word" { "library" }
                        th scope="col" class="number" { "half round trip" (of_size(latency)) }
                        th scope="col" class="number" { "messages" (of_size(rate)) }
                        th scope="col" class="number" { "best bandwidth" }
                    } }
                    @for transport in transports {
                        tbody {
                            tr class="group" { th scope="colgroup" colspan="4" { (curves::transport(transport)) } }
                            @for line in lines.iter().filter(|line| line.transport == transport) { (row(line, [latency, rate])) }
                        }
                    }
                }
            }
        }
    })
}

fn row(line: &Headline<'_>, sizes: [Option<u64>; 2]) -> Markup {
    let any = line.latency.or(line.rate).or(line.bandwidth);
    let (which, how) = any.map_or(("", ""), curves::setting);
    html! {
        tr class={ @if line.library == "cci" { "ours" } } {
            th scope="row" class="word" {
                (library::name(line.library)) @if !which.is_empty() { " " (which) }
                @if !how.is_empty() { small { (how) } }
            }
            (cell(line.latency, Value::Time, sizes[0].is_none()))
            (cell(line.rate, Value::Rate, sizes[1].is_none()))
            (cell(line.bandwidth, Value::Bandwidth, true))
        }
    }
}

/// A figure; with its size unless the head of the column says it.
fn cell(row: Option<&Row>, value: Value, with_size: bool) -> Markup {
    let Some(row) = row else { return html! { td class="number" { "–" } } };
    let operation = if row.operation == "send" { String::new() } else { format!("RMA {}, ", row.operation) };
    let bare = row.ratio.map(|ratio| value.to_bare(ratio));
    html! {
        td class="number" {
            span class="whole" { (value.show(value.of(row.median_ns, row.size))) @if !row.accurate { " " (mark_of_doubt()) } }
            small {
                @if with_size { (operation) span class="whole" { (show_size(row.size)) @if bare.is_some() { "," } } " " }
                @if let Some(bare) = bare { span class="whole" { (bare) } }
            }
        }
    }
}

/// The size of all rows, if it is the same.
fn same_size<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<u64> {
    let mut sizes: Vec<_> = rows.map(|row| row.size).collect();
    sizes.dedup();
    <[u64; 1]>::try_from(sizes).ok().map(|[size]| size)
}

/// What stands beside a figure that is not accurate.
pub(super) fn mark_of_doubt() -> Markup {
    html! { abbr class="mark" title="not accurate: its spread is beyond the bound of its run" { "≈" } }
}

fn lines(runs: &[Run]) -> Vec<Headline<'_>> {
    let mut lines: Vec<Headline<'_>> = Vec::new();
    for row in runs.iter().flat_map(|run| &run.document.rows) {
        let setting = row.setting.as_deref();
        let at = lines.iter().position(|line| {
            (line.transport, line.library, line.setting) == (row.transport.as_str(), row.library.as_str(), setting)
        });
        let at = at.unwrap_or_else(|| {
            let (transport, library) = (row.transport.as_str(), row.library.as_str());
            lines.push(Headline { transport, library, setting, latency: None, rate: None, bandwidth: None });
            lines.len() - 1
        });
        let line = &mut lines[at];
        match row.measurement.as_str() {
            "pingpong" if row.operation == "send" => take(&mut line.latency, row, near_8),
            "rate" if row.operation == "send" => take(&mut line.rate, row, near_8),
            "bw" => take(&mut line.bandwidth, row, |row| -Value::Bandwidth.of(row.median_ns, row.size)),
            _ => {}
        }
    }
    lines.retain(|line| line.latency.is_some() || line.rate.is_some() || line.bandwidth.is_some());
    let transports: Vec<_> = lines.iter().map(|line| line.transport).collect();
    let order = |name: &str| transports.iter().position(|known| *known == name);
    lines.sort_by(|a, b| {
        let of = |line: &Headline<'_>| (order(line.transport), line.library != "cci");
        let time = |line: &Headline<'_>| line.latency.map_or(f64::INFINITY, |row| row.median_ns);
        of(a).cmp(&of(b)).then(time(a).total_cmp(&time(b)))
    });
    lines
}

/// Keeps the row with fewer peculiarities, of these the one that `weigh` finds lighter, of these
/// the later.
fn take<'a>(kept: &mut Option<&'a Row>, row: &'a Row, weigh: impl Fn(&Row) -> f64) {
    // Reading what arrives is what any program does.
    let plain = |row: &Row| Key::of(row).without("library").without("setting").without("touch").peculiarities();
    let is_better = kept.is_none_or(|kept| {
        let (new, old) = (plain(row), plain(kept));
        let order = new.split(", ").count().cmp(&old.split(", ").count()).then(new.len().min(1).cmp(&old.len().min(1)));
        order.then(weigh(row).total_cmp(&weigh(kept))).is_le()
    });
    if is_better {
        *kept = Some(row);
    }
}

/// How far a size is from 8 bytes, the size that libraries are compared at.
#[expect(clippy::cast_precision_loss, reason = "a size below 2^52")]
fn near_8(row: &Row) -> f64 {
    (row.size.max(1) as f64 / 8.0).ln().abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::names::Measurement;
    use crate::row::Document;
    use crate::row::tests::row;

    fn run(rows: Vec<Row>) -> [Run; 1] {
        [Run { document: Document::new(Environment::default(), rows, vec![], None), source: String::new() }]
    }

    #[test]
    fn each_library_has_a_line_with_its_latency_at_8_bytes_and_its_best_bandwidth() {
        let mut rows: Vec<_> = [1, 8, 64].map(|size| row(Measurement::PingPong, size)).into();
        rows.extend([4096, 65536].map(|size| row(Measurement::Bandwidth, size)));
        let mut peer = row(Measurement::PingPong, 8);
        (peer.library, peer.median_ns) = ("ucx".into(), 50.0);
        rows.insert(0, peer);
        let runs = run(rows);
        let lines = lines(&runs);
        assert_eq!(lines.iter().map(|line| line.library).collect::<Vec<_>>(), ["cci", "ucx"]);
        assert_eq!(lines[0].latency.unwrap().size, 8);
        assert_eq!(lines[0].bandwidth.unwrap().size, 65536);
        assert!(lines[1].bandwidth.is_none());
    }

    #[test]
    fn the_ordinary_case_stands_for_a_library_before_a_faster_peculiar_one() {
        let mut peculiar = row(Measurement::Rate, 8);
        (peculiar.threads, peculiar.median_ns) = ("one".into(), 1.0);
        let runs = run(vec![row(Measurement::Rate, 8), peculiar]);
        assert_eq!(lines(&runs)[0].rate.unwrap().threads, "many");
    }

    #[test]
    fn reading_what_arrives_is_no_peculiarity_and_sleeping_is() {
        let (mut read, mut asleep) = (row(Measurement::PingPong, 8), row(Measurement::PingPong, 8));
        (read.touch, asleep.mode) = (true, "blocking".into());
        assert_eq!(lines(&run(vec![read, asleep]))[0].latency.unwrap().mode, "polling");
    }

    #[test]
    fn without_rows_there_is_no_table() {
        assert!(draw(&run(vec![])).is_none());
    }
}
