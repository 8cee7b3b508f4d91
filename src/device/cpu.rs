//! The host as a device: aligned memory, immediate copies, no streams.

use crate::device::error::out_of_memory;
use crate::device::pool::{SpaceSource, WorkspacePools};
use crate::device::{
    Attribute, AttributeValue, CopyRequest, DEV_12, DEV_21, Device, DeviceApi, Dtype, Result,
    Space, Stream,
};
use crate::rule::Kind;
use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

/// The CPU device. [`cpu`] returns the only one.
pub struct Cpu {
    /// The pools of workspace, per thread (DEV-25 to DEV-35).
    pools: WorkspacePools,
}

debug_fields!(Cpu: );

/// Returns the CPU device of this process.
pub fn cpu() -> &'static Cpu {
    static CPU: OnceLock<Cpu> = OnceLock::new();
    CPU.get_or_init(|| Cpu {
        pools: WorkspacePools::new(Arc::new(Heap)),
    })
}

impl DeviceApi for Cpu {
    fn set_device(&self, _: Device) -> Result<()> {
        Ok(())
    }

    fn attribute(&self, _: Device, attribute: Attribute) -> Result<AttributeValue> {
        match attribute {
            Attribute::Exist => Ok(AttributeValue::Int(1)),
            // DEV-08: upstream's CPU answers only this since 0.20, with -1 if the size is unknown.
            Attribute::TotalGlobalMemory => {
                Ok(AttributeValue::Int(total_memory().unwrap_or(UNKNOWN)))
            }
            _ => Ok(AttributeValue::None),
        }
    }

    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space> {
        let space = Heap.alloc(device, nbytes, alignment, hint)?;
        // Safe code can read a tensor over this memory before anything is written, so the bytes are set to zero. SAFETY: the space
        // was just allocated with `nbytes` bytes, and nothing else has it.
        unsafe { space.0.cast::<u8>().write_bytes(0, nbytes) };
        Ok(space)
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        // SAFETY: the caller frees a space of `alloc` once, and does not use it afterwards (`DeviceApi::free`).
        unsafe { Heap.free(device, space) }
    }

    unsafe fn copy(&self, copy: &CopyRequest, stream: Stream) -> Result<()> {
        only_default(stream)?;
        // DEV-40: upstream uses `memcpy`, whose result for overlapping ranges depends on the sizes. This copy handles overlap.
        let nbytes = copy.nbytes;
        let from = copy.from.0.cast::<u8>().wrapping_add(copy.from_offset);
        let to = copy.to.0.cast::<u8>().wrapping_add(copy.to_offset);
        // SAFETY: both spaces hold the bytes, and they may overlap. A copy of no bytes accepts any pointer.
        unsafe { std::ptr::copy(from, to, nbytes) };
        Ok(())
    }

    fn sync(&self, _: Device, stream: Stream) -> Result<()> {
        only_default(stream)
    }

    fn alloc_workspace(&self, device: Device, nbytes: usize, _: Dtype) -> Result<Space> {
        self.pools.alloc(device, nbytes)
    }

    unsafe fn free_workspace(&self, device: Device, space: Space) -> Result<()> {
        self.pools.free(device, space)
    }

    fn pools_workspace(&self) -> bool {
        true
    }

    fn supports_pointer_arithmetic(&self) -> bool {
        true
    }
}

/// Rejects every stream except the default, because the CPU has no streams (DEV-21). Upstream ignores the stream, and with it the
/// order that the caller wanted.
fn only_default(stream: Stream) -> Result<()> {
    DEV_21.demand(Kind::Unsupported, stream == Stream::DEFAULT, || {
        "the CPU has only the default stream".into()
    })?;
    Ok(())
}

/// The aligned memory of the process. Its bytes are not initialized.
struct Heap;

