//! Receive memory: blocks that the interface fills from the front, one after the other.

use crate::sys::{Bound, Code, Interface, Wanted, options};
use crate::wire::{Address, Class, MESSAGES, TOKEN};
use cci_mem::memory::Memory;
use cci_mem::pages::SharedPages;
use std::sync::Arc;

/// Puts that a block takes at most.
pub(crate) const MOST_PUTS: u32 = 256;

/// The name of a block in events: in the upper half of the word of its memory descriptor.
pub(crate) const BLOCK: u64 = 2;

struct Block {
    memory: Memory,
    bound: Option<Bound>,
}

/// The blocks of one class.
pub(crate) struct Blocks {
    class: Class,
    number: u32,
    queue: u32,
    /// Bytes of a message at most, and how many of these a block takes.
    longest: u64,
    messages: u64,
    blocks: Vec<Block>,
}

impl Blocks {
    pub(crate) fn new(class: Class, (number, queue): (u32, u32), longest: u32, messages: u64) -> Self {
        Self { class, number, queue, longest: longest.into(), messages, blocks: Vec::new() }
    }

    /// Messages of any length that a block takes.
    pub(crate) fn messages_each(&self) -> usize {
        self.messages as usize
    }

    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Adds a block at the end.
    pub(crate) fn grow(&mut self, interface: &Interface) -> Result<(), Code> {
        let len = (self.longest * self.messages) as usize;
        let pages = SharedPages::new(len).map_err(|_| Code::NO_SPACE)?;
        let memory = Memory::of_pages(&Arc::new(pages), len);
        let bound = self.attach(interface, self.blocks.len(), memory.clone())?;
        self.blocks.push(Block { memory, bound: Some(bound) });
        Ok(())
    }

    fn attach(&self, interface: &Interface, index: usize, memory: Memory) -> Result<Bound, Code> {
        let wanted = Wanted {
            options: options::PUT | options::MAX_SIZE | options::NO_START,
            threshold: Some(MOST_PUTS),
            max_size: self.longest,
            user: BLOCK << 32 | (self.class as u64) << 24 | index as u64,
            queue: Some(self.queue),
        };
        let bits = Address::bits(self.number, self.class, 0);
        interface.attach((MESSAGES, bits, TOKEN), memory, &wanted, true)
    }

    /// Copies a message out of the block that this word names. False: a block has no such bytes.
    pub(crate) fn copy_out(&self, user: u64, offset: u64, to: &mut [u8]) -> bool {
        self.blocks.get((user & 0xff_ffff) as usize).is_some_and(|block| block.memory.copy_out(offset, to))
    }

    /// A block is full, and its messages were copied out: attaches it again. False: the interface
    /// has no room, and `mend` must follow.
    pub(crate) fn refill(&mut self, interface: &Interface, user: u64) -> bool {
        let index = (user & 0xff_ffff) as usize;
        let Some(block) = self.blocks.get_mut(index) else { return true };
        // It has unlinked itself: this frees the handle alone.
        if let Some(bound) = block.bound.take() {
            block.bound = interface.release(bound).err();
        }
        self.mend(interface)
    }

    /// Attaches blocks that are not. False: one is left.
    pub(crate) fn mend(&mut self, interface: &Interface) -> bool {
        for index in 0..self.blocks.len() {
            if self.blocks[index].bound.is_none() {
                let Ok(bound) = self.attach(interface, index, self.blocks[index].memory.clone()) else { return false };
                self.blocks[index].bound = Some(bound);
            }
        }
        true
    }

    /// Unlinks all. What comes then is dropped by the interface.
    pub(crate) fn end(&mut self, interface: &Interface, left: &mut Vec<Bound>) {
        let bound = self.blocks.drain(..).filter_map(|block| block.bound);
        left.extend(bound.filter_map(|bound| interface.release(bound).err()));
    }
}
