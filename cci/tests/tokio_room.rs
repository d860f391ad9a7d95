//! A task that waits for a send buffer: it gets one, whatever others do, and what it gives up is
//! not sent.

#![cfg(feature = "tokio")]

use cci::tokio::AsyncEndpoint;
use cci::{Connect, Connection, Context, Device, Endpoint, EndpointOptions, Event, EventKind, Notify};
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context as Task, Poll, Waker};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const COUNT: u64 = 5000;

fn devices() -> Vec<Device> {
    let context = Context::new().expect("devices");
    let is_usable = |device: &&Device| device.up && ["sm", "sock", "tcp"].contains(&&*device.transport);
    context.devices().iter().filter(is_usable).cloned().collect()
}

/// Runs a future on a runtime of its own; panics after the limit.
fn run<T: Send + 'static>(make: impl Future<Output = T> + Send + 'static) -> T {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let _ = sender.send(runtime.block_on(make));
    });
    receiver.recv_timeout(LIMIT).expect("the task waits for ever, or has failed")
}

/// A reader in a thread of its own that begins to read when told, and reads slowly.
fn reader(device: &Device, begin: Receiver<()>) -> (String, std::thread::JoinHandle<Vec<u64>>) {
    let server = Endpoint::open(device, &EndpointOptions::new().recv_buffers(64)).expect("an endpoint");
    let uri = server.uri().to_owned();
    let read = std::thread::spawn(move || {
        let deadline = Instant::now() + LIMIT;
        let mut numbers = Vec::new();
        let mut has_begun = false;
        while numbers.last() != Some(&(COUNT - 1)) && Instant::now() < deadline {
            match server.wait(Some(Duration::from_millis(20))).expect("usable") {
                Some(Event::Request(request)) => {
                    request.accept(0).expect("an accept");
                    // The accept leaves in calls.
                    while !matches!(server.wait(None).expect("usable"), Some(Event::Accepted(_))) {}
                    let _ = begin.recv_timeout(LIMIT);
                    has_begun = true;
                }
                Some(Event::Received(message)) => {
                    assert!(has_begun);
                    let bytes = message.to_vec();
                    numbers.push(u64::from_ne_bytes(bytes[..8].try_into().expect("8 bytes")));
                    if numbers.len() % 500 == 0 {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
                _ => {}
            }
        }
        // The last acknowledgement leaves.
        while server.wait(Some(Duration::from_millis(50))).expect("usable").is_some() {}
        numbers
    });
    (uri, read)
}

fn client(device: &Device) -> Endpoint {
    Endpoint::open(device, &EndpointOptions::new().send_buffers(32)).expect("an endpoint")
}

async fn connected(client: &AsyncEndpoint, uri: &str) -> Connection {
    client.connect(&Connect::to(uri)).expect("a connect");
    loop {
        if let Event::Connected(connected) = client.next_event().await.expect("an event") {
            return connected.connection().expect("a connection");
        }
    }
}

fn message(number: u64) -> Vec<u8> {
    [&number.to_ne_bytes()[..], &[7; 292]].concat()
}

/// Polls a future once, with a waker that does nothing.
fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Task::from_waker(Waker::noop()))
}

/// Waits until everything has arrived: one message more has.
async fn arrival(client: &AsyncEndpoint, to: Connection) {
    const LAST: u64 = 77;
    client.send_when_room(to, &message(COUNT - 1), LAST).await.expect("a send");
    loop {
        let event = client.next_event().await.expect("an endpoint");
        if (event.kind(), event.context()) == (EventKind::Send, LAST) {
            return assert_eq!(event.outcome(), Ok(()));
        }
    }
}

