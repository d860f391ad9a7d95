//! The readers of names, for the fuzz targets. No part of the interface.

use crate::directory::{Directory, Table};
use crate::hello::{Hello, Welcome};
use crate::hosts::{HostNumbers, Hosts, host_of};
use crate::name::Name;
use std::net::Ipv4Addr;

/// What two peers tell each other: what is read is written again as it came.
pub fn hello(bytes: &[u8]) {
    if let Some(hello) = Hello::parse(bytes) {
        assert_eq!(hello.emit(), bytes);
    }
    if let Some(welcome) = Welcome::parse(bytes) {
        assert_eq!(welcome.emit(), bytes);
    }
    if let Some((name, rest)) = Name::parse(bytes) {
        let mut again = Vec::new();
        name.emit(&mut again);
        assert_eq!([&again[..], rest].concat(), bytes);
    }
}

/// Names, tables of names, and URIs that rules are made of.
pub fn names(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(name) = text.parse::<Name>() {
        assert_eq!(name.to_string().parse().as_ref(), Ok(&name));
    }
    if let Ok(mut table) = Table::parse(&text) {
        let _ = table.find(&Name::Rank(0));
    }
    let host = host_of(&text);
    let numbers = HostNumbers::new(10_240, 12_288, 7);
    for (number, host) in [(0, host), (7, Ipv4Addr::LOCALHOST)] {
        let Some(mut hosts) = Hosts::of(numbers, &text, host, number) else { continue };
        let _ = hosts.reaches(host);
        for word in [0, 7, u64::from(host.to_bits()) << 32 | 9, u64::MAX] {
            let _ = hosts.find(&Name::Number(word));
        }
    }
}
