//! The program's handlers, and how they are called.

use crate::endpoint::{Endpoint, Of, State};
use crate::status::Status;
use crate::token::Message;
use cci_am::{Handlers, Payload, Reply, Request, Returned, Sort};
use std::ffi::{c_int, c_void};

/// A function for each number of a handler, which it knows as a constant.
macro_rules! all_numbers {
    ($function:ident) => {
        [
            $function::<0>,
            $function::<1>,
            $function::<2>,
            $function::<3>,
            $function::<4>,
            $function::<5>,
            $function::<6>,
            $function::<7>,
            $function::<8>,
            $function::<9>,
            $function::<10>,
            $function::<11>,
            $function::<12>,
            $function::<13>,
            $function::<14>,
            $function::<15>,
            $function::<16>,
            $function::<17>,
            $function::<18>,
            $function::<19>,
            $function::<20>,
            $function::<21>,
            $function::<22>,
            $function::<23>,
            $function::<24>,
            $function::<25>,
            $function::<26>,
            $function::<27>,
            $function::<28>,
            $function::<29>,
            $function::<30>,
            $function::<31>,
            $function::<32>,
            $function::<33>,
            $function::<34>,
            $function::<35>,
            $function::<36>,
            $function::<37>,
            $function::<38>,
            $function::<39>,
            $function::<40>,
            $function::<41>,
            $function::<42>,
            $function::<43>,
            $function::<44>,
            $function::<45>,
            $function::<46>,
            $function::<47>,
            $function::<48>,
            $function::<49>,
            $function::<50>,
            $function::<51>,
            $function::<52>,
            $function::<53>,
            $function::<54>,
            $function::<55>,
            $function::<56>,
            $function::<57>,
            $function::<58>,
            $function::<59>,
            $function::<60>,
            $function::<61>,
            $function::<62>,
            $function::<63>,
            $function::<64>,
            $function::<65>,
            $function::<66>,
            $function::<67>,
            $function::<68>,
            $function::<69>,
            $function::<70>,
            $function::<71>,
            $function::<72>,
            $function::<73>,
            $function::<74>,
            $function::<75>,
            $function::<76>,
            $function::<77>,
            $function::<78>,
            $function::<79>,
            $function::<80>,
            $function::<81>,
            $function::<82>,
            $function::<83>,
            $function::<84>,
            $function::<85>,
            $function::<86>,
            $function::<87>,
            $function::<88>,
            $function::<89>,
            $function::<90>,
            $function::<91>,
            $function::<92>,
            $function::<93>,
            $function::<94>,
            $function::<95>,
            $function::<96>,
            $function::<97>,
            $function::<98>,
            $function::<99>,
            $function::<100>,
            $function::<101>,
            $function::<102>,
            $function::<103>,
            $function::<104>,
            $function::<105>,
            $function::<106>,
            $function::<107>,
            $function::<108>,
            $function::<109>,
            $function::<110>,
            $function::<111>,
            $function::<112>,
            $function::<113>,
            $function::<114>,
            $function::<115>,
            $function::<116>,
            $function::<117>,
            $function::<118>,
            $function::<119>,
            $function::<120>,
            $function::<121>,
            $function::<122>,
            $function::<123>,
            $function::<124>,
            $function::<125>,
            $function::<126>,
            $function::<127>,
            $function::<128>,
            $function::<129>,
            $function::<130>,
            $function::<131>,
            $function::<132>,
            $function::<133>,
            $function::<134>,
            $function::<135>,
            $function::<136>,
            $function::<137>,
            $function::<138>,
            $function::<139>,
            $function::<140>,
            $function::<141>,
            $function::<142>,
            $function::<143>,
            $function::<144>,
            $function::<145>,
            $function::<146>,
            $function::<147>,
            $function::<148>,
            $function::<149>,
            $function::<150>,
            $function::<151>,
            $function::<152>,
            $function::<153>,
            $function::<154>,
            $function::<155>,
            $function::<156>,
            $function::<157>,
            $function::<158>,
            $function::<159>,
            $function::<160>,
            $function::<161>,
            $function::<162>,
            $function::<163>,
            $function::<164>,
            $function::<165>,
            $function::<166>,
            $function::<167>,
            $function::<168>,
            $function::<169>,
            $function::<170>,
            $function::<171>,
            $function::<172>,
            $function::<173>,
            $function::<174>,
            $function::<175>,
            $function::<176>,
            $function::<177>,
            $function::<178>,
            $function::<179>,
            $function::<180>,
            $function::<181>,
            $function::<182>,
            $function::<183>,
            $function::<184>,
            $function::<185>,
            $function::<186>,
            $function::<187>,
            $function::<188>,
            $function::<189>,
            $function::<190>,
            $function::<191>,
            $function::<192>,
            $function::<193>,
            $function::<194>,
            $function::<195>,
            $function::<196>,
            $function::<197>,
            $function::<198>,
            $function::<199>,
            $function::<200>,
            $function::<201>,
            $function::<202>,
            $function::<203>,
            $function::<204>,
            $function::<205>,
            $function::<206>,
            $function::<207>,
            $function::<208>,
            $function::<209>,
            $function::<210>,
            $function::<211>,
            $function::<212>,
            $function::<213>,
            $function::<214>,
            $function::<215>,
            $function::<216>,
            $function::<217>,
            $function::<218>,
            $function::<219>,
            $function::<220>,
            $function::<221>,
            $function::<222>,
            $function::<223>,
            $function::<224>,
            $function::<225>,
            $function::<226>,
            $function::<227>,
            $function::<228>,
            $function::<229>,
            $function::<230>,
            $function::<231>,
            $function::<232>,
            $function::<233>,
            $function::<234>,
            $function::<235>,
            $function::<236>,
            $function::<237>,
            $function::<238>,
            $function::<239>,
            $function::<240>,
            $function::<241>,
            $function::<242>,
            $function::<243>,
            $function::<244>,
            $function::<245>,
            $function::<246>,
            $function::<247>,
            $function::<248>,
            $function::<249>,
            $function::<250>,
            $function::<251>,
            $function::<252>,
            $function::<253>,
            $function::<254>,
            $function::<255>,
        ]
    };
}

