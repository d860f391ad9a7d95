//! Which host each rank is on, as MPICH writes it:
//! `(vector,(first host, hosts, ranks of each),...)`.

use super::wire::LONGEST_VALUE;
use std::fmt::Write as _;

/// So many ranks on each of so many hosts, one host after the other.
struct Block {
    first: u32,
    hosts: u32,
    ranks: u32,
}

/// The hosts of all ranks. A vector that is too short for them begins anew, so that hosts which
/// come around again are written once. `None`: it is longer than a value may be.
pub(super) fn mapping(hosts: &[u32]) -> Option<String> {
    let whole = text(hosts);
    let text = if whole.len() < LONGEST_VALUE { whole } else { text(&hosts[..period(hosts)]) };
    Some(text).filter(|text| text.len() < LONGEST_VALUE)
}

fn text(hosts: &[u32]) -> String {
    let mut text = String::from("(vector");
    for Block { first, hosts, ranks } in blocks(hosts) {
        let _ = write!(text, ",({first},{hosts},{ranks})");
    }
    text.push(')');
    text
}

fn blocks(hosts: &[u32]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for run in hosts.chunk_by(|one, next| one == next) {
        let (host, count) = (run[0], u32::try_from(run.len()).unwrap_or(u32::MAX));
        match blocks.last_mut() {
            Some(last) if last.ranks == count && last.first.checked_add(last.hosts) == Some(host) => last.hosts += 1,
            _ => blocks.push(Block { first: host, hosts: 1, ranks: count }),
        }
    }
    blocks
}

/// After how many ranks the hosts come around again: the length less that of the longest proper
/// beginning which is an end too.
fn period(hosts: &[u32]) -> usize {
    let mut borders = vec![0; hosts.len()];
    for at in 1..hosts.len() {
        let mut border = borders[at - 1];
        while border > 0 && hosts[border] != hosts[at] {
            border = borders[border - 1];
        }
        borders[at] = border + usize::from(hosts[border] == hosts[at]);
    }
    hosts.len() - borders.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What MPICH reads: the vector, again and again.
    fn read(text: &str, size: usize) -> Vec<u32> {
        let inner = text.strip_prefix("(vector,(").and_then(|text| text.strip_suffix("))")).expect("a vector");
        let numbers = |block: &str| block.split(',').map(|number| number.parse().expect("a number")).collect();
        let blocks: Vec<Vec<u32>> = inner.split("),(").map(numbers).collect();
        let of_block = |block: &Vec<u32>| {
            let (first, hosts, ranks) = (block[0], block[1], block[2]);
            (first..first + hosts).flat_map(move |host| (0..ranks).map(move |_| host)).collect::<Vec<_>>()
        };
        blocks.iter().flat_map(of_block).cycle().take(size).collect()
    }

    #[test]
    fn each_rank_is_on_its_host() {
        assert_eq!(mapping(&[0; 4]).as_deref(), Some("(vector,(0,1,4))"));
        assert_eq!(mapping(&[0, 0, 1, 1, 2, 2]).as_deref(), Some("(vector,(0,3,2))"));
        assert_eq!(mapping(&[0, 0, 1, 0]).as_deref(), Some("(vector,(0,1,2),(1,1,1),(0,1,1))"));
        let mut random = fastrand::Rng::with_seed(7);
        for size in 1..200 {
            let hosts: Vec<u32> = (0..size).map(|_| random.u32(0..3)).collect();
            if let Some(text) = mapping(&hosts) {
                assert_eq!(read(&text, hosts.len()), hosts, "{text}");
            }
        }
    }

    #[test]
    fn hosts_that_come_around_again_are_written_once() {
        let around: Vec<u32> = (0..100_000).map(|rank| [0, 0, 1, 2, 1][rank % 5]).collect();
        let text = mapping(&around).expect("short");
        assert_eq!((read(&text, around.len()), text.len() < 60), (around, true), "{text}");
        let mut random = fastrand::Rng::with_seed(8);
        let without_order: Vec<u32> = (0..10_000).map(|_| random.u32(0..9)).collect();
        assert_eq!(mapping(&without_order), None, "longer than a value");
        assert_eq!([period(&[]), period(&[5]), period(&[5, 5]), period(&[5, 6, 5])], [0, 1, 1, 2]);
    }
}
