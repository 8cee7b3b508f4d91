//! Workspace of compiled code: temporary memory that a function takes and returns while it runs.
//!
//! Compiled code calls `TVMBackendAllocWorkspace` for anything that does not fit on its stack. Memory of a device
//! is the business of its DeviceAPI, so a [`WorkspaceSource`] can be provided; until then host memory is served here.

use std::alloc::{self, Layout};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::RwLock;

/// Alignment in bytes of every workspace of a host: what vector loads of compiled code rely on.
pub(crate) const ALIGNMENT: usize = 64;

/// One request, as compiled code makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkspaceRequest {
    /// DLPack device type.
    pub(crate) device_type: i32,
    /// Number of the device within its type.
    pub(crate) device_id: i32,
    /// Bytes. 0 is a request like any other and gets memory.
    pub(crate) bytes: u64,
    /// What will be stored: DLPack type code and bits. A hint, one lane.
    pub(crate) hint: (i32, i32),
}

/// Where workspace comes from. The device chapter provides one that calls the DeviceAPI of the device.
pub(crate) trait WorkspaceSource: Send + Sync {
    /// Memory for `request`, aligned to [`ALIGNMENT`], or why there is none.
    fn alloc(&self, request: WorkspaceRequest) -> Result<NonNull<c_void>, String>;

    /// Frees what [`WorkspaceSource::alloc`] returned on the same thread.
    ///
    /// # Safety
    ///
    /// `memory` must come from `alloc` of the same device on the same thread and not have been freed.
    unsafe fn free(&self, device: (i32, i32), memory: NonNull<c_void>) -> Result<(), String>;
}

static SOURCE: RwLock<&'static dyn WorkspaceSource> = RwLock::new(&HostSource);

/// Sets where workspace comes from.
pub(crate) fn provide(source: &'static dyn WorkspaceSource) {
    if let Ok(mut slot) = SOURCE.write() {
        *slot = source;
    }
}

/// Memory for `request` (MOD-23).
pub(crate) fn alloc(request: WorkspaceRequest) -> Result<NonNull<c_void>, String> {
    current().alloc(request)
}

/// Frees `memory`.
///
/// # Safety
///
/// As [`WorkspaceSource::free`].
pub(crate) unsafe fn free(device: (i32, i32), memory: *mut c_void) -> Result<(), String> {
    let memory = NonNull::new(memory).ok_or("a null workspace cannot be freed")?;
    // SAFETY: `memory` is of `alloc` of the same device on the same thread, and not freed yet, by this contract.
    unsafe { current().free(device, memory) }
}

/// Where workspace comes from now.
pub(crate) fn current() -> &'static dyn WorkspaceSource {
    SOURCE.read().map_or(host(), |source| *source)
}

/// Where it comes from until a source is provided: memory of the host, and of no other device.
pub(crate) fn host() -> &'static dyn WorkspaceSource {
    &HostSource
}

/// Host memory with its size written in front of it.
struct HostSource;

impl WorkspaceSource for HostSource {
    fn alloc(&self, request: WorkspaceRequest) -> Result<NonNull<c_void>, String> {
        only_host(request.device_type)?;
        // MOD-23: 0 bytes get an address, too, since null means failure.
        let layout = layout(request.bytes)?;
        // SAFETY: the layout is never of size 0: it holds at least the line in front.
        let start = unsafe { alloc::alloc(layout) };
        let start = NonNull::new(start)
            .ok_or_else(|| format!("out of memory: {} bytes of workspace", request.bytes))?;
        // SAFETY: the line in front is `ALIGNMENT` bytes of this allocation, aligned for a u64.
        unsafe { start.cast::<u64>().write(request.bytes) };
        // SAFETY: the allocation is at least one line long.
        Ok(unsafe { start.add(ALIGNMENT) }.cast())
    }

    unsafe fn free(&self, device: (i32, i32), memory: NonNull<c_void>) -> Result<(), String> {
        only_host(device.0)?;
        // SAFETY: `memory` comes from `alloc`, by this contract, which puts one line with the size in front of what it returns.
        let start = unsafe { memory.as_ptr().cast::<u8>().sub(ALIGNMENT) };
        // SAFETY: `memory` comes from `alloc`, by this contract, which wrote the size there.
        let bytes = unsafe { ptr::read(start.cast::<u64>()) };
        let layout = layout(bytes)?;
        // SAFETY: not freed yet, by this contract, and of the size and alignment that it was allocated with.
        unsafe { alloc::dealloc(start, layout) };
        Ok(())
    }
}

fn layout(bytes: u64) -> Result<Layout, String> {
    // MOD-23: a whole line for the size in front, so that what follows it is aligned like the line.
    let size = usize::try_from(bytes)
        .ok()
        .and_then(|bytes| bytes.checked_add(ALIGNMENT));
    size.and_then(|size| Layout::from_size_align(size, ALIGNMENT).ok())
        .ok_or_else(|| format!("a workspace of {bytes} bytes cannot exist on this host"))
}

/// Without a device in the process memory of the host is all that there is (MOD-23).
fn only_host(device_type: i32) -> Result<(), String> {
    if device_type == 1 {
        Ok(())
    } else {
        Err(format!(
            "no DeviceAPI serves workspace for device type {device_type}: only the host (1) is served without one"
        ))
    }
}