const OF_REQUESTS: [fn(&mut State, Request<'_>); 256] = all_numbers!(on_request);
const OF_REPLIES: [fn(&mut State, Reply<'_>); 256] = all_numbers!(on_reply);

/// Has the engine call the program's handler of this number.
pub(crate) fn set(handlers: &mut Handlers<State>, at: u8) {
    handlers.set_request(at, Some(OF_REQUESTS[usize::from(at)]));
    handlers.set_reply(at, Some(OF_REPLIES[usize::from(at)]));
}

/// Has the engine refuse messages for this number.
pub(crate) fn unset(handlers: &mut Handlers<State>, at: u8) {
    handlers.set_request(at, None);
    handlers.set_reply(at, None);
}

fn on_request<const AT: u8>(state: &mut State, request: Request<'_>) {
    let (arguments, payload) = (request.arguments(), request.payload());
    let message = Message { of: Of::Request, handler: AT, sort: payload.sort(), arguments, peer: None };
    state.endpoint.statistics.count(|stats| stats.requests_received[message.sort as usize] += 1);
    let token = &state.endpoint.token;
    let _valid = token.begin(state.endpoint, &message);
    token.lend(request);
    run(state, &message, payload);
}

fn on_reply<const AT: u8>(state: &mut State, reply: Reply<'_>) {
    let (arguments, payload) = (reply.arguments(), reply.payload());
    let peer = Some(reply.from());
    let message = Message { of: Of::Reply, handler: AT, sort: payload.sort(), arguments, peer };
    state.endpoint.statistics.count(|stats| stats.replies_received[message.sort as usize] += 1);
    let _valid = state.endpoint.token.begin(state.endpoint, &message);
    run(state, &message, payload);
}

/// Calls the program's handler.
fn run(state: &mut State, message: &Message<'_>, payload: Payload<'_>) {
    let endpoint = state.endpoint;
    let function = endpoint.handlers[usize::from(message.handler)].get();
    endpoint.ran.set(endpoint.ran.get() + 1);
    let buffer = match message.sort {
        Sort::Short => None,
        Sort::Bulk => Some(payload.address().cast_mut().cast()),
        Sort::Medium => Some(place(&mut state.aligned, payload)),
    };
    let (token, bytes) = ((&raw const endpoint.token).cast_mut().cast::<c_void>(), payload.len());
    let (before, after) = endpoint.callbacks.get();
    let (sort, is_request) = (message.sort as c_int, c_int::from(message.of == Of::Request));
    if let Some(before) = before {
        let count = message.arguments.len() as c_int;
        let at = c_int::from(message.handler);
        let buffer = buffer.unwrap_or(std::ptr::null_mut());
        let arguments = message.arguments.as_ptr().cast_mut();
        // SAFETY: until it returns the token is valid, `buffer` is NULL or has `bytes` bytes, and
        // `count` words are readable at `arguments`.
        unsafe { before(sort, is_request, at, token, buffer, bytes, count, arguments) };
    }
    // SAFETY: the program has set a handler for messages of this sort with so many arguments.
    unsafe { call(function, token, buffer.map(|buffer| (buffer, bytes)), message.arguments) };
    if let Some(after) = after {
        // SAFETY: the program lets it be called with two numbers, until it sets another one.
        unsafe { after(sort, is_request) };
    }
}

/// Where a handler reads a medium payload: in place if that is aligned to 8 bytes, or a copy.
fn place(aligned: &mut Vec<u64>, payload: Payload<'_>) -> *mut c_void {
    let address = payload.address();
    if address.cast::<u64>().is_aligned() && !payload.is_empty() {
        return address.cast_mut().cast();
    }
    aligned.resize(payload.len().div_ceil(8).max(aligned.len()).max(1), 0);
    let start = aligned.as_mut_ptr().cast::<u8>();
    // SAFETY: the vector's words, as bytes.
    payload.copy_to(0, unsafe { std::slice::from_raw_parts_mut(start, aligned.len() * 8) });
    start.cast()
}

/// Calls a C function with a token, a buffer if there is one, and 0 to 16 arguments.
///
/// # Safety
///
/// `function` is the address of a C function that takes the token, the buffer and its length if
/// there is one, and as many words as `arguments` has.
unsafe fn call(function: usize, token: *mut c_void, buffer: Option<(*mut c_void, usize)>, arguments: &[u32]) {
    macro_rules! word {
        ($at:literal) => {
            u32
        };
    }
    macro_rules! cases {
        ($($count:literal: $($at:literal)*;)*) => {
            match (buffer, arguments.len()) {
                $(
                    (None, $count) => {
                        type Function = extern "C" fn(*mut c_void $(, word!($at))*);
                        // SAFETY: the address of a function of this type, by the contract above.
                        let function = unsafe { std::mem::transmute::<usize, Function>(function) };
                        function(token $(, arguments[$at])*);
                    }
                    (Some((start, bytes)), $count) => {
                        type Function = extern "C" fn(*mut c_void, *mut c_void, usize $(, word!($at))*);
                        // SAFETY: the address of a function of this type, by the contract above.
                        let function = unsafe { std::mem::transmute::<usize, Function>(function) };
                        function(token, start, bytes $(, arguments[$at])*);
                    }
                )*
                _ => {}
            }
        };
    }
    cases! {
        0: ;
        1: 0;
        2: 0 1;
        3: 0 1 2;
        4: 0 1 2 3;
        5: 0 1 2 3 4;
        6: 0 1 2 3 4 5;
        7: 0 1 2 3 4 5 6;
        8: 0 1 2 3 4 5 6 7;
        9: 0 1 2 3 4 5 6 7 8;
        10: 0 1 2 3 4 5 6 7 8 9;
        11: 0 1 2 3 4 5 6 7 8 9 10;
        12: 0 1 2 3 4 5 6 7 8 9 10 11;
        13: 0 1 2 3 4 5 6 7 8 9 10 11 12;
        14: 0 1 2 3 4 5 6 7 8 9 10 11 12 13;
        15: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14;
        16: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15;
    }
}

/// Has handler 0 take a message of the program's that has come back.
pub(crate) fn on_returned(state: &mut State, returned: &Returned<'_>) {
    give_back(
        state.endpoint,
        Status::of(returned.status()),
        returned.is_reply(),
        &Message {
            of: Of::Returned,
            handler: returned.handler(),
            sort: returned.sort(),
            arguments: returned.arguments(),
            peer: Some(returned.peer()),
        },
    );
}

/// Runs handler 0, if there is one, for a message that has come back.
pub(crate) fn give_back(endpoint: &'static Endpoint, status: Status, is_reply: bool, message: &Message<'_>) {
    endpoint.statistics.count(|stats| stats.returned += 1);
    endpoint.ran.set(endpoint.ran.get() + 1);
    let function = endpoint.handlers[0].get();
    if function == 0 {
        return;
    }
    let _valid = endpoint.token.begin(endpoint, message);
    let tag = message.peer.and_then(|peer| endpoint.translations.borrow().of_peer(peer).map(|record| record.tag));
    endpoint.token.tag.set(tag.unwrap_or(0));
    let operation = message.sort as c_int + if is_reply { 4 } else { 1 };
    // SAFETY: the program has set it as handler 0, which has this type.
    let function = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int, c_int, *mut c_void)>(function) };
    function(endpoint.status.get()(status), operation, (&raw const endpoint.token).cast_mut().cast());
}
