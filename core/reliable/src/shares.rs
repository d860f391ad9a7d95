//! Shares of the receive slots by fairness class. Peers are counted by endpoint and by network,
//! each exactly; strangers together.
//!
//! While slots are plenty everybody takes what there is. The last sixteenth is for those below an
//! equal share, of the network first and of the endpoint in it then. Of that, and of a quarter at
//! most, one slot is left for each endpoint that has none: so no peer stands still because of
//! others.

use cci_proto::Address;
use std::collections::BTreeMap;

/// Who a slot counts for: a peer's place here, or one of these.
pub(super) const STRANGER: u32 = (1 << 30) - 2;
/// Nobody: a connection that is not open.
pub(super) const NOBODY: u32 = (1 << 30) - 1;
/// Set in a connection's class: it is paused, and takes no slot.
pub(super) const PAUSED: u32 = 1 << 31;
/// Endpoints with fewer slots have no reserve: their programs count on each of them.
const FEW: usize = 16;

/// A peer's endpoint.
struct Peer {
    address: Address,
    /// Its network's place.
    network: u32,
    /// Slots that it has.
    held: u32,
    /// Connections that are open.
    connections: u32,
}

/// The peers of one network.
struct Network {
    key: u64,
    held: u32,
    /// Those with a connection, and all that are known.
    active: u32,
    known: u32,
}

/// Places of a list that are used again.
struct Places<T> {
    entries: Vec<T>,
    free: Vec<u32>,
}

impl<T> Places<T> {
    const fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }

    fn take(&mut self, entry: T) -> u32 {
        if let Some(at) = self.free.pop() {
            self.entries[at as usize] = entry;
            return at;
        }
        self.entries.push(entry);
        u32::try_from(self.entries.len() - 1).unwrap_or(NOBODY)
    }
}

/// The table.
pub(super) struct Shares {
    peers: Places<Peer>,
    networks: Places<Network>,
    by_address: BTreeMap<Address, u32>,
    by_network: BTreeMap<u64, u32>,
    /// Peers with a connection, those of them without a slot, and networks with such peers.
    active: u32,
    idle: u32,
    active_networks: u32,
    /// Slots of strangers.
    strangers: u32,
}

impl Shares {
    pub(super) const fn new() -> Self {
        Self {
            peers: Places::new(),
            networks: Places::new(),
            by_address: BTreeMap::new(),
            by_network: BTreeMap::new(),
            active: 0,
            idle: 0,
            active_networks: 0,
            strangers: 0,
        }
    }

    /// A connection to this peer is open: the peer's place.
    pub(super) fn attach(&mut self, address: &Address) -> u32 {
        let at = match self.by_address.get(address) {
            Some(at) => *at,
            None => self.enter(address),
        };
        let peer = &mut self.peers.entries[at as usize];
        peer.connections += 1;
        if peer.connections == 1 {
            self.active += 1;
            self.idle += u32::from(peer.held == 0);
            let network = &mut self.networks.entries[peer.network as usize];
            network.active += 1;
            self.active_networks += u32::from(network.active == 1);
        }
        at
    }

    fn enter(&mut self, address: &Address) -> u32 {
        let key = address.network();
        let network = match self.by_network.get(&key) {
            Some(at) => *at,
            None => {
                let at = self.networks.take(Network { key, held: 0, active: 0, known: 0 });
                self.by_network.insert(key, at);
                at
            }
        };
        self.networks.entries[network as usize].known += 1;
        let at = self.peers.take(Peer { address: *address, network, held: 0, connections: 0 });
        self.by_address.insert(*address, at);
        at
    }

    /// A connection to the peer at this place is open no more.
    pub(super) fn detach(&mut self, at: u32) {
        let Some(peer) = self.peers.entries.get_mut(at as usize) else { return };
        peer.connections -= 1;
        if peer.connections > 0 {
            return;
        }
        self.active -= 1;
        let network = &mut self.networks.entries[peer.network as usize];
        network.active -= 1;
        self.active_networks -= u32::from(network.active == 0);
        if peer.held == 0 {
            self.idle -= 1;
            self.forget(at);
        }
    }

