//! Messages of Myrinet Express beside CCI over it, and beside messages of other libraries that a
//! receive finds by a tag.

use super::client::{At, Client, Other};
use super::shots::Load;
use crate::methods::blocks::{self, Sample};
use crate::methods::middle;
use crate::methods::over::{Kind, Over};
use crate::peers::{Answer, Choice, PeerSelection, Program, Timeouts, parse_list, select};
use cci_report::UserError;
use std::path::Path;
use std::time::{Duration, Instant};

/// Tags of UCX and of libfabric, and the MPI of the paper's figures.
const PROGRAMS: &str = "ucx:posix,libfabric:tagged,openmpi:shm";
const MPI: &str = "openmpi";
/// Bytes of messages beside other libraries.
const TAGGED: [u64; 2] = [8, 4 << 10];
/// Bytes of messages of CCI over MX, which has no longer ones; and of RMA in their place.
const MESSAGES: [u64; 4] = [8, 64, 256, 1 << 10];
const WRITES: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Bytes of the longest message of a program.
const LONGEST: u64 = 1 << 20;

/// How a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Native {
        is_shared: bool,
    },
    Over(Kind, bool),
    Write,
    /// By the program of this number.
    Program(usize),
}

impl Way {
    fn at(self) -> At {
        match self {
            Self::Native { is_shared } => At::Mx { is_shared },
            Self::Over(_, is_shared) => At::Over { is_shared },
            Self::Write => At::Over { is_shared: false },
            Self::Program(_) => At::Program,
        }
    }
}

/// The programs that are built. `warn` gets how to build the others.
pub(super) fn programs(directory: Option<&Path>, warn: &dyn Fn(&str)) -> Result<PeerSelection, UserError> {
    let list = parse_list(PROGRAMS).map_err(UserError)?;
    let (programs, status) = select(&list, directory);
    status.notices.iter().for_each(|notice| warn(notice));
    Ok(programs)
}

/// Starts them.
pub(super) fn start(programs: &PeerSelection) -> Result<Vec<Other>, UserError> {
    let start = |name: &String| {
        let choice = Choice::named(name).ok_or_else(|| UserError(format!("no peer is named {name}")))?;
        let lost = |why: UserError| UserError(format!("the peer {name} is lost: {}", why.0));
        let (directory, processors) = (&programs.directory, programs.processors);
        let mut program = Program::start(choice, directory, processors, LONGEST, Timeouts::default()).map_err(lost)?;
        let told = program.ready(choice.peer.library).map_err(lost)?;
        Ok(Other { name: choice.peer.library, told: format!("{name}: {told}"), program })
    };
    programs.names.iter().map(start).collect()
}

impl Client {
    /// All that is beside, for so long each.
    pub(super) fn measure_beside(&mut self, time: Duration, samples: &mut Vec<Sample>) -> Result<(), UserError> {
        let numbers = |client: &Self, is_mpi: bool| -> Vec<Way> {
            let of = client.others.iter().enumerate().filter(|(_, other)| (other.name == MPI) == is_mpi);
            of.map(|(number, _)| Way::Program(number)).collect()
        };
        let (tagged, mpi) = (numbers(self, false), numbers(self, true));
        let native = Way::Native { is_shared: false };
        if !tagged.is_empty() {
            let ways = [&[native], &tagged[..]].concat();
            for bytes in TAGGED {
                self.compare(bytes, &ways, time, samples)?;
            }
        }
        if self.over.is_none() && mpi.is_empty() {
            return Ok(());
        }
        for bytes in MESSAGES.into_iter().chain(WRITES) {
            let of_over: &[Way] = match (&self.over, bytes > MESSAGES[MESSAGES.len() - 1]) {
                (None, _) => &[],
                (_, true) => &[Way::Write],
                (_, false) => &[Way::Over(Kind::Unreliable, false), Way::Over(Kind::Reliable, false)],
            };
            let ways = [&[native], of_over, &mpi[..]].concat();
            for (way, half) in ways.iter().zip(self.in_turn(bytes, &ways, time)?) {
                let half = middle(half);
                #[expect(clippy::cast_precision_loss, reason = "sizes below 2^52")]
                samples.push(self.sample("over-bandwidth", bytes, *way, bytes as f64 * 1e9 / half));
                if bytes <= MESSAGES[MESSAGES.len() - 1] {
                    samples.push(self.sample("over", bytes, *way, half));
                }
            }
        }
        if self.over.is_some() {
            let kinds = [Kind::Unreliable, Kind::Reliable].map(|kind| Way::Over(kind, true));
            let ways = [&[Way::Native { is_shared: true }], &kinds[..]].concat();
            for (way, half) in ways.iter().zip(self.in_turn(MESSAGES[0], &ways, time)?) {
                samples.push(self.sample("over-locked", MESSAGES[0], *way, middle(half)));
            }
        }
        Ok(())
    }

