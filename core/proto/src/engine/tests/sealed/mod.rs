//! Sealed connections with a toy cipher: what an attacker on the path may try, each a test.

mod frames;
mod handshake;
mod keys;
mod policy;
mod worlds;

use super::*;
use crate::engine::{Security, ToySealer};
use crate::wire::{self, Kind, TAG};

const SECRET: u64 = 0x5EC2E7;

/// A sealer of the group for each side.
fn sealer(side: usize, security: Security) -> ToySealer {
    ToySealer::new(security, SECRET, side as u64 + 1)
}

/// A pair with these policies.
fn pair_of(securities: [Security; 2], loss: u64) -> Pair {
    let mut pair = Pair::new(loss);
    for (side, security) in securities.into_iter().enumerate() {
        pair.hosts[side].sealer = Some(sealer(side, security));
    }
    pair
}

/// A pair with a sealed connection.
fn sealed_pair(attribute: Attribute, loss: u64) -> (Pair, [Index; 2]) {
    let mut pair = pair_of([Security::Sealed; 2], loss);
    let ends = pair.connect(attribute);
    (pair, ends)
}

/// Records every frame of a side that passes.
fn capture(pair: &mut Pair, of: usize) -> std::rc::Rc<std::cell::RefCell<Vec<Vec<u8>>>> {
    let frames = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let kept = frames.clone();
    pair.filter = std::boxed::Box::new(move |side, frame| {
        if side == of {
            kept.borrow_mut().push(frame.to_vec());
        }
        true
    });
    frames
}

impl Pair {
    /// Hands a frame to a side, as the network would, from the other side's address.
    fn inject(&mut self, to: usize, frame: &[u8]) -> Result<(), wire::Malformed> {
        let now = self.now;
        self.engines[to].handle_frame(now, &ADDRESSES[1 - to], frame, false, &mut self.hosts[to])
    }

    /// Sends a message and waits for its end.
    fn deliver(&mut self, side: usize, index: Index, op: u32, bytes: &[u8]) {
        self.engines[side].send(self.now, index, &[bytes], Op(op), false).expect("send");
        self.run(|pair| pair.hosts[side].ended.contains_key(&op));
        assert_eq!(self.hosts[side].ended[&op], Ok(()));
    }

    fn protection(&self, side: usize, index: Index) -> Protection {
        self.engines[side].report(index).protection
    }

    fn is_sealed(&self, side: usize, index: Index) -> bool {
        self.protection(side, index) != Protection::Plain
    }
}

/// A frame of this kind, with a right check, as somebody on the path writes it.
fn clear(kind: Kind, to: u64, from: u64, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; wire::HEADER];
    Header { kind, to, from, number: 7, time: 0 }.emit(&mut frame);
    frame.extend_from_slice(body);
    wire::seal(&mut frame, 0, |check| check);
    frame
}