    /// A peer without connection and slot.
    #[cold]
    fn forget(&mut self, at: u32) {
        let Peer { address, network, .. } = self.peers.entries[at as usize];
        self.by_address.remove(&address);
        self.peers.free.push(at);
        let of = &mut self.networks.entries[network as usize];
        of.known -= 1;
        if of.known == 0 {
            self.by_network.remove(&of.key);
            self.networks.free.push(network);
        }
    }

    /// A slot was taken.
    #[inline]
    pub(super) fn hold(&mut self, to: u32) {
        if let Some(peer) = self.peers.entries.get_mut(to as usize) {
            self.idle -= u32::from(peer.held == 0 && peer.connections > 0);
            peer.held += 1;
            self.networks.entries[peer.network as usize].held += 1;
        } else if to == STRANGER {
            self.strangers += 1;
        }
    }

    /// A slot was given back.
    #[inline]
    pub(super) fn give_back(&mut self, of: u32) {
        if let Some(peer) = self.peers.entries.get_mut(of as usize) {
            peer.held -= 1;
            self.networks.entries[peer.network as usize].held -= 1;
            if peer.held == 0 {
                if peer.connections > 0 {
                    self.idle += 1;
                } else {
                    self.forget(of);
                }
            }
        } else if of == STRANGER {
            self.strangers -= 1;
        }
    }

    /// Slots that stay for peers which have none.
    #[inline]
    fn kept(&self, limit: usize) -> usize {
        (self.idle as usize).min(limit / 4)
    }

    /// Slots, of `limit`, that no peer takes beyond an equal share.
    #[inline]
    pub(super) fn reserve(&self, limit: usize) -> usize {
        if self.active < 2 || limit < FEW { 0 } else { self.kept(limit).max(limit / 16) }
    }

    /// Whether one may take a slot while `free` of `limit` are free.
    #[inline]
    pub(super) fn may_take(&self, who: u32, free: usize, limit: usize) -> bool {
        if who >= STRANGER {
            return self.may_take_unnamed(who, free, limit);
        }
        self.may_take_named(who, free, limit)
    }

    #[inline(always)]
    fn may_take_named(&self, who: u32, free: usize, limit: usize) -> bool {
        // Without a reserve the pool alone decides, which also finds slots that the program has
        // returned just now.
        let reserve = self.reserve(limit);
        reserve == 0 || free > reserve || self.is_below(who, free, limit)
    }

    /// Whether a stranger may take a slot, or what belongs to no open connection. A paused
    /// connection may not.
    #[cold]
    fn may_take_unnamed(&self, who: u32, free: usize, limit: usize) -> bool {
        match who {
            STRANGER => self.may_ask(free, limit),
            NOBODY => self.may_take_named(who, free, limit),
            _ => false,
        }
    }

    /// Whether a peer is below its shares, and leaves a slot for each that has none.
    #[cold]
    fn is_below(&self, who: u32, free: usize, limit: usize) -> bool {
        let Some(peer) = self.peers.entries.get(who as usize) else { return true };
        let network = &self.networks.entries[peer.network as usize];
        let networks = u64::from(self.active_networks);
        let limit_of_all = limit as u64;
        if networks > 1 && u64::from(network.held) * networks >= limit_of_all {
            return false;
        }
        let is_below = u64::from(peer.held) * networks * u64::from(network.active) < limit_of_all;
        peer.held == 0 || is_below && free > self.kept(limit)
    }

    /// Strangers have a quarter together, and none of what stays for peers.
    #[cold]
    fn may_ask(&self, free: usize, limit: usize) -> bool {
        let kept = if limit < FEW { 0 } else { self.kept(limit) };
        (self.strangers as usize) < (limit / 4).max(1) && free > kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: u8, port: u8) -> Address {
        let mut address = Address::default();
        (address.0[0], address.0[17]) = (host, port);
        address
    }