impl SpaceSource for Heap {
    fn alloc(&self, _: Device, nbytes: usize, alignment: usize, _: Dtype) -> Result<Space> {
        // DEV-12: `posix_memalign` rejects an alignment below that of a pointer, so the alignment is raised to that.
        let alignment = alignment.max(size_of::<usize>());
        let failed = || out_of_memory(nbytes, format!("the heap, alignment {alignment}"));
        DEV_12.demand(Kind::Unsupported, alignment.is_power_of_two(), || {
            format!("no memory is aligned to {alignment} bytes")
        })?;
        // An empty space also needs its own address, so at least one byte is allocated.
        let data = aligned::alloc(nbytes.max(1), alignment).ok_or_else(failed)?;
        Ok(Space(data))
    }

    unsafe fn free(&self, _: Device, space: Space) -> Result<()> {
        // SAFETY: `space` came from `alloc`, which has it from `aligned::alloc`, and was not freed.
        unsafe { aligned::free(space.0) };
        Ok(())
    }
}

/// The platform's aligned allocation. Unlike `std::alloc`, it frees without the size.
#[cfg(unix)]
mod aligned {
    use super::c_void;

    unsafe extern "C" {
        fn posix_memalign(out: *mut *mut c_void, alignment: usize, nbytes: usize) -> i32;
        #[link_name = "free"]
        fn libc_free(data: *mut c_void);
    }

    /// Allocates `nbytes` at a multiple of `alignment`, a power of two. Returns `None` if there is not enough memory.
    pub(super) fn alloc(nbytes: usize, alignment: usize) -> Option<*mut c_void> {
        let mut data = std::ptr::null_mut();
        // SAFETY: `data` is an out pointer for the result; the alignment is a power of two and a multiple of a pointer.
        let failed = unsafe { posix_memalign(&raw mut data, alignment, nbytes) };
        (failed == 0).then_some(data)
    }

    /// Frees memory.
    ///
    /// # Safety
    ///
    /// `data` came from `alloc` and was not freed.
    pub(super) unsafe fn free(data: *mut c_void) {
        // SAFETY: `data` came from `posix_memalign` and was not freed.
        unsafe { libc_free(data) };
    }
}

#[cfg(windows)]
mod aligned {
    use super::c_void;

    unsafe extern "C" {
        // Windows has no `posix_memalign`, and its `free` cannot free the memory of `_aligned_malloc`.
        fn _aligned_malloc(nbytes: usize, alignment: usize) -> *mut c_void;
        fn _aligned_free(data: *mut c_void);
    }

    /// Allocates `nbytes` at a multiple of `alignment`, a power of two. Returns `None` if there is not enough memory.
    pub(super) fn alloc(nbytes: usize, alignment: usize) -> Option<*mut c_void> {
        // SAFETY: the alignment is a power of two.
        let data = unsafe { _aligned_malloc(nbytes, alignment) };
        (!data.is_null()).then_some(data)
    }

    /// Frees memory.
    ///
    /// # Safety
    ///
    /// `data` came from `alloc` and was not freed.
    pub(super) unsafe fn free(data: *mut c_void) {
        // SAFETY: `data` came from `_aligned_malloc` and was not freed.
        unsafe { _aligned_free(data) };
    }
}

/// The total memory if it is unknown (DEV-08).
const UNKNOWN: i64 = -1;

/// Returns the bytes of memory of this machine, if the system can tell.
#[cfg(target_os = "linux")]
fn total_memory() -> Option<i64> {
    use std::ffi::{c_int, c_long};
    // The values of `_SC_PAGESIZE` and `_SC_PHYS_PAGES` on Linux, in both glibc and musl.
    const PAGE_SIZE: c_int = 30;
    const PHYSICAL_PAGES: c_int = 85;
    unsafe extern "C" {
        safe fn sysconf(name: c_int) -> c_long;
    }
    // An unknown value is negative.
    let size = u64::try_from(sysconf(PAGE_SIZE)).ok()?;
    let count = u64::try_from(sysconf(PHYSICAL_PAGES)).ok()?;
    i64::try_from(size.checked_mul(count)?).ok()
}

#[cfg(not(target_os = "linux"))]
fn total_memory() -> Option<i64> {
    None
}
