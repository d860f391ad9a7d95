//! Bundles, endpoints and tokens, as programs hold them.

use crate::dialect::{Dialect, Storage};
use crate::names::Name;
use crate::refusal::{Answer, IN_HANDLER, Refusal};
use crate::statistics::Statistics;
use crate::status::Status;
use crate::translations::Translations;
use cci_am::{Member, Peer, Request, Sort};
use std::cell::{Cell, RefCell, RefMut};
use std::ffi::{c_int, c_void};
use std::thread::ThreadId;

/// The first word of a cell that is in use, so that one kind is not taken for another.
const BUNDLE: u32 = 0x616d_4255;
const ENDPOINT: u32 = 0x616d_4550;
/// A word of a token that is valid.
const TOKEN: u32 = 0x616d_544f;

/// What the engine's endpoints own: the way back to the program's.
pub(crate) struct State {
    pub(crate) endpoint: &'static Endpoint,
    /// Medium payloads that are not aligned where they lie.
    pub(crate) aligned: Vec<u64>,
}

/// `eb_t`. Its engine is borrowed while a handler runs.
#[repr(C)]
pub(crate) struct Bundle {
    mark: Cell<u32>,
    pub(crate) engine: RefCell<cci_am::Bundle<State>>,
    pub(crate) members: RefCell<Vec<&'static Endpoint>>,
    pub(crate) mask: Cell<c_int>,
    /// The thread that has allocated it.
    pub(crate) owner: Cell<Option<ThreadId>>,
}

// SAFETY: a program uses a bundle and its endpoints by one thread at a time (`AM_SEQ`); the
// registry only counts and reuses them.
unsafe impl Sync for Bundle {}

/// A function of the program's that runs before each handler. It gets the sort of the message,
/// whether that is a request, the number of the handler, the token, a buffer or NULL, the bytes
/// there, and a count of arguments. The token is valid, and bytes and arguments are readable, until
/// it returns.
pub(crate) type Before = unsafe extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut c_void, usize, c_int, *mut u32);
/// A function of the program's that runs after each handler. It gets the sort of the message, and
/// whether that was a request.
pub(crate) type After = unsafe extern "C" fn(c_int, c_int);

/// `ep_t`.
#[repr(C)]
pub(crate) struct Endpoint {
    mark: Cell<u32>,
    pub(crate) place: Cell<Option<(&'static Bundle, Member)>>,
    pub(crate) name: RefCell<Option<Name>>,
    pub(crate) tag: Cell<u64>,
    /// Address and length.
    pub(crate) segment: Cell<(usize, usize)>,
    pub(crate) translations: RefCell<Translations>,
    /// The program's functions; 0: none.
    pub(crate) handlers: [Cell<usize>; 256],
    pub(crate) handler_count: Cell<usize>,
    /// Functions that run before and after each handler.
    pub(crate) callbacks: Cell<(Option<Before>, Option<After>)>,
    pub(crate) statistics: Statistics,
    pub(crate) token: Token,
    pub(crate) status: Cell<fn(Status) -> c_int>,
    /// Handlers that have run.
    pub(crate) ran: Cell<u64>,
    pub(crate) own_name: Storage,
    pub(crate) asked_name: Storage,
}

// SAFETY: as `Bundle`.
unsafe impl Sync for Endpoint {}

/// Which handler has the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Nobody,
    Request,
    Reply,
    /// Handler 0.
    Returned,
}

/// A token: a part of its endpoint's cell. It begins with the arguments, as handler 0 has it.
#[repr(C)]
pub(crate) struct Token {
    pub(crate) arguments: [Cell<u32>; 16],
    mark: Cell<u32>,
    of: Cell<Of>,
    pub(crate) endpoint: Cell<Option<&'static Endpoint>>,
    /// The request, until it is replied to. It lives as long as its handler.
    pub(crate) request: RefCell<Option<Request<'static>>>,
    pub(crate) handler: Cell<u8>,
    pub(crate) sort: Cell<Sort>,
    pub(crate) tag: Cell<u64>,
    /// What the requester introduced itself with; it lives as long as the handler runs.
    pub(crate) from: Cell<Option<&'static str>>,
    /// The target of what a reply or a return belongs to.
    pub(crate) peer: Cell<Option<Peer>>,
    pub(crate) name: Storage,
}

impl Bundle {
    pub(crate) fn fresh() -> Self {
        Self {
            mark: Cell::new(0),
            engine: RefCell::new(cci_am::Bundle::new()),
            members: RefCell::new(Vec::new()),
            mask: Cell::new(0),
            owner: Cell::new(None),
        }
    }

    pub(crate) fn begin(&self) {
        self.mark.set(BUNDLE);
        self.mask.set(0);
        self.owner.set(Some(std::thread::current().id()));
    }

    pub(crate) fn end(&self) {
        self.mark.set(0);
    }

    pub(crate) fn is_live(&self) -> bool {
        self.mark.get() == BUNDLE
    }

