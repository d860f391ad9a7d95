//! What ranks ask, and the answers.

use super::table::Table;
use super::wire::{Command, LONGEST_KEY, LONGEST_SPACE, LONGEST_VALUE, Outcome, Reply, Wrong, fits};
use super::{MOST_WAITING, ManagerEvent, Phase, ProcessManager};
use crate::pmi::manager::Version;

/// The most bytes of an abort's reason.
const LONGEST_REASON: usize = 200;

/// The names of answers of PMI-1, which follow no rule.
const ANSWERS: [(&str, &str); 11] = [
    ("get_maxes", "maxes"),
    ("get_appnum", "appnum"),
    ("get_my_kvsname", "my_kvsname"),
    ("get_universe_size", "universe_size"),
    ("put", "put_result"),
    ("get", "get_result"),
    ("barrier_in", "barrier_out"),
    ("publish_name", "publish_result"),
    ("unpublish_name", "unpublish_result"),
    ("lookup_name", "lookup_result"),
    ("finalize", "finalize_ack"),
];

/// An answer without words.
const DONE: Outcome = Ok(Vec::new());

fn refused(why: &str) -> Outcome {
    Err(why.into())
}

fn reply(version: Version, command: &Command<'_>) -> Reply {
    let name = match version {
        Version::Two => format!("{}-response", command.name),
        Version::One => match ANSWERS.iter().find(|(name, _)| *name == command.name) {
            Some((_, answer)) => (*answer).to_owned(),
            None => format!("{}_result", command.name),
        },
    };
    let thread = command.get("thrid").filter(|_| version == Version::Two).map(str::to_owned);
    Reply { version, name, thread }
}

/// What a rank sees of a value: nothing where a word of its version cannot have it.
fn found(version: Version, value: Option<&str>) -> Outcome {
    let value = value.filter(|value| fits(version, value)).map(|value| ("value", value.to_owned()));
    match (version, value) {
        (Version::One, Some(value)) => Ok(vec![value]),
        (Version::One, None) => refused("no such key"),
        (Version::Two, Some(value)) => Ok(vec![("found", "TRUE".into()), value]),
        (Version::Two, None) => Ok(vec![("found", "FALSE".into())]),
    }
}

fn key_of<'a>(command: &Command<'a>) -> Result<&'a str, String> {
    let key = command.get("key").ok_or("no key")?;
    if key.len() < LONGEST_KEY { Ok(key) } else { Err("a key of more than 63 bytes".into()) }
}

fn value_of<'a>(command: &Command<'a>, word: &str) -> Result<&'a str, String> {
    // What one version writes, the other is to read as well.
    match command.get(word).unwrap_or_default() {
        value if value.len() >= LONGEST_VALUE => Err("a value of more than 1023 bytes".into()),
        value if !fits(Version::One, value) => Err("a value with control characters".into()),
        value => Ok(value),
    }
}

/// The status of a job that is aborted with this code: what a shell sees of it, and not 0 for
/// another one.
fn status_of(code: &str) -> u8 {
    let code: i64 = code.trim().parse().unwrap_or(1);
    let low = (code & 0xff) as u8;
    if low == 0 && code != 0 { 1 } else { low }
}

impl ProcessManager {
    /// Answers a command of a rank that has begun.
    pub(super) fn answer_command(&mut self, rank: u32, command: &Command<'_>) -> Result<(), Wrong> {
        let version = self.ranks[rank as usize].version;
        let reply = reply(version, command);
        let outcome = match command.name {
            "abort" => return self.abort(rank, command),
            "barrier_in" if version == Version::One => match command.get("group") {
                None | Some("WORLD") => return self.enter_barrier(rank, reply),
                Some(_) => refused("barriers are those of all ranks"),
            },
            "kvs-fence" if version == Version::Two => return self.enter_barrier(rank, reply),
            "info-getnodeattr" if version == Version::Two => return self.get_on_host(rank, command, reply),
            "spawn" => refused("cci run starts no processes for a program that runs"),
            _ => match version {
                Version::One => self.outcome_1(rank, command),
                Version::Two => self.outcome_2(rank, command),
            },
        };
        self.answer(rank, &reply, &outcome);
        if command.name == "finalize" {
            let of = &mut self.ranks[rank as usize];
            (of.version, of.phase) = (Version::One, Phase::New);
        }
        Ok(())
    }

