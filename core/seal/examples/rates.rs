//! Measures the handshake and the cipher on one processor, each as the least of many.
//!
//! `cargo run --release -p cci-seal --example rates` prints a table. With `--no-default-features`
//! it is that of RustCrypto's cipher.

#![forbid(unsafe_code)]

use cci_mem::source::Source;
use cci_seal::noise::{Initiator, Responder};
use cci_seal::{Phase, Psk, Refused, Session, TAG, Vault, cipher_name};
use rustix::time::{ClockId, clock_gettime};
use std::io::Write;
use std::time::Duration;

/// Turns of which the least counts.
const TURNS: u32 = 300;

/// Bytes that a turn of the cipher seals and opens at least.
const LEAST: usize = 200_000;

fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The least processor time of a turn, in nanoseconds for each of its `calls`.
fn least(calls: u32, mut turn: impl FnMut() -> Result<(), Refused>) -> Result<f64, Refused> {
    let mut least = Duration::MAX;
    for _ in 0..TURNS {
        let begun = used();
        turn()?;
        least = least.min(used() - begun);
    }
    Ok(least.as_secs_f64() * 1e9 / f64::from(calls))
}

fn handshake(psk: &Psk) -> Result<[Session; 2], Refused> {
    let initiator = Initiator::begin(psk, &[b"fields of a CONNECT"], b"")?;
    let responder = Responder::read(psk, &[b"fields of a CONNECT"], initiator.message(), &mut [])?;
    let (answer, session) = responder.answer(&[b"fields of an ACCEPT"], &[7; TAG])?;
    Ok([initiator.finish(&[b"fields of an ACCEPT"], &answer, &mut [0; TAG])?, session])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let psk = Psk::fresh()?;
    writeln!(out, "{}", cipher_name())?;
    let both = least(1, || handshake(&psk).map(drop))?;
    writeln!(out, "handshake, both sides: {:.1} us", both / 1e3)?;
    let asking = Initiator::begin(&psk, &[], b"")?;
    let mut wrong = asking.message().to_vec();
    wrong[47] ^= 1;
    let refused = least(1, || {
        let _ = Responder::read(&psk, &[], &wrong, &mut []);
        Ok(())
    })?;
    writeln!(out, "a first message under another secret: {:.2} us", refused / 1e3)?;

    let [client_session, server_session] = handshake(&psk)?;
    let (mut client, mut server) = (Vault::new(8), Vault::new(8));
    client.insert(0, &client_session)?;
    server.insert(0, &server_session)?;
    let mut number = 0;
    let mut frame = vec![0; 65_000 + TAG];
    let woken = least(1, || {
        client.rest(0);
        number += 1;
        client.seal_in_place(0, number, &[0; 32], &mut frame[..8 + TAG])
    })?;
    writeln!(out, "the first frame after a rest: {woken:.0} ns")?;
    writeln!(out, "{:>7} {:>12} {:>12} {:>12}", "bytes", "seal, ns", "open, ns", "seal, GB/s")?;
    for len in [8, 64, 1_024, 1_400, 4_096, 16_384, 65_000] {
        let calls = (LEAST / len).clamp(1, 1_000) as u32;
        let text = vec![7; len];
        // Each turn has the key of a phase of its own: no key wears out.
        let sealed = least(calls, || {
            client.advance_sending(0)?;
            for _ in 0..calls {
                number += 1;
                client.seal(0, number, &[0; 32], &[Source::from(&text[..])], &mut frame[..len + TAG])?;
            }
            Ok(())
        })?;
        client.insert(0, &client_session)?;
        server.insert(0, &server_session)?;
        client.seal(0, number, &[0; 32], &[Source::from(&text[..])], &mut frame[..len + TAG])?;
        let mut opened = vec![0; len];
        let opening = least(calls, || {
            (0..calls)
                .try_for_each(|_| server.open_to(0, Phase::Present, number, &[0; 32], &frame[..len + TAG], &mut opened))
        })?;
        writeln!(out, "{len:>7} {sealed:>12.1} {opening:>12.1} {:>12.1}", len as f64 / sealed)?;
    }
    Ok(())
}
