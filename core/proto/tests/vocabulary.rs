//! The numbers that compiled programs rely on, and the mappings between errors and statuses.

use cci_proto::{
    Alignment, Attribute, CONN_REQ_LEN, ConnectError, EventKind, Failure, Flags, ImportError, OptionError, PollError,
    RegisterError, RequestError, Rights, RmaError, RmaHandle, SendError, Status, Unusable,
};

/// Every status with its number: CCI's own first, then those of Linux's errno.
const STATUSES: [(Status, u32, &str); 22] = [
    (Status::Success, 0, "CCI_SUCCESS"),
    (Status::Error, 1, "CCI_ERROR"),
    (Status::Disconnected, 2, "CCI_ERR_DISCONNECTED"),
    (Status::Rnr, 3, "CCI_ERR_RNR"),
    (Status::DeviceDead, 4, "CCI_ERR_DEVICE_DEAD"),
    (Status::RmaHandle, 5, "CCI_ERR_RMA_HANDLE"),
    (Status::RmaOp, 6, "CCI_ERR_RMA_OP"),
    (Status::NotImplemented, 7, "CCI_ERR_NOT_IMPLEMENTED"),
    (Status::NotFound, 8, "CCI_ERR_NOT_FOUND"),
    (Status::Again, 11, "CCI_EAGAIN"),
    (Status::NoMem, 12, "CCI_ENOMEM"),
    (Status::Busy, 16, "CCI_EBUSY"),
    (Status::NoDev, 19, "CCI_ENODEV"),
    (Status::Inval, 22, "CCI_EINVAL"),
    (Status::Range, 34, "CCI_ERANGE"),
    (Status::NoMsg, 42, "CCI_ENOMSG"),
    (Status::MsgSize, 90, "CCI_EMSGSIZE"),
    (Status::AddrNotAvail, 99, "CCI_EADDRNOTAVAIL"),
    (Status::NetDown, 100, "CCI_ENETDOWN"),
    (Status::NoBufs, 105, "CCI_ENOBUFS"),
    (Status::TimedOut, 110, "CCI_ETIMEDOUT"),
    (Status::ConnRefused, 111, "CCI_ECONNREFUSED"),
];

#[test]
fn statuses_have_the_numbers_of_cci_2_2() {
    assert_eq!(Status::ALL, STATUSES.map(|(status, ..)| status));
    for (status, number, name) in STATUSES {
        assert_eq!(status as u32, number, "{name}");
        assert_eq!(Status::from_u32(number), Some(status));
        let sentence = status.sentence();
        let rest = sentence.strip_prefix(name).and_then(|rest| rest.strip_prefix(": "));
        assert!(rest.is_some_and(|rest| !rest.is_empty()), "{sentence}");
        assert_eq!(status.to_string(), sentence);
    }
}

#[test]
fn other_numbers_are_no_status() {
    let known = STATUSES.map(|(_, number, _)| number);
    for number in (0..1000).chain([u32::MAX, u32::MAX - 21, 1 << 31]) {
        assert_eq!(Status::from_u32(number).is_some(), known.contains(&number), "{number}");
    }
}

#[test]
fn the_errno_statuses_are_those_of_the_system() {
    use std::io::{Error, ErrorKind};
    let kinds = [
        (Status::Again, ErrorKind::WouldBlock),
        (Status::NoMem, ErrorKind::OutOfMemory),
        (Status::Busy, ErrorKind::ResourceBusy),
        (Status::Inval, ErrorKind::InvalidInput),
        (Status::AddrNotAvail, ErrorKind::AddrNotAvailable),
        (Status::NetDown, ErrorKind::NetworkDown),
        (Status::TimedOut, ErrorKind::TimedOut),
        (Status::ConnRefused, ErrorKind::ConnectionRefused),
    ];
    for (status, kind) in kinds {
        assert_eq!(Error::from_raw_os_error(status as i32).kind(), kind, "{status}");
    }
}

/// An error with the status it stands for.
macro_rules! maps {
    ($($error:expr => $status:ident;)+) => {
        $(
            assert_eq!($error.status(), Status::$status, "{:?}", $error);
            let sentence = $error.to_string();
            assert!(sentence.len() > 10 && !sentence.ends_with('.'), "{:?}: {sentence}", $error);
        )+
    };
}

