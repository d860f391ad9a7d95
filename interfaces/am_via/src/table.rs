//! What a mapping knows: its channels, which VI belongs to which, and what it has to report.

use crate::Core;
use crate::channel::{Channel, NONCE, Phase, ViaChannel};
use cci_am::Outcome;
use std::collections::VecDeque;

/// What the engine has not been told yet.
#[derive(Debug)]
pub(crate) enum Report {
    Ended(u64, Outcome),
    /// A client has said hello.
    Asks(ViaChannel, Vec<u8>),
    Opened(u64, ViaChannel),
    Closed(u64),
}

#[derive(Default)]
pub(crate) struct Table {
    places: Vec<Option<Channel>>,
    free: Vec<u32>,
    generations: u32,
    /// By the lower half of a VI's number: the number, and place and pipe.
    vis: Vec<(u32, u32, usize)>,
    pub(crate) reports: VecDeque<Report>,
    /// The pipe and the buffer of the last message, whose receive is to be posted again.
    pub(crate) unposted: Option<(ViaChannel, usize, u16)>,
    /// Channels whose VIs connect.
    pub(crate) connecting: Vec<ViaChannel>,
    /// Channels of v1 with bulk data under way, which waits for room.
    pub(crate) moving: Vec<ViaChannel>,
    /// Pipes that owe credits and have found no buffer to send them.
    pub(crate) owing: Vec<(ViaChannel, usize)>,
}

impl Table {
    pub(crate) fn insert(&mut self, make: impl FnOnce(u32) -> Channel) -> ViaChannel {
        self.generations = self.generations.wrapping_add(1);
        let generation = self.generations;
        let channel = Some(make(generation));
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = channel;
                place
            }
            None => {
                self.places.push(channel);
                (self.places.len() - 1) as u32
            }
        };
        ViaChannel { place, generation }
    }

    #[inline]
    pub(crate) fn get(&mut self, at: ViaChannel) -> Option<&mut Channel> {
        self.places.get_mut(at.place as usize)?.as_mut().filter(|channel| channel.generation == at.generation)
    }

    /// Notes to which channel and pipe a VI belongs.
    pub(crate) fn enter(&mut self, vi: u32, at: ViaChannel, pipe: usize) {
        let index = (vi & 0xFFFF) as usize;
        if self.vis.len() <= index {
            self.vis.resize(index + 1, (0, 0, 0));
        }
        self.vis[index] = (vi, at.place, pipe);
    }

    /// The channel and the pipe of a VI.
    #[inline]
    pub(crate) fn of_vi(&mut self, vi: u32) -> Option<(ViaChannel, usize, &mut Channel)> {
        let &(number, place, pipe) = self.vis.get((vi & 0xFFFF) as usize)?;
        let channel = self.places.get_mut(place as usize)?.as_mut().filter(|_| number == vi)?;
        Some((ViaChannel { place, generation: channel.generation }, pipe, channel))
    }

    /// The server's channel that a client has named so.
    pub(crate) fn of_client(&mut self, nonce: [u8; NONCE]) -> Option<ViaChannel> {
        let connecting = self.connecting.clone();
        connecting.into_iter().find(|at| self.get(*at).is_some_and(|found| !found.is_client && found.nonce == nonce))
    }

    /// Gives credits of a pipe back if they are due, now or when there is a buffer.
    #[inline]
    pub(crate) fn update(&mut self, core: &Core, at: ViaChannel, pipe: usize) {
        if self.get(at).is_some_and(|channel| !channel.pipes[pipe].update(core)) && !self.owing.contains(&(at, pipe)) {
            self.owing.push((at, pipe));
        }
    }

    /// Ends a channel: it is reported as closed if the engine knows it, and `is_silent` is not set.
    /// Its descriptors come back, and then it is gone.
    pub(crate) fn close(&mut self, core: &Core, at: ViaChannel, is_silent: bool) {
        let Some(channel) = self.get(at).filter(|channel| channel.phase != Phase::Closing) else { return };
        channel.phase = Phase::Closing;
        let context = channel.context.take();
        for pipe in &channel.pipes {
            // Flushes what is posted.
            let _ = core.disconnect(pipe.vi);
        }
        let broken = channel.bulk.take().map(|bulk| bulk.broken()).unwrap_or_default();
        self.reports.extend(broken.into_iter().map(|context| Report::Ended(context, Outcome::Broken)));
        if let Some(context) = context.filter(|_| !is_silent) {
            self.reports.push_back(Report::Closed(context));
        }
        self.connecting.retain(|other| *other != at);
        self.moving.retain(|other| *other != at);
        self.owing.retain(|(other, _)| *other != at);
        self.retire(core, at);
    }

    /// Forgets a channel that closes, once all its descriptors have come back.
    pub(crate) fn retire(&mut self, core: &Core, at: ViaChannel) {
        let Some(channel) = self.get(at) else { return };
        if channel.phase == Phase::Closing && channel.pipes.iter().all(|pipe| pipe.posted == 0) {
            channel.pipes.iter().for_each(|pipe| pipe.end(core));
            self.places[at.place as usize] = None;
            self.free.push(at.place);
        }
    }
}
