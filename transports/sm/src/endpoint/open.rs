//! Opening an endpoint.

use crate::clock::precise_now;
use crate::descriptors::{Control, Name};
use crate::driver::DRIVER;
use crate::format::address::Address;
use crate::format::layout::MAX_SEND_SIZE;
use crate::format::layout::READY_LEN;
use crate::lane::admission::Contention;
use crate::lane::state::{EndpointState, Released};
use crate::memory::registry::Registry;
use crate::slow_path::SlowPath;
use cci_mem::address_space::Tag;
use cci_mem::hints::Hints;
use cci_mem::segment::Segment;
use cci_transport::{Arguments, ExpectedClients, NameCall, OpenError, PendingEvents, Readiness, globals, random};

/// What the keys of a device say.
struct Settings {
    max_send_size: u32,
    name: Name,
    no_process_vm: Option<String>,
}

impl Settings {
    fn parse(arguments: &[(String, String)], service: Option<&str>) -> Result<Self, OpenError> {
        let arguments = Arguments::check(&DRIVER, arguments)?;
        let by_segment = arguments.text("rma") == Some("segment");
        let pid = || arguments.parsed("pid").unwrap_or_else(std::process::id);
        Ok(Self {
            max_send_size: arguments.parsed("mss").unwrap_or(MAX_SEND_SIZE),
            name: match (service, arguments.parsed("id"), arguments.parsed("port")) {
                (Some(service), ..) => Name::Exactly(Address::for_service(service)?),
                (None, Some(id), _) => Name::Exactly(Address { pid: pid(), id }),
                (None, None, Some(port)) => Name::OfPort(port),
                (None, None, None) => Name::Free,
            },
            no_process_vm: by_segment.then(|| "the key rma=segment of the device says so".into()),
        })
    }
}

impl SlowPath {
    /// Opens an endpoint's shared-memory side. `arguments`: the keys of its device; `service`:
    /// "PID/ID"; `is_present`: it is alive while its program makes no calls.
    ///
    /// # Errors
    ///
    /// A key's value is wrong, the service is taken or malformed, or memory or descriptors are
    /// short.
    pub(crate) fn open(
        arguments: &[(String, String)],
        service: Option<&str>,
        is_present: bool,
    ) -> Result<Self, OpenError> {
        let settings = Settings::parse(arguments, service)?;
        // It reads a file: here, and not within the first large RMA, which is no cancellation
        // point.
        cci_mem::streaming::threshold();
        let system = |refused| OpenError::call("cannot open an sm endpoint", refused);
        let [first_id, second_id, first_key, second_key] = random().by("getrandom").map_err(system)?;
        let (control, address) = Control::open(settings.name)?;
        let state = EndpointState {
            uri: address.to_string(),
            id: [first_id, second_id],
            max_send_size: settings.max_send_size,
            is_present,
            pairing: globals().by("mmap").map_err(system)?.1.pairing,
            registry: Registry::new([first_key, second_key])?,
            control,
            tag: Tag::of_this_process().ok(),
            physical_memory: physical_memory(),
            now: precise_now(),
            buffers: Vec::new(),
            released: Released::new(),
            pending_events: PendingEvents::default(),
            landings_wait: false,
            expected: ExpectedClients::default(),
            redirected: Vec::new(),
            protocol_errors: Vec::new(),
            newly_timed: Vec::new(),
            newly_hot: Vec::new(),
            ready_page: ready_page().by("mmap").map_err(system)?,
            hints: Hints::new(),
            lanes_changed: false,
            no_process_vm: settings.no_process_vm,
            spilled: Vec::new(),
            spilled_free: Vec::new(),
            refusing: 0,
            contention: Contention::default(),
            deadlines_moved: false,
            timer_refused: false,
            strays: 0,
        };
        let mut endpoint = Self {
            state,
            lanes: Vec::new(),
            vacant: Vec::new(),
            hot: Vec::new(),
            timed: Vec::new(),
            swept: 0,
            #[cfg(test)]
            looks: std::cell::Cell::new(0),
            turn: 0,
            in_handshake: false,
            readiness: Readiness::default(),
            calls: 0,
            spins: false,
            last_tick: 0,
            busy: 0,
            found_before: false,
            tick: 0,
            ready: Vec::with_capacity(32),
            looked: false,
            unfinished: false,
        };
        // The handle stays readable until it is armed.
        Readiness::signal(&mut endpoint);
        Ok(endpoint)
    }
}

/// A fresh ready bitmap that peers can write.
fn ready_page() -> rustix::io::Result<Segment> {
    let page = Segment::create("cci-ready", READY_LEN)?;
    page.reserve(0, READY_LEN)?;
    Ok(page)
}

fn physical_memory() -> u64 {
    let about = rustix::system::sysinfo();
    u64::from(about.mem_unit) * about.totalram
}
