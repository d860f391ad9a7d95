//! Descriptors in the memory of the program: read once when they are posted, written once when they
//! complete.

use cci_via::engine::{Completion, Token};
use cci_via::{MAX_SEGMENTS, Op, Remote, Segment, Status, Task};

/// Bytes of a control segment, and of each segment after it.
pub(crate) const CONTROL: u32 = 32;
const SEGMENT: u32 = 16;
pub(crate) const ALIGNMENT: usize = 64;

const OP_MASK: u16 = 3;
const IMMEDIATE: u16 = 4;
const FENCE: u16 = 8;
const RESERVED: u16 = 0xFFF0;

/// The address of a posted descriptor.
#[derive(Clone, Copy)]
pub(crate) struct Descriptor(pub(crate) usize);

impl Descriptor {
    fn at(self, offset: u32) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.0 + offset as usize)
    }

    /// # Safety
    ///
    /// The field lies in registered memory, which its program keeps mapped.
    unsafe fn read<T: Copy>(self, offset: u32) -> T {
        // SAFETY: the field lies in registered memory, which stays mapped; aligned because the
        // descriptor is, and its fields are.
        unsafe { self.at(offset).cast::<T>().read_volatile() }
    }

    /// Writes what the descriptor asks for into a plain task. Each field is read once; another
    /// thread of the program that writes meanwhile makes it ask for something else.
    ///
    /// # Safety
    ///
    /// Its control segment lies in registered memory, which its program keeps mapped.
    pub(crate) unsafe fn read_into(self, is_receive: bool, covers: &dyn Fn(u32) -> bool, task: &mut Task) {
        // SAFETY: the control segment, of which these are fields, lies in registered memory.
        let [count, control] = [12, 14].map(|offset| unsafe { self.read::<u16>(offset) });
        // SAFETY: as above.
        let immediate = unsafe { self.read::<u32>(20) };
        task.fence = control & FENCE != 0;
        let operation = control & OP_MASK;
        let count = u32::from(count);
        let has_address = operation == 1 || operation == 2;
        let is_malformed = control & RESERVED != 0
            || operation == 3
            || count as usize > MAX_SEGMENTS
            || (has_address && (is_receive || count == 0))
            || (operation == 2 && control & IMMEDIATE != 0);
        task.fault = if is_malformed {
            Status::FORMAT
        } else if !covers(CONTROL + count * SEGMENT) {
            Status::PROTECTION
        } else {
            Status::default()
        };
        if task.fault.is_error() {
            return;
        }
        if control & IMMEDIATE != 0 && !is_receive {
            task.immediate = Some(immediate.into());
        }
        for index in 0..count {
            let offset = CONTROL + index * SEGMENT;
            // SAFETY: inside, as just checked.
            let (address, handle, length) =
                unsafe { (self.read::<u64>(offset), self.read::<u32>(offset + 8), self.read::<u32>(offset + 12)) };
            if has_address && index == 0 {
                let remote = Remote { address, handle };
                task.op = if operation == 1 { Op::Write(remote) } else { Op::Read(remote) };
            } else {
                task.push(Segment { address, handle, length });
            }
        }
    }
}

impl Token for Descriptor {
    /// Status last: a program that looks there finds the rest in place.
    fn complete(&mut self, end: &Completion) {
        // SAFETY: the engine has just checked that it lies in registered memory; its program keeps
        // that mapped. Aligned, as in `read`.
        unsafe { self.at(24).cast::<u32>().write_volatile(end.length) };
        if let Some(immediate) = end.immediate {
            // SAFETY: as above.
            unsafe { self.at(20).cast::<u32>().write_volatile(immediate as u32) };
        }
        // SAFETY: as above.
        unsafe { self.at(28).cast::<u32>().write_volatile(end.status.bits()) };
    }
}
