//! Workspace of compiled code: temporary memory that a function allocates and frees while it runs.
//!
//! Compiled code calls `TVMBackendAllocWorkspace` for memory that does not fit on its stack. The DeviceAPI of a device manages the
//! memory of the device, so a [`WorkspaceSource`] can be provided. Until then, only host memory is available, from this module.

use std::alloc::{self, Layout};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::RwLock;

/// Alignment of every workspace on a host, in bytes, on which vector loads of compiled code rely.
pub(crate) const ALIGNMENT: usize = 64;

/// One request of compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkspaceRequest {
    /// DLPack device type.
    pub(crate) device_type: i32,
    /// Number of the device within its type.
    pub(crate) device_id: i32,
    /// Size in bytes. A request of 0 bytes also gets memory.
    pub(crate) bytes: u64,
    /// DLPack type code and bits of the data, with one lane: a hint.
    pub(crate) hint: (i32, i32),
}

/// A source of workspace. The device chapter provides one that calls the DeviceAPI of the device.
pub(crate) trait WorkspaceSource: Send + Sync {
    /// Allocates memory for `request`, aligned to [`ALIGNMENT`]. The error is the reason of a failure.
    fn alloc(&self, request: WorkspaceRequest) -> Result<NonNull<c_void>, String>;

    /// Frees memory that [`WorkspaceSource::alloc`] returned on the same thread.
    ///
    /// # Safety
    ///
    /// `memory` must come from `alloc` of the same device on the same thread and not have been freed.
    unsafe fn free(&self, device: (i32, i32), memory: NonNull<c_void>) -> Result<(), String>;
}

static SOURCE: RwLock<&'static dyn WorkspaceSource> = RwLock::new(&HostSource);

/// Sets the source of workspace.
pub(crate) fn provide(source: &'static dyn WorkspaceSource) {
    if let Ok(mut slot) = SOURCE.write() {
        *slot = source;
    }
}

/// Allocates memory for `request` (MOD-23).
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
    // SAFETY: `memory` is from `alloc` for the same device on the same thread, and not freed yet, by this contract.
    unsafe { current().free(device, memory) }
}

/// Returns the present source of workspace.
pub(crate) fn current() -> &'static dyn WorkspaceSource {
    SOURCE.read().map_or(host(), |source| *source)
}

/// Returns the default source, which serves only memory of the host.
pub(crate) fn host() -> &'static dyn WorkspaceSource {
    &HostSource
}

/// Host memory, whose size is stored before it.
struct HostSource;

impl WorkspaceSource for HostSource {
    fn alloc(&self, request: WorkspaceRequest) -> Result<NonNull<c_void>, String> {
        only_host(request.device_type)?;
        // MOD-23: 0 bytes also get an address, because null means failure.
        let layout = layout(request.bytes)?;
        // SAFETY: the size of the layout is never 0, because it includes the line before the memory.
        let start = unsafe { alloc::alloc(layout) };
        let start = NonNull::new(start)
            .ok_or_else(|| format!("out of memory: {} bytes of workspace", request.bytes))?;
        // SAFETY: the line before the memory is `ALIGNMENT` bytes of this allocation, aligned for a u64.
        unsafe { start.cast::<u64>().write(request.bytes) };
        // SAFETY: the allocation is at least one line long.
        Ok(unsafe { start.add(ALIGNMENT) }.cast())
    }

    unsafe fn free(&self, device: (i32, i32), memory: NonNull<c_void>) -> Result<(), String> {
        only_host(device.0)?;
        // SAFETY: `memory` comes from `alloc`, by this contract, which puts one line with the size before the address that it returns.
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
    // MOD-23: the size takes a whole line, so that the memory after it is aligned like the line.
    let size = usize::try_from(bytes)
        .ok()
        .and_then(|bytes| bytes.checked_add(ALIGNMENT));
    size.and_then(|size| Layout::from_size_align(size, ALIGNMENT).ok())
        .ok_or_else(|| format!("a workspace of {bytes} bytes cannot exist on this host"))
}

/// Rejects memory that is not on the host, if no device source was provided (MOD-23).
fn only_host(device_type: i32) -> Result<(), String> {
    if device_type == 1 {
        Ok(())
    } else {
        Err(format!(
            "no DeviceAPI serves workspace for device type {device_type}: only the host (1) is served without one"
        ))
    }
}
