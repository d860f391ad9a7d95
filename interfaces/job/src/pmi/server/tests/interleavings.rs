//! Random jobs against a plain model: what each rank is answered, whatever the order.

use super::super::{ManagerEvent, ProcessManager, Seat};
use std::collections::BTreeMap;

/// What a model of a job keeps: lists, and no bounds.
#[derive(Default)]
struct Model {
    put: Vec<(String, String)>,
    seen: BTreeMap<String, String>,
    names: BTreeMap<String, (u32, String)>,
    in_barrier: Vec<u32>,
    gone: Vec<u32>,
}

impl Model {
    /// The answers to a command: to whom, and the beginning of each.
    fn ask(&mut self, size: u32, rank: u32, text: &str) -> Vec<(u32, String)> {
        let words: Vec<&str> = text.split(' ').collect();
        let value = |at: usize| words[at].split_once('=').expect("a word").1.to_owned();
        let answer = match words[0] {
            "cmd=put" => {
                self.put.push((value(1), value(2)));
                "cmd=put_result rc=0".to_owned()
            }
            "cmd=get" => match self.seen.get(&value(1)) {
                Some(value) => format!("cmd=get_result rc=0 value={value}"),
                None => "cmd=get_result rc=1".into(),
            },
            "cmd=publish_name" if self.names.contains_key(&value(1)) => "cmd=publish_result rc=1".into(),
            "cmd=publish_name" => {
                self.names.insert(value(1), (rank, value(2)));
                "cmd=publish_result rc=0".into()
            }
            "cmd=unpublish_name" => match self.names.remove(&value(1)) {
                Some(_) => "cmd=unpublish_result rc=0".into(),
                None => "cmd=unpublish_result rc=1".into(),
            },
            "cmd=lookup_name" => match self.names.get(&value(1)) {
                Some((_, port)) => format!("cmd=lookup_result rc=0 port={port}"),
                None => "cmd=lookup_result rc=1".into(),
            },
            "cmd=barrier_in" => {
                self.in_barrier.push(rank);
                return self.barrier(size);
            }
            other => panic!("{other}"),
        };
        vec![(rank, answer)]
    }

    fn barrier(&mut self, size: u32) -> Vec<(u32, String)> {
        let is_missed = !self.gone.is_empty();
        if !is_missed && self.in_barrier.len() < size as usize {
            return Vec::new();
        }
        if !is_missed {
            self.seen.extend(std::mem::take(&mut self.put));
        }
        let mut out = std::mem::take(&mut self.in_barrier);
        out.sort_unstable();
        let answer = format!("cmd=barrier_out rc={}", u8::from(is_missed));
        out.into_iter().map(|rank| (rank, answer.clone())).collect()
    }

    fn end(&mut self, size: u32, rank: u32) -> Vec<(u32, String)> {
        self.gone.push(rank);
        self.in_barrier.retain(|other| *other != rank);
        self.names.retain(|_, (owner, _)| *owner != rank);
        self.barrier(size)
    }
}

fn command(random: &mut fastrand::Rng) -> String {
    let (key, value) = (random.u32(0..4), random.u32(0..1000));
    match random.u32(0..10) {
        0..3 => format!("cmd=put key=k{key} value=v{value}"),
        3..6 => format!("cmd=get key=k{key}"),
        6 => format!("cmd=publish_name service=s{key} port=p{value}"),
        7 => format!("cmd=unpublish_name service=s{key}"),
        8 => format!("cmd=lookup_name service=s{key}"),
        _ => "cmd=barrier_in".into(),
    }
}

fn answers(manager: &mut ProcessManager) -> Vec<(u32, String)> {
    let mut answers = Vec::new();
    while let Some(event) = manager.poll_event() {
        match event {
            ManagerEvent::Answer { rank, bytes } => answers.push((rank, String::from_utf8(bytes).expect("text"))),
            ManagerEvent::Report(_) => (),
            other => panic!("{other:?}"),
        }
    }
    answers
}

fn are_equal(model: &[(u32, String)], found: &[(u32, String)]) -> bool {
    let is_equal = |((rank, begin), (of, text)): (&(u32, String), &(u32, String))| {
        // Of a refusal the model has no reason.
        let text = text.trim_end_matches('\n');
        rank == of && (text == begin || text.starts_with(&format!("{begin} msg=")))
    };
    model.len() == found.len() && model.iter().zip(found).all(is_equal)
}

#[test]
fn random_jobs_are_answered_as_the_model_says() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let size = random.u32(1..6);
        let mut manager = ProcessManager::new("kvs", vec![Seat { host: 0, program: 0 }; size as usize]);
        let mut model = Model::default();
        for rank in 0..size {
            manager.handle_bytes(rank, b"cmd=init pmi_version=1 pmi_subversion=1\n");
        }
        manager.advance(|_| true);
        assert_eq!(answers(&mut manager).len(), size as usize);
        for step in 0..200 {
            let rank = random.u32(0..size);
            if model.gone.contains(&rank) || model.in_barrier.contains(&rank) {
                continue;
            }
            let (expected, what) = if random.u32(0..400) == 0 {
                manager.handle_gone(rank);
                (model.end(size, rank), "end".to_owned())
            } else {
                let text = command(&mut random);
                // It arrives in two pieces.
                let line = format!("{text}\n");
                let (one, two) = line.split_at(random.usize(0..line.len()));
                manager.handle_bytes(rank, one.as_bytes());
                manager.advance(|_| true);
                assert_eq!(manager.poll_event(), None, "seed {seed}, step {step}: a part of {text}");
                manager.handle_bytes(rank, two.as_bytes());
                manager.advance(|_| true);
                (model.ask(size, rank, &text), text)
            };
            let found = answers(&mut manager);
            assert!(are_equal(&expected, &found), "seed {seed}, step {step}, {rank} {what}: {expected:?}, {found:?}");
        }
    }
}