#[test]
fn each_refusal_has_its_status() {
    maps! {
        Unusable::Forked => DeviceDead;
        Unusable::Failed => DeviceDead;
        Unusable::WrongThread => Inval;
        Unusable::Closed => Inval;
        ConnectError::PayloadTooLong => Inval;
        ConnectError::BadUri => Inval;
        ConnectError::NotImplemented => NotImplemented;
        ConnectError::NoBuffers => NoBufs;
        ConnectError::NoMemory => NoMem;
        RequestError::NotARequest => Inval;
        RequestError::AlreadyAnswered => Inval;
        RequestError::NotAnswered => Inval;
        RequestError::NotBorrowed => Inval;
        RequestError::OtherDevice => Inval;
        RequestError::Disconnected => Disconnected;
        RequestError::NoBuffers => NoBufs;
        RequestError::NoMemory => NoMem;
        OptionError::ReadOnly => Inval;
        OptionError::Range => Inval;
        OptionError::Disconnected => Inval;
        PollError::NoBuffers => NoBufs;
    }
}

#[test]
fn each_refusal_of_an_operation_has_its_status() {
    maps! {
        SendError::NoBuffers => NoBufs;
        SendError::TooLong => MsgSize;
        SendError::Disconnected => Disconnected;
        SendError::BadFlags => Inval;
        SendError::Direction => Inval;
        SendError::NoRoom => Inval;
        RmaError::NoBuffers => NoBufs;
        RmaError::MessageTooLong => MsgSize;
        RmaError::Disconnected => Disconnected;
        RmaError::BadFlags => Inval;
        RmaError::ZeroLength => Inval;
        RmaError::WordLength => Inval;
        RmaError::Unreliable => Inval;
        RmaError::LocalHandle => Inval;
        ImportError::NotImplemented => NotImplemented;
        ImportError::NotMapped => NotImplemented;
        ImportError::Handle => RmaHandle;
        ImportError::Disconnected => Disconnected;
        RegisterError::Null => Inval;
        RegisterError::WrapsAround => Inval;
        RegisterError::UnknownHandle => Inval;
        RegisterError::NoMemory => NoMem;
        RegisterError::Disconnected => Disconnected;
        RegisterError::Unreliable => Inval;
        RegisterError::Busy => Busy;
    }
}

#[test]
fn an_unusable_endpoint_is_that_for_every_operation() {
    for why in [Unusable::Forked, Unusable::WrongThread, Unusable::Closed, Unusable::Failed] {
        let statuses = [
            ConnectError::from(why).status(),
            RequestError::from(why).status(),
            SendError::from(why).status(),
            RmaError::from(why).status(),
            RegisterError::from(why).status(),
            OptionError::from(why).status(),
            PollError::from(why).status(),
        ];
        assert_eq!(statuses, [why.status(); 7]);
        assert_eq!(SendError::from(why).to_string(), why.to_string());
    }
}

#[test]
fn refusals_are_one_or_two_bytes() {
    assert_eq!(size_of::<Failure>(), 1);
    assert!(size_of::<Result<(), SendError>>() <= 2 && size_of::<Result<(), RmaError>>() <= 2);
}

const FAILURES: [(Failure, Status, bool); 9] = [
    (Failure::Disconnected, Status::Disconnected, true),
    (Failure::NotReady, Status::Rnr, true),
    (Failure::TimedOut, Status::TimedOut, true),
    (Failure::Refused, Status::ConnRefused, true),
    (Failure::RemoteHandle, Status::RmaHandle, false),
    (Failure::Copy, Status::RmaOp, false),
    (Failure::NoMemory, Status::NoMem, true),
    (Failure::TooLong, Status::MsgSize, false),
    (Failure::Protocol, Status::ConnRefused, true),
];

#[test]
fn failures_have_their_statuses_and_come_back() {
    for (failure, status, breaks) in FAILURES {
        assert_eq!(failure.status(), status);
        assert_eq!(failure.breaks_connection(), breaks, "{failure:?}");
        // A send is too long for its connection, and an event's failure for the receiver's limit.
        let own = "CCI_EMSGSIZE: longer than the receiver allows; raise its limit of large messages, or send less";
        let sentence = if failure == Failure::TooLong { own } else { status.sentence() };
        assert_eq!(failure.to_string(), sentence);
        // A program cannot tell a broken protocol from a refusal: both are ECONNREFUSED.
        let back = if failure == Failure::Protocol { Failure::Refused } else { failure };
        assert_eq!(Failure::from_status(status), Some(back));
    }
}

#[test]
fn a_status_without_a_failure_is_none() {
    for status in Status::ALL {
        let carried = FAILURES.iter().any(|(_, of, _)| *of == status);
        assert_eq!(Failure::from_status(status).is_some(), carried, "{status:?}");
        if let Some(failure) = Failure::from_status(status) {
            assert_eq!(failure.status(), status);
        }
    }
}

