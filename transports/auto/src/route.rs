//! Which ways of this endpoint, and which addresses of the other one, lead to a URI
//! (`docs/design/auto.md`, Connecting).

use crate::auto::Auto;
use crate::candidate::{Address, Candidate, Route, no_address_like};
use crate::host::is_guessed;
use crate::port;
use crate::uri::{SCHEME, Uri, is_loopback};
use cci_proto::ConnectError;
use cci_transport::Scope;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::net::SocketAddr;

impl Auto {
    /// What leads to the endpoint with this URI.
    pub(crate) fn ways_to(&self, text: &str) -> Result<Route, ConnectError> {
        if !text.starts_with(SCHEME) {
            let (scheme, rest) = text.split_once("://").unwrap_or_default();
            let address = Address::of(rest.to_owned());
            // Where none suits, the first one says why.
            let first = || self.ways_of(scheme).next();
            let way = self.way_for(scheme, &address).or_else(first).ok_or(ConnectError::BadUri)?;
            let candidate = Candidate { way, uri: text.to_owned(), label: scheme.to_owned(), target: None };
            return Ok(Route { left: VecDeque::from([candidate]), reasons: Vec::new(), target: None, place: None });
        }
        let Some(uri) = Uri::parse(text) else {
            let at = text.strip_prefix(SCHEME).and_then(port::parse).ok_or(ConnectError::BadUri)?;
            return self.ways_to_port(&at);
        };
        let mut route = Route::new(self.down.clone(), uri.identity);
        route.place =
            uri.ways.iter().find_map(|(_, rest)| rest.parse().ok()).map(|at: SocketAddr| format!("{SCHEME}{at}"));
        for number in self.numbers() {
            let name = self.name(number);
            // Each transport once, at the place of its first way.
            if self.ways_of(name).next() == Some(number) {
                self.candidates(name, &uri, &mut route);
            }
        }
        Ok(route)
    }

    /// Adds what leads to an endpoint by the ways of a transport, the nearest address first.
    fn candidates(&self, name: &'static str, uri: &Uri<'_>, route: &mut Route) {
        let mut addresses: Vec<_> = uri.rests(name).into_iter().map(Address::of).collect();
        if addresses.is_empty() {
            return route.reasons.push(format!("{name}: the endpoint there has no such way"));
        }
        let (has_several, is_here) = (addresses.len() > 1, uri.place.host == self.place.host);
        let label = |rest: &str| if has_several { format!("{name} {rest}") } else { name.to_owned() };
        if has_several || self.ways_of(name).nth(1).is_some() {
            addresses.retain_mut(|address| match address.find_source() {
                Err(error) if has_several => {
                    let (label, ip) = (label(&address.rest), address.ip.map_or(String::new(), |ip| ip.to_string()));
                    route.reasons.push(format!(
                        "{label}: the system has no way to {ip} ({error}); check the network, and the URI"
                    ));
                    false
                }
                // Networks with the same numbers, such as those of containers: this one is not the
                // peer's.
                Ok(()) if has_several && !is_here && address.source.is_some() && address.source == address.ip => {
                    route.reasons.push(format!("{}: it is an address of this host too", label(&address.rest)));
                    false
                }
                _ => true,
            });
        }
        let family = addresses.first().and_then(|address| address.ip).is_some_and(|ip| ip.is_ipv4());
        let is_other = |address: &Address| address.ip.is_some_and(|ip| ip.is_ipv4()) != family;
        addresses.sort_by_key(|address| (is_other(address), Reverse(address.nearness())));
        for address in addresses {
            let rest = &address.rest;
            match self.may_try(name, &address, uri) {
                Ok(way) => {
                    let uri = format!("{name}://{rest}");
                    route.left.push_back(Candidate { way, uri, label: label(rest), target: None });
                }
                Err(why) => route.reasons.push(format!("{}: {why}", label(rest))),
            }
        }
    }

    /// The way by which an address of an endpoint is tried, or why there is none.
    fn may_try(&self, name: &str, address: &Address, uri: &Uri<'_>) -> Result<u8, String> {
        let rest = &address.rest;
        let number = self.way_for(name, address).ok_or_else(|| no_address_like(rest))?;
        let (way, is_here) = (&self.ways[usize::from(number)], uri.place.host == self.place.host);
        let why = if way.scope < Scope::Network && !is_here {
            "the endpoint is on another host".into()
        } else if way.scope < Scope::Network && uri.place.user != self.place.user {
            "the endpoint is another user's".into()
        } else if !is_here && is_loopback(rest) {
            let advice =
                if is_guessed() { "; mount /proc, by which endpoints of one host know each other" } else { "" };
            format!("{rest} is an address of another host itself{advice}")
        } else if !is_here && way.stays_here() {
            "its socket is local; give it a service, or listen = network".into()
        } else {
            return Ok(number);
        };
        Err(why)
    }

    /// The ways of a transport.
    pub(crate) fn ways_of(&self, name: &str) -> impl Iterator<Item = u8> {
        self.numbers().filter(move |number| self.name(*number) == name)
    }

    /// The way of a transport from which frames leave for an address: the one at the address that
    /// the routes choose, else one of the same family, else one that sends from any.
    pub(crate) fn way_for(&self, name: &str, to: &Address) -> Option<u8> {
        let ip_of = |number: u8| self.ways[usize::from(number)].address().map(|at| at.ip());
        let is_source = |number: &u8| to.source.is_some() && ip_of(*number) == to.source;
        let is_of_family = |number: &u8| match (ip_of(*number), to.ip) {
            (Some(own), Some(to)) => own.is_ipv4() == to.is_ipv4(),
            _ => true,
        };
        let sends_from_any = |number: &u8| !self.ways[usize::from(*number)].is_link;
        let same = self.ways_of(name).find(is_source).or_else(|| self.ways_of(name).find(is_of_family));
        same.or_else(|| self.ways_of(name).find(sends_from_any))
    }

    /// What leads to a group: `cci://ADDRESS:PORT` by a link, since no other way has groups, or the
    /// URI of one way.
    pub(crate) fn ways_to_group(&self, text: &str) -> Result<Route, ConnectError> {
        let Some(group) = text.strip_prefix(SCHEME) else { return self.ways_to(text) };
        if Uri::parse(text).is_some() {
            return Err(ConnectError::NotImplemented);
        }
        let links = self.numbers().filter(|way| self.ways[usize::from(*way)].is_link);
        let left: VecDeque<_> = links
            .map(|way| {
                let label = self.name(way).to_owned();
                Candidate { way, uri: format!("{label}://{group}"), label, target: None }
            })
            .collect();
        if left.is_empty() {
            return Err(ConnectError::NotImplemented);
        }
        Ok(Route { left, reasons: Vec::new(), target: None, place: None })
    }
}
