//! Arguments that point to memory of the program.
//!
//! Exported functions take these types. Their values come from C programs, which promise what is
//! said of the type for as long as the call lasts.

use crate::status::Refusal;
use cci::__binding::{Out, Source, Text, Variable};
use std::ffi::c_void;
use std::marker::PhantomData;

/// The bytes of a buffer; NULL with length 0 is an empty one.
///
/// # Safety
///
/// `start` is NULL, or `len` bytes are readable there while the result is used.
#[inline(always)]
pub(crate) unsafe fn bytes<'a>(start: *const c_void, len: u32) -> Result<Source<'a>, Refusal> {
    // SAFETY: readable while the result is used, by the contract above; 32 bits of length fit an
    // object. A NULL is refused below before anything reads it.
    let source = unsafe { Source::new(start.cast(), len as usize) };
    if source.is_missing() {
        return Err(Refusal::Argument("the buffer is NULL and its length is not 0"));
    }
    Ok(source)
}

/// The refusal of a result that must be asked for.
pub(crate) const MISSING: Refusal = Refusal::Argument("the place for the result is NULL");

/// A copy of a text that must be there.
pub(crate) fn copied(text: Text<'_>, missing: &'static str) -> Result<String, Refusal> {
    copied_if_any(text)?.ok_or(Refusal::Argument(missing))
}

pub(crate) fn copied_if_any(text: Text<'_>) -> Result<Option<String>, Refusal> {
    let copied = text.get().map(|text| text.to_str().map(str::to_owned)).transpose();
    copied.map_err(|_| Refusal::Argument("the text is not UTF-8"))
}

/// A structure that begins with its size: NULL, or readable and writable for as many bytes as it
/// says.
#[repr(transparent)]
pub(crate) struct Report<'call, T>(Out<'call, T>);

/// The same, for results of so many bytes.
pub(crate) struct ReportPlace<'call, T> {
    place: Variable<'call, T>,
    size: usize,
}

impl<'call, T> Report<'call, T> {
    /// The structure, for as much of it as the program has room for.
    pub(crate) fn place(self, too_small: &'static str) -> Result<ReportPlace<'call, T>, Refusal> {
        let place = self.0.variable(MISSING)?;
        // SAFETY: the size is there in every version.
        let size = unsafe { place.as_ptr().cast::<u32>().read_unaligned() } as usize;
        if size <= size_of::<u32>() {
            return Err(Refusal::Argument(too_small));
        }
        Ok(ReportPlace { place, size: size.min(size_of::<T>()) })
    }
}

impl<T> ReportPlace<'_, T> {
    /// As the structure has it.
    pub(crate) fn size(&self) -> u32 {
        u32::try_from(self.size).unwrap_or(0)
    }

    pub(crate) fn fill(&self, value: &T) {
        let source = std::ptr::from_ref(value).cast::<u8>();
        // SAFETY: `size` bytes are writable by the program's promise, and `value` has them.
        unsafe { std::ptr::copy_nonoverlapping(source, self.place.as_ptr().cast(), self.size) };
    }
}

/// Options in a structure that begins with its size: NULL, or readable for as many bytes as it
/// says.
#[repr(transparent)]
pub(crate) struct Options<'call, T>(*const T, PhantomData<&'call T>);

impl<T: Copy> Options<'_, T> {
    /// # Safety
    ///
    /// As the type says.
    #[cfg(test)]
    pub(crate) unsafe fn new(pointer: *const T) -> Self {
        Self(pointer, PhantomData)
    }

    /// The options, if any. Later versions have more behind; what this one does not know cannot be
    /// obeyed.
    pub(crate) fn load(&self, wrong_size: &'static str) -> Result<Option<T>, Refusal> {
        // SAFETY: the size is there in every version.
        let size = (!self.0.is_null()).then(|| unsafe { self.0.cast::<u32>().read_unaligned() });
        match size {
            None => Ok(None),
            // SAFETY: as large as it says.
            Some(size) if size as usize == size_of::<T>() => Ok(Some(unsafe { self.0.read_unaligned() })),
            Some(_) => Err(Refusal::Argument(wrong_size)),
        }
    }
}

/// Refuses a NULL place for a result before anything is done.
pub(crate) fn present<T>(place: *mut T) -> Result<(), Refusal> {
    if place.is_null() { Err(MISSING) } else { Ok(()) }
}
