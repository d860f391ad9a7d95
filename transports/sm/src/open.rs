//! Opening an endpoint.

use crate::address::Address;
use crate::common::{Common, Released, precise_now};
use crate::control::Control;
use crate::layout::{READY_LEN, SEND_SIZES};
use crate::registry::Registry;
use crate::{MAX_SEND_SIZE, NO_LANE, Sm};
use cci_mem::address_space::Tag;
use cci_mem::hints::Hints;
use cci_mem::segment::Segment;
use cci_proto::Status;
use cci_transport::{Core, OpenError, SpinPolicy, WaitPolicy, globals};
use std::collections::VecDeque;

/// Keys that an sm device understands.
pub const KEYS: [&str; 5] = ["path", "mss", "pid", "id", "rma"];

/// What the keys of a device say.
struct Settings {
    max_send_size: u32,
    service: Option<Address>,
    no_process_vm: Option<String>,
}

impl Settings {
    fn parse(arguments: &[(String, String)], service: Option<&str>) -> Result<Self, OpenError> {
        let wrong = |key: &str, value: &str, want: &str| {
            OpenError::new(Status::Inval, format!("the value '{value}' of the key '{key}' is not {want}"))
        };
        let mut settings = Self { max_send_size: MAX_SEND_SIZE, service: None, no_process_vm: None };
        let (mut pid, mut id) = (None, None);
        for (key, value) in arguments {
            let number = || value.parse::<u32>().map_err(|_| wrong(key, value, "a decimal number"));
            match key.as_str() {
                "mss" => {
                    settings.max_send_size = number()?;
                    if !SEND_SIZES.contains(&settings.max_send_size) {
                        return Err(wrong(key, value, "between 64 and 1048576 bytes"));
                    }
                }
                "pid" => pid = Some(number()?),
                "id" => id = Some(number()?),
                "rma" => match value.as_str() {
                    "auto" => {}
                    "segment" => settings.no_process_vm = Some("the key rma=segment of the device says so".into()),
                    _ => return Err(wrong(key, value, "auto or segment")),
                },
                // The original kept its files there; ours have no name in a file system.
                "path" => {}
                _ => {
                    return Err(OpenError::new(
                        Status::Inval,
                        format!("sm has no key '{key}'; its keys are {}", KEYS.join(", ")),
                    ));
                }
            }
        }
        settings.service = match service {
            Some(service) => Some(Address::for_service(service)?),
            None => id.map(|id| Address { pid: pid.unwrap_or_else(std::process::id), id }),
        };
        Ok(settings)
    }
}

impl Sm {
    /// Opens an endpoint's shared-memory side. `arguments`: the keys of its device; `service`: "PID/ID".
    ///
    /// # Errors
    ///
    /// A key's value is wrong, the service is taken or malformed, or memory or descriptors are short.
    pub fn open(_: &Core, arguments: &[(String, String)], service: Option<&str>) -> Result<Self, OpenError> {
        let settings = Settings::parse(arguments, service)?;
        // It reads a file: here, and not within the first large RMA, which is no cancellation point.
        cci_mem::streaming::threshold();
        let system = |source: rustix::io::Errno| OpenError::system("cannot open an sm endpoint", source);
        let mut random = [0; 32];
        rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty()).map_err(system)?;
        let mut words = random.chunks_exact(8).map(|chunk| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(chunk);
            u64::from_ne_bytes(bytes)
        });
        let mut word = || words.next().unwrap_or(0);
        let (control, address) = Control::open(settings.service)?;
        let common = Common {
            uri: address.to_string(),
            id: [word(), word()],
            max_send_size: settings.max_send_size,
            pairing: globals().map_err(system)?.1.pairing,
            registry: Registry::new([word(), word()])?,
            control,
            tag: Tag::of_this_process().ok(),
            physical_memory: physical_memory(),
            now: precise_now(),
            buffers: Vec::new(),
            released: Released::new(),
            owed: Vec::new(),
            expected: Vec::new(),
            redirected: Vec::new(),
            violators: Vec::new(),
            stirred: Vec::new(),
            heated: Vec::new(),
            ready_page: ready_page().map_err(system)?,
            hints: Hints::new(),
            lanes_changed: false,
            no_process_vm: settings.no_process_vm,
            spilled: Vec::new(),
            spilled_free: Vec::new(),
            refusing: 0,
            wanting: VecDeque::new(),
            deadlines_moved: false,
            strays: 0,
        };
        Ok(Self {
            common,
            lanes: Vec::new(),
            vacant: Vec::new(),
            hot: Vec::new(),
            sole: NO_LANE,
            clear: NO_LANE,
            restless: Vec::new(),
            swept: 0,
            #[cfg(test)]
            looks: std::cell::Cell::new(0),
            turn: 0,
            greeting: false,
            patience: WaitPolicy::default(),
            linger: SpinPolicy::default(),
            calls: 0,
            spins: false,
            last_tick: 0,
            busy: 0,
            found_before: false,
            tick: 0,
            ready: Vec::with_capacity(32),
            looked: false,
            unfinished: false,
        })
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