    /// What PMI-1 is asked and answers at once.
    fn outcome_1(&mut self, rank: u32, command: &Command<'_>) -> Outcome {
        let seat = self.ranks[rank as usize].seat;
        match command.name {
            "get_maxes" => {
                Ok([("kvsname_max", LONGEST_SPACE), ("keylen_max", LONGEST_KEY), ("vallen_max", LONGEST_VALUE)]
                    .map(|(name, length)| (name, length.to_string()))
                    .into())
            }
            "get_appnum" => Ok(vec![("appnum", seat.program.to_string())]),
            "get_my_kvsname" => Ok(vec![("kvsname", self.space.clone())]),
            "get_universe_size" => Ok(vec![("size", self.size().to_string())]),
            "put" => self.in_space(command).and_then(|()| self.put(rank, command)),
            "get" => self.in_space(command).and_then(|()| self.get(Version::One, command)),
            "publish_name" => self.publish(rank, command, "service"),
            "unpublish_name" => self.unpublish(command, "service"),
            "lookup_name" => self.look_up(Version::One, command, "service"),
            "finalize" => DONE,
            _ => self.unknown(rank, command),
        }
    }

    /// What PMI-2 is asked and answers at once.
    fn outcome_2(&mut self, rank: u32, command: &Command<'_>) -> Outcome {
        let seat = self.ranks[rank as usize].seat;
        match command.name {
            "fullinit" => Ok(vec![
                ("pmi-version", "2".into()),
                ("pmi-subversion", "0".into()),
                ("rank", rank.to_string()),
                ("size", self.size().to_string()),
                ("appnum", seat.program.to_string()),
                ("debugged", "FALSE".into()),
                ("pmiverbose", "FALSE".into()),
            ]),
            "job-getid" => Ok(vec![("jobid", self.space.clone())]),
            "info-getjobattr" => match command.get("key") {
                Some("universeSize") => found(Version::Two, Some(&self.size().to_string())),
                _ => self.get(Version::Two, command),
            },
            "info-putnodeattr" => {
                let outcome = key_of(command).and_then(|key| {
                    self.table.put_on_host(rank, seat.host, key, value_of(command, "value")?)?;
                    DONE
                });
                self.end_waits(seat.host);
                outcome
            }
            "kvs-put" => self.put(rank, command),
            "kvs-get" => self.get(Version::Two, command),
            "name-publish" => self.publish(rank, command, "name"),
            "name-unpublish" => self.unpublish(command, "name"),
            "name-lookup" => self.look_up(Version::Two, command, "name"),
            "finalize" => DONE,
            _ => self.unknown(rank, command),
        }
    }

    /// The first such command of a rank is reported: newer MPIs may ask what is not known here.
    fn unknown(&mut self, rank: u32, command: &Command<'_>) -> Outcome {
        if !std::mem::replace(&mut self.ranks[rank as usize].was_reported, true) {
            let name: String = command.name.chars().take(64).map(|c| if c.is_control() { '?' } else { c }).collect();
            let why = format!("rank {rank} asks PMI for '{name}', which is not served; see that its MPI is MPICH");
            self.events.push_back(ManagerEvent::Report(why));
        }
        refused("unknown command")
    }

    /// A job has one space.
    fn in_space(&self, command: &Command<'_>) -> Result<(), String> {
        match command.get("kvsname") {
            Some(name) if name != self.space => Err("no such kvsname".into()),
            _ => Ok(()),
        }
    }

    fn put(&mut self, rank: u32, command: &Command<'_>) -> Outcome {
        self.table.put(rank, key_of(command)?, value_of(command, "value")?)?;
        DONE
    }