    /// The engine, unless a handler of the bundle runs.
    #[inline]
    pub(crate) fn enter(&self) -> Result<RefMut<'_, cci_am::Bundle<State>>, Refusal> {
        self.engine.try_borrow_mut().map_err(|_| IN_HANDLER)
    }

    /// As `enter`, where the engine itself is not needed.
    pub(crate) fn check_entry(&self) -> Answer {
        self.enter().map(drop)
    }
}

impl Endpoint {
    pub(crate) fn fresh() -> Self {
        Self {
            mark: Cell::new(0),
            place: Cell::new(None),
            name: RefCell::new(None),
            tag: Cell::new(0),
            segment: Cell::new((0, 0)),
            translations: RefCell::new(Translations::new()),
            handlers: [const { Cell::new(0) }; 256],
            handler_count: Cell::new(256),
            callbacks: Cell::new((None, None)),
            statistics: Statistics::default(),
            token: Token::new(),
            status: Cell::new(|status| status as c_int),
            ran: Cell::new(0),
            own_name: Storage::new(),
            asked_name: Storage::new(),
        }
    }

    pub(crate) fn begin<D: Dialect>(&self, place: (&'static Bundle, Member), name: Name) {
        self.mark.set(ENDPOINT);
        self.place.set(Some(place));
        self.name.replace(Some(name));
        self.status.set(D::status);
    }

    /// Forgets everything, for the next use of the cell.
    pub(crate) fn end(&self) {
        self.mark.set(0);
        self.place.set(None);
        self.name.replace(None);
        self.tag.set(0);
        self.segment.set((0, 0));
        self.translations.replace(Translations::new());
        self.handlers.iter().for_each(|handler| handler.set(0));
        self.handler_count.set(256);
        self.callbacks.set((None, None));
        self.statistics.reset();
        self.ran.set(0);
    }

    pub(crate) fn bundle(&self) -> Result<(&'static Bundle, Member), Refusal> {
        self.place.get().ok_or(GONE)
    }
}

impl Token {
    pub(crate) fn new() -> Self {
        Self {
            arguments: [const { Cell::new(0) }; 16],
            mark: Cell::new(0),
            of: Cell::new(Of::Nobody),
            endpoint: Cell::new(None),
            request: RefCell::new(None),
            handler: Cell::new(0),
            sort: Cell::new(Sort::Short),
            tag: Cell::new(0),
            from: Cell::new(None),
            peer: Cell::new(None),
            name: Storage::new(),
        }
    }

    /// Makes the token valid: this handler has it.
    pub(crate) fn validate(&self, of: Of) {
        self.of.set(of);
        self.mark.set(TOKEN);
    }

    /// Makes the token invalid: nobody has it.
    pub(crate) fn invalidate(&self) {
        self.mark.set(0);
        self.of.set(Of::Nobody);
    }

    #[inline(always)]
    fn is_valid(&self) -> bool {
        self.mark.get() == TOKEN && self.of() != Of::Nobody
    }

    /// Which handler has the token.
    #[inline(always)]
    pub(crate) fn of(&self) -> Of {
        self.of.get()
    }
}

const GONE: Refusal = Refusal::BadArg("that is no endpoint; was it freed?");

/// What programs hold of a cell: NULL, or the address of a cell of this library.
#[repr(transparent)]
pub(crate) struct Handle<T: 'static>(*const T);

impl<T> Copy for Handle<T> {}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

pub(crate) type Eb = Handle<Bundle>;
pub(crate) type Ep = Handle<Endpoint>;

impl<T> Handle<T> {
    pub(crate) fn to(cell: &'static T) -> Self {
        Self(cell)
    }

    /// The cell, if it begins with this mark.
    #[inline(always)]
    fn marked(self, mark: u32) -> Option<&'static T> {
        // SAFETY: not NULL, so a cell: it is never unmapped, and its first word is its mark.
        let is_one = !self.0.is_null() && unsafe { self.0.cast::<u32>().read() } == mark;
        // SAFETY: the mark shows that it is a cell of this kind, which is never unmapped.
        is_one.then(|| unsafe { &*self.0 })
    }
}

impl Eb {
    /// The bundle that a program names.
    #[inline(always)]
    pub(crate) fn get(self) -> Result<&'static Bundle, Refusal> {
        self.marked(BUNDLE).ok_or(Refusal::BadArg("that is no bundle; was it freed?"))
    }
}

impl Ep {
    /// The endpoint that a program names.
    #[inline(always)]
    pub(crate) fn get(self) -> Result<&'static Endpoint, Refusal> {
        self.marked(ENDPOINT).ok_or(GONE)
    }
}

impl Handle<Token> {
    /// The token that a program names, whose handler runs.
    #[inline(always)]
    pub(crate) fn get(self) -> Result<&'static Token, Refusal> {
        const GONE: Refusal = Refusal::BadArg("that is no token, or its handler has returned");
        // SAFETY: NULL, or a part of a cell that is never unmapped.
        let token = unsafe { self.0.as_ref() }.ok_or(GONE)?;
        if token.is_valid() { Ok(token) } else { Err(GONE) }
    }
}