    /// Half a round trip by each way, and what MX takes of the time of each other one.
    fn compare(
        &mut self,
        bytes: u64,
        ways: &[Way],
        time: Duration,
        samples: &mut Vec<Sample>,
    ) -> Result<(), UserError> {
        let halves: Vec<_> = self.in_turn(bytes, ways, time)?.into_iter().map(middle).collect();
        samples.extend(ways.iter().zip(&halves).map(|(way, half)| self.sample("tagged", bytes, *way, *half)));
        let others = ways.iter().zip(&halves).skip(1);
        samples.extend(others.map(|(way, half)| self.sample("tagged-part", bytes, *way, halves[0] / half)));
        Ok(())
    }

    fn sample(&self, experiment: &str, x: u64, way: Way, value: f64) -> Sample {
        let way = match way {
            Way::Native { .. } => "mx",
            Way::Over(Kind::Unreliable, _) => "cci uu",
            Way::Over(Kind::Reliable, _) | Way::Write => "cci",
            Way::Program(number) => self.others[number].name,
        };
        Sample::new(experiment, x, way, value)
    }

    /// Nanoseconds of half a round trip of each block, by each way in turn. In place of a message
    /// that is too long for CCI over MX there is an RMA write.
    fn in_turn(&mut self, bytes: u64, ways: &[Way], time: Duration) -> Result<Vec<Vec<f64>>, UserError> {
        let mut times = blocks::in_turn(ways, time, |way, count| self.block_by(way, bytes, count))?;
        let there_and_back = ways.iter().zip(&mut times).filter(|(way, _)| **way != Way::Write);
        there_and_back.flat_map(|(_, times)| times).for_each(|ns| *ns /= 2.0);
        Ok(times)
    }

    /// So many exchanges, after some that are not timed.
    fn block_by(&mut self, way: Way, bytes: u64, count: u64) -> Result<Duration, UserError> {
        self.turn_to(way.at())?;
        if let Way::Program(number) = way {
            return match self.others[number].program.block("pingpong", bytes, count, false)? {
                Answer::Took(took) => Ok(took),
                Answer::Cannot(why) => Err(UserError(why)),
            };
        }
        self.exchange(way, bytes, count.div_ceil(10))?;
        let begin = Instant::now();
        self.exchange(way, bytes, count)?;
        Ok(begin.elapsed())
    }

    fn exchange(&mut self, way: Way, bytes: u64, count: u64) -> Result<(), UserError> {
        match way {
            Way::Native { is_shared: false } => self.side.run(Load::Echo(bytes), count),
            Way::Native { is_shared: true } => self.side.run(Load::Shared(bytes), count),
            Way::Over(kind, _) => self.end_over()?.echo(kind, bytes as usize, count),
            Way::Write => self.end_over()?.write(bytes, count).map(drop),
            Way::Program(_) => Ok(()),
        }
    }

    pub(super) fn end_over(&mut self) -> Result<&mut Over, UserError> {
        self.over.as_mut().ok_or_else(|| UserError::new("there is no end of CCI over MX"))
    }
}