    fn get(&self, version: Version, command: &Command<'_>) -> Outcome {
        let value = match key_of(command)? {
            "PMI_process_mapping" => self.mapping.as_deref(),
            key => self.table.get(key),
        };
        found(version, value)
    }

    fn publish(&mut self, rank: u32, command: &Command<'_>, word: &str) -> Outcome {
        let name = command.get(word).ok_or("no name")?;
        self.table.publish(rank, name, value_of(command, "port")?)?;
        DONE
    }

    fn unpublish(&mut self, command: &Command<'_>, word: &str) -> Outcome {
        self.table.unpublish(command.get(word).ok_or("no name")?)?;
        DONE
    }

    fn look_up(&self, version: Version, command: &Command<'_>, word: &str) -> Outcome {
        let port = self.table.look_up(command.get(word).ok_or("no name")?).filter(|port| fits(version, port));
        Ok(vec![("port", port.ok_or("no such name")?.to_owned())])
    }

    fn abort(&mut self, rank: u32, command: &Command<'_>) -> Result<(), Wrong> {
        let status = status_of(command.get("exitcode").unwrap_or("1"));
        let mut why = command.get("message").unwrap_or_default().replace(char::is_control, " ");
        why.truncate((0..=LONGEST_REASON.min(why.len())).rev().find(|at| why.is_char_boundary(*at)).unwrap_or(0));
        self.events.push_back(ManagerEvent::Aborted { rank, status, why });
        Ok(())
    }

    /// Answers with what a rank of this host has put, or is to put.
    fn get_on_host(&mut self, rank: u32, command: &Command<'_>, reply: Reply) -> Result<(), Wrong> {
        let host = self.ranks[rank as usize].seat.host;
        let key = match key_of(command) {
            Ok(key) => key,
            Err(why) => {
                self.answer(rank, &reply, &Err(why));
                return Ok(());
            }
        };
        let waits = command.get("wait") == Some("TRUE") && self.table.get_on_host(host, key).is_none();
        if !waits {
            let outcome = on_host(&self.table, host, key);
            self.answer(rank, &reply, &outcome);
            return Ok(());
        }
        let of = &mut self.ranks[rank as usize];
        if of.waits.len() == MOST_WAITING {
            return Err("more than 64 questions that wait");
        }
        of.waits.push((key.to_owned(), reply));
        self.end_waits(host);
        Ok(())
    }

    /// Answers ranks of a host that wait for what is there now. The last rank of a host waits for
    /// nothing: nobody else puts anything there any more.
    pub(super) fn end_waits(&mut self, host: u32) {
        let here = |of: &&super::Rank| of.seat.host == host && of.phase != Phase::Gone;
        if !self.ranks.iter().any(|of| here(&of) && !of.waits.is_empty()) {
            return;
        }
        let is_alone = self.ranks.iter().filter(here).count() == 1;
        for rank in 0..self.size() {
            let of = &mut self.ranks[rank as usize];
            if of.seat.host != host || of.waits.is_empty() {
                continue;
            }
            let is_open = |key: &str| !is_alone && self.table.get_on_host(host, key).is_none();
            let (open, ended): (Vec<_>, Vec<_>) =
                std::mem::take(&mut of.waits).into_iter().partition(|(key, _)| is_open(key));
            of.waits = open;
            for (key, reply) in ended {
                let outcome = on_host(&self.table, host, &key);
                self.answer(rank, &reply, &outcome);
            }
        }
    }
}

fn on_host(table: &Table, host: u32, key: &str) -> Outcome {
    found(Version::Two, table.get_on_host(host, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_what_a_shell_sees_and_never_success_by_chance() {
        let statuses = ["0", "7", "255", "-1", "256", "512", "-256", "257", "none", "99999999999999999999"];
        assert_eq!(statuses.map(status_of), [0, 7, 255, 255, 1, 1, 1, 1, 1, 1]);
    }
}