/// One task alone, whose sends have no events.
#[test]
fn a_flood_against_a_slow_reader_waits_for_room() {
    for device in devices() {
        let (begin, told) = channel();
        let (uri, read) = reader(&device, told);
        let client = client(&device);
        run(async move {
            let client = AsyncEndpoint::new(client).expect("a watch");
            let to = connected(&client, &uri).await;
            let mut begin = Some(begin);
            for number in 0..COUNT {
                let bytes = message(number);
                let mut sent = pin!(client.send_when_room(to, &bytes, Notify::OnFailure(0)));
                // The reader begins once the sender has had to wait.
                if let Poll::Ready(sent) = poll_once(sent.as_mut()) {
                    sent.expect("a send");
                    continue;
                }
                drop(begin.take());
                sent.await.expect("a send");
            }
            assert!(begin.is_none(), "{}: there was always room", client.uri());
            arrival(&client, to).await;
        });
        let numbers = read.join().expect("a reader");
        assert!(numbers.iter().take(COUNT as usize).copied().eq(0..COUNT), "{}", device.transport);
    }
}

/// The ends are events, which another task takes and keeps for a while.
#[test]
fn room_comes_where_another_task_takes_the_events() {
    for device in devices() {
        let (begin, told) = channel();
        let (uri, read) = reader(&device, told);
        let client = client(&device);
        drop(begin);
        run(async move {
            let client = std::sync::Arc::new(AsyncEndpoint::new(client).expect("a watch"));
            let to = connected(&client, &uri).await;
            let taker = tokio::spawn({
                let client = std::sync::Arc::clone(&client);
                async move {
                    let mut kept = Vec::new();
                    for _ in 0..COUNT {
                        kept.push(client.next_event().await.expect("an event").detach());
                        if kept.len() >= 16 {
                            kept.clear();
                        }
                    }
                }
            });
            for number in 0..COUNT {
                client.send_when_room(to, &message(number), number).await.expect("a send");
            }
            taker.await.expect("a task");
        });
        assert!(read.join().expect("a reader").into_iter().eq(0..COUNT), "{}", device.transport);
    }
}

/// A send that is given up has sent nothing, and the next ones go on.
#[test]
fn a_send_that_is_cancelled_has_sent_nothing() {
    for device in devices() {
        let (begin, told) = channel();
        let (uri, read) = reader(&device, told);
        let client = client(&device);
        let (sent_wrong, wrong) = channel();
        run(async move {
            let client = AsyncEndpoint::new(client).expect("a watch");
            let to = connected(&client, &uri).await;
            let mut begin = Some(begin);
            let (mut cancelled, mut wrong_ones) = (0, 0);
            for number in 0..COUNT {
                let wrong = message(u64::MAX);
                let right = message(number);
                loop {
                    // Given up where it waits, time and again.
                    if cancelled < 1000 && client.send(to, &right, Notify::OnFailure(0)).is_ok() {
                        break;
                    }
                    if cancelled >= 1000 {
                        drop(begin.take());
                        client.send_when_room(to, &right, Notify::OnFailure(0)).await.expect("a send");
                        break;
                    }
                    // With a look between: progress may make room, which the next loop finds.
                    let mut given_up = pin!(client.send_when_room(to, &wrong, Notify::OnFailure(0)));
                    cancelled += 1;
                    if poll_once(given_up.as_mut()).is_ready() {
                        wrong_ones += 1;
                    }
                    tokio::task::yield_now().await;
                }
            }
            assert_eq!(cancelled, 1000);
            let _ = sent_wrong.send(wrong_ones);
            arrival(&client, to).await;
        });
        // Only those arrive that were ready: they had found room.
        let (right, others): (Vec<u64>, Vec<u64>) =
            read.join().expect("a reader").into_iter().partition(|number| *number != u64::MAX);
        assert!(right.into_iter().take(COUNT as usize).eq(0..COUNT), "{}", device.transport);
        let ready = wrong.recv().expect("a count");
        assert_eq!(others.len(), ready, "{}", device.transport);
        assert!(ready < 500, "{ready} of 1000 did not wait");
    }
}
