//! Memory of Python objects, by the buffer protocol or by DLPack. The only unsafe code of the
//! crate, with the payloads that `Message` shows.

#![allow(unsafe_code, reason = "buffers are addresses that Python promises to keep")]

use cci::Memory;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::{CStr, c_int, c_void};

/// Contiguous memory of a Python object, which the object keeps in place as long as this value.
/// Dropped while attached to the interpreter.
pub(crate) struct Export {
    start: *mut u8,
    len: u64,
    _owner: Owner,
}

// SAFETY: an address, which this value does not read; its owner is dropped while attached.
unsafe impl Send for Export {}
// SAFETY: as above.
unsafe impl Sync for Export {}

/// What keeps the memory.
enum Owner {
    View { _view: View },
    Tensor { _tensor: Tensor },
}

impl Export {
    /// The memory of an object that has the buffer protocol, or DLPack for memory of this host.
    ///
    /// # Errors
    ///
    /// TypeError, BufferError or ValueError that names `argument`.
    pub(crate) fn of(object: &Bound<'_, PyAny>, argument: &str, is_written: bool) -> PyResult<Self> {
        // SAFETY: a check of the object's type, while attached.
        if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0 {
            let view = View::of(object, is_written)
                .map_err(|why| PyBufferError::new_err(format!("{argument}: {}", why.value(object.py()))))?;
            let (start, len) = (view.0.buf.cast(), u64::try_from(view.0.len).unwrap_or(0));
            return Ok(Self { start, len, _owner: Owner::View { _view: view } });
        }
        if object.hasattr("__dlpack__")? {
            let tensor = Tensor::of(object, argument)?;
            let (start, len) = tensor.range(argument)?;
            return Ok(Self { start, len, _owner: Owner::Tensor { _tensor: tensor } });
        }
        let kind = object.get_type().name()?;
        Err(PyTypeError::new_err(format!(
            "{argument} is a {kind}, which has no memory to show; give bytes, a bytearray, a NumPy array, or anything \
             else with the buffer protocol or DLPack"
        )))
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The memory by its address.
    ///
    /// # Safety
    ///
    /// This value outlives the result, its copies and its registration.
    pub(crate) unsafe fn memory(&self) -> Memory {
        // SAFETY: the object keeps the memory in place as long as this value, by the caller as long
        // as the result. No reference to it is formed here, and Python's readers and writers take
        // it as it is.
        unsafe { Memory::new(self.start, self.len) }
    }
}

/// A view by the buffer protocol, given back when it is dropped.
struct View(Box<ffi::Py_buffer>);

impl View {
    fn of(object: &Bound<'_, PyAny>, is_written: bool) -> PyResult<Self> {
        let mut view = Box::new(ffi::Py_buffer::new());
        let flags = if is_written { ffi::PyBUF_WRITABLE } else { ffi::PyBUF_SIMPLE };
        // SAFETY: attached; the view does not move until it is given back.
        let status = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *view, flags) };
        if status == 0 { Ok(Self(view)) } else { Err(PyErr::fetch(object.py())) }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // Without an interpreter nobody reads or frees the memory any more.
        let _ = Python::try_attach(|_| {
            // SAFETY: attached; the view was filled by `of`, and is given back once.
            unsafe { ffi::PyBuffer_Release(&raw mut *self.0) };
        });
    }
}

/// `DLTensor` of the DLPack specification.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// `DLManagedTensor` of the DLPack specification.
#[repr(C)]
struct DlManaged {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DlManaged)>,
}

const DLPACK: &CStr = c"dltensor";
const TAKEN: &CStr = c"used_dltensor";
/// `kDLCPU`.
const HOST: i32 = 1;

/// A tensor by DLPack, deleted when it is dropped.
struct Tensor(*mut DlManaged);

impl Tensor {
    fn of(object: &Bound<'_, PyAny>, argument: &str) -> PyResult<Self> {
        let (kind, _): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
        if kind != HOST {
            return Err(PyValueError::new_err(format!(
                "{argument} lies on device {kind} of DLPack, not in memory of the host; copy it there first"
            )));
        }
        let capsule = object.call_method0("__dlpack__")?;
        let capsule = capsule.cast_into::<PyCapsule>().map_err(PyErr::from)?;
        // SAFETY: attached; a capsule, whose name is checked by the call.
        let tensor = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), DLPACK.as_ptr()) };
        if tensor.is_null() {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: attached; the name is static. From here on the tensor is ours, as the
        // specification has it.
        unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), TAKEN.as_ptr()) };
        Ok(Self(tensor.cast()))
    }

    /// Where its bytes begin, and how many there are.
    fn range(&self, argument: &str) -> PyResult<(*mut u8, u64)> {
        // SAFETY: the producer's tensor, valid until it is deleted, which `drop` does.
        let tensor = unsafe { &(*self.0).tensor };
        let dimensions = usize::try_from(tensor.ndim).unwrap_or(0);
        let at = |numbers: *const i64, index: usize| {
            // SAFETY: `shape`, and `strides` unless null, have `ndim` numbers.
            unsafe { *numbers.add(index) }
        };
        let mut elements: i64 = 1;
        for index in (0..dimensions).rev() {
            let size = at(tensor.shape, index);
            if !tensor.strides.is_null() && size > 1 && at(tensor.strides, index) != elements {
                return Err(PyValueError::new_err(format!("{argument} is not contiguous; copy it first")));
            }
            elements = elements.saturating_mul(size);
        }
        let bits = i64::from(tensor.bits) * i64::from(tensor.lanes);
        let len = u64::try_from(elements.saturating_mul(bits) / 8).unwrap_or(0);
        let offset = usize::try_from(tensor.byte_offset).unwrap_or(0);
        Ok((tensor.data.cast::<u8>().wrapping_add(offset), len))
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        let _ = Python::try_attach(|_| {
            // SAFETY: the producer's deleter, for its own tensor, once, while attached.
            unsafe {
                if let Some(delete) = (*self.0).deleter {
                    delete(self.0);
                }
            }
        });
    }
}

/// Fills a view of `len` bytes at `start`, which nobody writes through it.
///
/// # Safety
///
/// `view` and `flags` are those of a call of the buffer protocol. The bytes stay readable as long
/// as `owner` lives.
pub(crate) unsafe fn fill(
    view: *mut ffi::Py_buffer,
    flags: c_int,
    owner: &Bound<'_, PyAny>,
    start: *const u8,
    len: usize,
) -> PyResult<()> {
    // SAFETY: by the contract; the call refuses writable views, and holds the owner.
    let status =
        unsafe { ffi::PyBuffer_FillInfo(view, owner.as_ptr(), start.cast_mut().cast(), len.cast_signed(), 1, flags) };
    if status == 0 { Ok(()) } else { Err(PyErr::fetch(owner.py())) }
}
