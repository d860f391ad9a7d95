//! Memory of the kernel, as far as it shows it: objects and buffers of the whole machine, page
//! tables of this process.

use cci_report::{UserError, while_doing};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

/// Where it is read.
const OBJECTS: &str = "/proc/slabinfo";
const BUFFERS: &str = "/proc/net/sockstat";
const TABLES: &str = "/proc/self/status";

/// What the kernel had when it was read. Reading again takes no memory, which would be measured
/// with what the program takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Kernel {
    /// Lines of objects.
    objects: String,
    /// Bytes in buffers of the sockets of this network name space.
    buffers: f64,
    /// Bytes of this process's page tables.
    tables: f64,
    /// Where what is used at once is read.
    text: String,
}

impl Kernel {
    /// Reads what the kernel has now.
    ///
    /// # Errors
    ///
    /// It does not show its objects, which only root may read.
    pub(crate) fn read(&mut self) -> Result<(), UserError> {
        read(OBJECTS, &mut self.objects)?;
        read(BUFFERS, &mut self.text)?;
        let page = f64::from(u32::try_from(rustix::param::page_size()).unwrap_or(4096));
        self.buffers = page * pages(&self.text);
        read(TABLES, &mut self.text)?;
        self.tables = tables(&self.text).unwrap_or(0.0);
        Ok(())
    }
}

/// Reads a file into text that keeps its memory.
fn read(path: &str, text: &mut String) -> Result<(), UserError> {
    text.clear();
    let read = fs::File::open(path).and_then(|mut file| file.read_to_string(text));
    read.map(drop).map_err(while_doing(&format!("cannot read {path}")))
}

/// The lines of the kernel's caches: name, objects in use, all objects, bytes of one.
fn objects(text: &str) -> impl Iterator<Item = (&str, f64, f64)> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, used) = (words.next()?, words.next()?.parse().ok()?);
        Some((name, used, words.nth(1)?.parse().ok()?))
    })
}

/// Pages in buffers of sockets: the number after each `mem`.
fn pages(text: &str) -> f64 {
    let words: Vec<_> = text.split_whitespace().collect();
    words.windows(2).filter(|pair| pair[0] == "mem").filter_map(|pair| pair[1].parse::<f64>().ok()).sum()
}

fn tables(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("VmPTE:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<f64>().ok().map(|kilobytes| 1024.0 * kilobytes)
}

/// What the kernel took for connections whose both ends are on this machine, which came in chunks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Growth {
    /// By the name of the objects: bytes of one, and how many came with a connection of each chunk.
    objects: BTreeMap<String, (f64, Vec<f64>)>,
    /// Bytes in buffers that came with a connection of each chunk.
    buffers: Vec<f64>,
    tables: f64,
}

/// A smaller chunk drowns in what other programs do meanwhile.
const CHUNK: u32 = 100;

impl Growth {
    /// Adds what came with so many connections between two looks.
    pub(crate) fn add(&mut self, connections: u32, before: &Kernel, after: &Kernel) {
        self.tables += after.tables - before.tables;
        if connections < CHUNK {
            return;
        }
        let each = |added: f64| added / f64::from(connections);
        let earlier: BTreeMap<_, _> = objects(&before.objects).map(|(name, used, _)| (name, used)).collect();
        for (name, used, bytes) in objects(&after.objects) {
            let added = each(used - earlier.get(name).copied().unwrap_or(0.0));
            match self.objects.get_mut(name) {
                Some((of_one, chunks)) => {
                    *of_one = bytes;
                    chunks.push(added);
                }
                None => drop(self.objects.insert(name.to_owned(), (bytes, vec![added]))),
            }
        }
        self.buffers.push(each(after.buffers - before.buffers));
    }

    /// Bytes of one end of so many connections. Every connection has a whole number of objects of
    /// each kind, so the rounded lower quartile over the chunks leaves out what other programs add.
    pub(crate) fn of_one_end(&self, connections: u32) -> f64 {
        let of_kind = |(bytes, chunks): &(f64, Vec<f64>)| bytes * lower_quartile(chunks).round();
        let buffers = lower_quartile(&self.buffers);
        let both: f64 = self.objects.values().map(of_kind).sum::<f64>() + buffers;
        both / 2.0 * f64::from(connections) + self.tables.max(0.0)
    }
}

/// The figure that three quarters are above; never less than nothing.
fn lower_quartile(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 4).copied().unwrap_or(0.0).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLABS: &str = "slabinfo - version: 2.1\n\
        # name <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables 0 0 0\n\
        TCP 20 26 2368 13 8 : tunables 0 0 0 : slabdata 2 2 0\nfilp 500 512 192 21 1 : tunables 0 0 0\n";

    #[test]
    fn the_kernels_lines_are_read() {
        assert!(objects(SLABS).eq([("TCP", 20.0, 2368.0), ("filp", 500.0, 192.0)]));
        assert!((pages("TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 79\nUDP: inuse 0 mem 2\n") - 81.0).abs() < 1e-9);
        assert_eq!(tables("VmPTE:\t      44 kB\n"), Some(45_056.0));
        assert_eq!(tables(""), None);
    }

    #[test]
    fn an_end_has_half_of_the_objects_and_what_others_added_is_left_out() {
        let kernel = |tcp: f64, other: f64| Kernel {
            objects: format!("TCP {tcp} 0 2000 \ndentry {other} 0 192\n"),
            buffers: 10.0 * tcp,
            tables: 4096.0 * tcp,
            text: String::new(),
        };
        let mut growth = Growth::default();
        growth.add(10, &kernel(0.0, 5000.0), &kernel(10.0, 9000.0));
        growth.add(500, &kernel(10.0, 5000.0), &kernel(1010.0, 9000.0));
        growth.add(500, &kernel(1010.0, 9000.0), &kernel(2012.0, 9100.0));
        growth.add(500, &kernel(2012.0, 9000.0), &kernel(3012.0, 9500.0));
        // Two sockets for a connection, 20 bytes in buffers, and what the tables of this end took.
        let expected = (4000.0 + 20.0) / 2.0 * 1500.0 + 4096.0 * 3012.0;
        assert!((growth.of_one_end(1500) - expected).abs() < 1e-6, "{growth:?}");
        assert!(Growth::default().of_one_end(1).abs() < 1e-9);
    }
}
