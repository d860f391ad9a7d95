//! The exchange of frames that opens or closes a connection.

use super::conn::Conn;
use super::other_addresses::OtherAddresses;
use crate::engine::api::PathMtu;
use crate::{Address, Time};
use alloc::boxed::Box;

/// Time after which the first frame of a handshake is retransmitted, microseconds. Doubled each
/// time, up to the longest.
const FIRST_REPEAT: u64 = 20_000;
const LONGEST_REPEAT: u64 = 1_000_000;
/// Time after which an event for which the host had no room is reported again, microseconds.
const HOST_AGAIN: u64 = 10_000;
/// RETRYs that are answered at once.
pub(crate) const MOST_RETRIES: u32 = 4;
/// Cookies that a client has shown before the one that it shows now, and by which it knows an
/// answer: as many as it shows at once.
const EARLIER: usize = MOST_RETRIES as usize;

/// What a connection keeps while it is being opened or closed: the frame that it repeats until the
/// peer answers.
pub(crate) struct Exchange {
    /// Payload of a CONNECT, or the body of a CLOSE.
    pub(crate) payload: Box<[u8]>,
    /// The share of a sealed handshake, empty until it is made.
    pub(crate) share: Box<[u8]>,
    /// Shares of the peer that were examined since the last frame was sent.
    pub(crate) examined: u32,
    /// Somebody has answered that the sides do not agree on security.
    pub(crate) is_security: bool,
    pub(crate) token: u64,
    pub(crate) cookie: u64,
    pub(crate) cookie_time: u32,
    /// Those of a client's CONNECTs that are on their way perhaps, the newest first; 0 = none.
    pub(crate) earlier: [u64; EARLIER],
    pub(crate) since: Time,
    pub(crate) deadline: Time,
    pub(crate) next_at: Time,
    /// The longest time until a frame is repeated, microseconds.
    pub(crate) longest: u64,
    pub(crate) tries: u32,
    /// Whether a frame is due now.
    pub(crate) due: bool,
    /// Whether it was redirected and the host has not called `follow` yet.
    pub(crate) elsewhere: bool,
    pub(crate) first_seq: u32,
    /// RETRYs that were answered at once.
    pub(crate) retries: u32,
    /// Where else a client may ask, until it has a cookie.
    others: OtherAddresses,
    /// Whether the client has confirmed while the host has no room for the event.
    pub(crate) is_confirmed: bool,
}

impl Exchange {
    pub(crate) fn new(now: Time, patience: u64) -> Self {
        Self {
            payload: Box::default(),
            share: Box::default(),
            examined: 0,
            is_security: false,
            token: 0,
            cookie: 0,
            cookie_time: 0,
            earlier: [0; EARLIER],
            since: now,
            deadline: now.plus_micros(patience),
            next_at: now,
            longest: LONGEST_REPEAT,
            tries: 0,
            due: true,
            elsewhere: false,
            first_seq: 0,
            retries: 0,
            others: OtherAddresses::default(),
            is_confirmed: false,
        }
    }

    /// That of a request that its program has not answered: it waits for nothing else.
    pub(crate) fn of_request(cookie: u64) -> Self {
        let mut exchange = Self::new(Time(u64::MAX), 0);
        exchange.cookie = cookie;
        exchange
    }

    /// The client has asked again, with this cookie: the answer shows it, and an ACCEPT is to be
    /// sent now.
    pub(crate) fn on_request(&mut self, cookie: u64) {
        self.due = true;
        if cookie != 0 {
            self.cookie = cookie;
        }
    }

    /// Adds an address of the host that a client asks.
    pub(crate) fn add_address(&mut self, conn: &Conn, to: Address, path: PathMtu) {
        self.others.add(conn, to, path);
    }

    /// Whether a client has asked at this address before that of its connection, and nobody has
    /// answered.
    pub(crate) fn may_answer(&self, from: &Address) -> bool {
        self.others.may_answer(from)
    }

    /// A client's CONNECT is about to be sent: chooses its address.
    pub(crate) fn choose_address(&mut self, conn: &mut Conn) {
        self.others.take_turn(conn);
    }

    /// Nobody listens at this address of a client's host. False: no other is left.
    pub(crate) fn leave_address(&mut self, conn: &mut Conn, to: &Address) -> bool {
        let left = self.others.leave(conn, to);
        self.due |= left == Some(true);
        left.is_some()
    }

    /// The server at this address has sent a client a cookie. One that was sent before may have
    /// reached it meanwhile: its answer shows that.
    pub(crate) fn on_cookie(&mut self, conn: &mut Conn, from: &Address, (cookie, time): (u64, u32)) {
        self.others.settle(conn, from);
        if cookie != self.cookie {
            self.earlier.rotate_right(1);
            self.earlier[0] = self.cookie;
        }
        (self.cookie, self.cookie_time) = (cookie, time);
    }

    /// Whether an answer with this cookie is one to a CONNECT of this client.
    pub(crate) fn has_shown(&self, cookie: u64) -> bool {
        cookie == self.cookie || cookie != 0 && self.earlier.contains(&cookie)
    }

    /// The client goes on elsewhere, with this token.
    pub(crate) fn on_redirected(&mut self, now: Time, token: u64) {
        (self.share, self.is_security) = (Box::default(), false);
        (self.cookie, self.cookie_time, self.earlier) = (0, 0, [0; EARLIER]);
        (self.token, self.elsewhere, self.due, self.next_at) = (token, false, true, now);
        (self.tries, self.retries, self.others) = (0, 0, OtherAddresses::default());
    }

    /// When it began.
    pub(crate) fn since(&self) -> Time {
        self.since
    }

    /// Returns its next deadline.
    pub(crate) fn next_at(&self) -> Time {
        if self.elsewhere { self.deadline } else { self.next_at.min(self.deadline) }
    }

    /// The client has confirmed; the host is to be asked again.
    pub(crate) fn on_confirmed(&mut self, now: Time) {
        (self.is_confirmed, self.due, self.deadline) = (true, false, Time(u64::MAX));
        self.next_at = now.plus_micros(HOST_AGAIN);
    }

    pub(crate) fn on_sent(&mut self, now: Time) {
        self.due = false;
        self.examined = 0;
        // Each of several addresses is asked about as often as a single one.
        let round = self.tries / (1 + self.others.len());
        self.next_at = now.plus_micros((FIRST_REPEAT << round.min(16)).min(self.longest));
        self.tries += 1;
    }
}