    /// Takes slots for one until it gets none; how many there were.
    fn flood(shares: &mut Shares, who: u32, free: &mut usize, limit: usize) -> usize {
        let before = *free;
        while shares.may_take(who, *free, limit) && *free > 0 {
            shares.hold(who);
            *free -= 1;
        }
        before - *free
    }

    #[test]
    fn every_endpoint_of_one_network_has_a_slot_whatever_the_others_take() {
        let mut shares = Shares::new();
        let peers: Vec<u32> = (0..64).map(|port| shares.attach(&address(1, port))).collect();
        let (limit, mut free) = (256, 256);
        for peer in &peers {
            assert!(flood(&mut shares, *peer, &mut free, limit) > 0, "an endpoint without a slot");
        }
        assert!(flood(&mut shares, STRANGER, &mut free, limit) <= 64);
    }

    #[test]
    fn one_host_with_many_endpoints_leaves_others_their_share() {
        let mut shares = Shares::new();
        let greedy: Vec<u32> = (0..200).map(|port| shares.attach(&address(1, port))).collect();
        let modest: Vec<u32> = (2..5).map(|host| shares.attach(&address(host, 1))).collect();
        let (limit, mut free) = (4096, 4096);
        let taken: usize = greedy.iter().map(|peer| flood(&mut shares, *peer, &mut free, limit)).sum();
        assert!(taken > limit / 2, "{taken} of what nobody else wants");
        let counts: Vec<_> = modest.iter().map(|peer| flood(&mut shares, *peer, &mut free, limit)).collect();
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
        // What is given back goes to those below their share.
        shares.give_back(greedy[0]);
        free += 1;
        assert_eq!(flood(&mut shares, greedy[1], &mut free, limit), 0);
        assert_eq!(flood(&mut shares, modest[2], &mut free, limit), 1);
    }

    #[test]
    fn strangers_have_a_quarter_and_none_that_stays_for_peers() {
        let mut shares = Shares::new();
        let (limit, mut free) = (256, 256);
        assert_eq!(flood(&mut shares, STRANGER, &mut free, limit), 64);
        let peers: Vec<u32> = (0..10).map(|port| shares.attach(&address(1, port))).collect();
        let first = flood(&mut shares, peers[0], &mut free, limit);
        assert_eq!(first, 256 - 64 - 16, "up to the last sixteenth");
        (0..30).for_each(|_| shares.give_back(STRANGER));
        assert_eq!(flood(&mut shares, STRANGER, &mut free, limit), 7, "nine peers have none");
    }

    #[test]
    fn what_is_gone_is_forgotten_when_its_slots_are_back() {
        let mut shares = Shares::new();
        let (one, two) = (shares.attach(&address(1, 1)), shares.attach(&address(1, 2)));
        assert_eq!(shares.attach(&address(1, 1)), one);
        shares.hold(one);
        shares.detach(one);
        shares.detach(one);
        assert_eq!((shares.active, shares.idle, shares.by_address.len()), (1, 1, 2));
        shares.give_back(one);
        shares.detach(two);
        assert_eq!((shares.active, shares.idle, shares.active_networks), (0, 0, 0));
        assert!(shares.by_address.is_empty() && shares.by_network.is_empty());
        assert_eq!(shares.attach(&address(3, 1)), two, "its place is used again");
    }

    #[test]
    fn a_paused_connection_takes_none() {
        let mut shares = Shares::new();
        let peer = shares.attach(&address(1, 1));
        assert!(shares.may_take(peer, 256, 256) && !shares.may_take(peer | PAUSED, 256, 256));
        assert!(shares.may_take(NOBODY, 256, 256) && !shares.may_take(NOBODY | PAUSED, 256, 256));
    }

    #[test]
    fn a_peer_that_is_alone_takes_all() {
        let mut shares = Shares::new();
        let peer = shares.attach(&address(1, 1));
        let mut free = 256;
        assert_eq!(flood(&mut shares, peer, &mut free, 256), 256);
        let mut few = 8;
        shares.attach(&address(1, 2));
        (0..256).for_each(|_| shares.give_back(peer));
        assert_eq!(flood(&mut shares, peer, &mut few, 8), 8, "of few each counts");
    }
}