#[test]
fn flags_of_a_send_are_blocking_no_copy_and_silent() {
    for bits in (0..256).chain([1 << 8, 1 << 31, u32::MAX]) {
        let allowed = bits & !(1 | 2 | 8) == 0;
        assert_eq!(Flags::for_send(bits).map(Flags::bits), allowed.then_some(bits), "{bits}");
    }
}

#[test]
fn an_rma_goes_one_way() {
    for bits in (0..256).chain([16 | 1 << 8, 32 | 1 << 31, u32::MAX]) {
        let allowed = bits & !(1 | 2 | 8 | 16 | 32 | 64) == 0 && (bits & 16 != 0) != (bits & 32 != 0);
        assert_eq!(Flags::for_rma(bits).map(Flags::bits), allowed.then_some(bits), "{bits}");
    }
}

#[test]
fn flags_have_the_bits_of_cci_2_2_and_form_sets() {
    let all = [Flags::BLOCKING, Flags::NO_COPY, Flags::SILENT, Flags::READ, Flags::WRITE, Flags::FENCE];
    assert_eq!(all.map(Flags::bits), [1, 2, 8, 16, 32, 64]);
    let mut both = Flags::READ | Flags::FENCE;
    assert_eq!(both.bits(), 80);
    assert!(both.has(Flags::READ) && both.has(Flags::FENCE) && both.has(Flags::NONE) && !both.has(Flags::WRITE));
    assert!(!Flags::READ.has(both), "every flag asked for, not some");
    both |= Flags::SILENT;
    assert_eq!(both.bits(), 88);
    assert_eq!(Flags::default(), Flags::NONE);
}

#[test]
fn rights_are_those_of_remote_peers() {
    for bits in (0..256).chain([1 << 31, u32::MAX]) {
        let allowed = bits & !(16 | 32) == 0;
        assert_eq!(Rights::from_bits(bits).map(Rights::bits), allowed.then_some(bits), "{bits}");
    }
    assert_eq!([Rights::NONE, Rights::READ, Rights::WRITE, Rights::READ_WRITE].map(Rights::bits), [0, 16, 32, 48]);
    assert!(Rights::READ_WRITE.has(Rights::WRITE) && !Rights::READ.has(Rights::READ_WRITE));
}

#[test]
fn a_handle_is_known_by_its_bytes() {
    let handle = RmaHandle::from_words([0x0123_4567_89ab_cdef, u64::MAX, 0, 1 << 63]);
    let bytes = handle.to_bytes();
    assert_eq!(bytes[..8], 0x0123_4567_89ab_cdef_u64.to_ne_bytes());
    assert_eq!(RmaHandle::from_bytes(&bytes), Some(handle));
    for len in (0..100).filter(|len| *len != 32) {
        assert_eq!(RmaHandle::from_bytes(&vec![0; len]), None, "{len}");
    }
    for at in 0..32 {
        let mut other = bytes;
        other[at] ^= 1;
        assert_ne!(RmaHandle::from_bytes(&other), Some(handle), "byte {at} counts");
    }
    assert_eq!((size_of::<RmaHandle>(), align_of::<RmaHandle>()), (32, 8));
}

#[test]
fn a_log_of_a_handle_gives_nobody_access() {
    let shown = format!("{:?}", RmaHandle::from_words([0xabc, 0x5ec_0123_4567_89ab, 3, 4]));
    assert_eq!(shown, "RmaHandle(0000000000000abc)");
}

#[test]
fn the_other_enumerations_have_the_numbers_of_cci_2_2() {
    use Attribute::{MulticastReceive, MulticastSend, ReliableOrdered, ReliableUnordered, Unreliable};
    let attributes = [ReliableOrdered, ReliableUnordered, Unreliable, MulticastSend, MulticastReceive];
    for (attribute, number) in attributes.into_iter().zip(0..) {
        assert_eq!(attribute as u32, number);
        assert_eq!(Attribute::from_u32(number), Some(attribute));
        assert_eq!((attribute.is_reliable(), attribute.is_multicast()), (number < 2, number > 2));
    }
    assert_eq!(attributes.map(Attribute::name), ["RO", "RU", "UU", "MC_TX", "MC_RX"]);
    assert_eq!((Attribute::from_u32(5), Attribute::from_u32(u32::MAX)), (None, None));

    for number in (0..300).chain([u32::MAX]) {
        let kind = EventKind::from_u32(number);
        assert_eq!(kind.is_some(), matches!(number, 1..=7 | 0x100 | 0x101), "{number}");
        assert!(kind.is_none_or(|kind| kind as u32 == number));
    }
    assert_eq!((EventKind::Send as u32, EventKind::Recv as u32, EventKind::DeviceFailed as u32), (1, 2, 7));
    assert_eq!((size_of::<Alignment>(), CONN_REQ_LEN), (24, 1024));
}
