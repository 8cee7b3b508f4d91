//! The functions of `libamdhip64.so`, as `hip_runtime_api.h` of ROCm declares them. They are found by their C names, which are the
//! same in ROCm 5, 6 and 7.

use super::HipFailure;
use crate::device::Result;
use crate::device::error::no_driver;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// `hipError_t`.
pub(super) type HipCode = c_int;

/// `hipSuccess`.
pub(super) const SUCCESS: HipCode = 0;
/// `hipErrorOutOfMemory`.
pub(super) const OUT_OF_MEMORY: HipCode = 2;

/// `hipStreamNonBlocking`: the default stream does not wait for this one.
pub(super) const STREAM_NON_BLOCKING: c_uint = 1;
/// `hipEventDefault`.
pub(super) const EVENT_DEFAULT: c_uint = 0;
/// `hipEventDisableTiming`.
pub(super) const EVENT_DISABLE_TIMING: c_uint = 2;

/// `hipMemcpyKind`.
pub(super) const HOST_TO_DEVICE: c_int = 1;
/// `hipMemcpyKind`.
pub(super) const DEVICE_TO_HOST: c_int = 2;
/// `hipMemcpyKind`.
pub(super) const DEVICE_TO_DEVICE: c_int = 3;

/// `HIP_LAUNCH_PARAM_BUFFER_POINTER`: the address of the arguments follows.
pub(super) const PARAM_BUFFER_POINTER: usize = 1;
/// `HIP_LAUNCH_PARAM_BUFFER_SIZE`: the address of their size follows.
pub(super) const PARAM_BUFFER_SIZE: usize = 2;
/// `HIP_LAUNCH_PARAM_END`.
pub(super) const PARAM_END: usize = 3;

/// The file names of the library. The name without a number belongs to the development package.
const NAMES: [&str; 4] = [
    "libamdhip64.so",
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
];

/// The values of `hipDeviceAttribute_t`, with the numbers of ROCm 5 and later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum HipQuestion {
    ClockRate = 5,
    L2CacheSize = 19,
    ComputeCapabilityMajor = 23,
    MaxBlockDimX = 26,
    MaxBlockDimY = 27,
    MaxBlockDimZ = 28,
    MaxThreadsPerBlock = 56,
    ComputeCapabilityMinor = 61,
    MultiprocessorCount = 63,
    MaxRegistersPerBlock = 71,
    MaxSharedMemoryPerBlock = 74,
    WarpSize = 87,
}

/// Declares the functions of the library, and looks all of them up.
macro_rules! functions {
    ($($field:ident = $name:literal: fn($($of:ty),*) -> $returns:ty;)*) => {
        /// The functions that this crate calls, and the library that contains them.
        pub(super) struct HipLibrary {
            $(pub(super) $field: unsafe extern "C" fn($($of),*) -> $returns,)*
            properties: Option<PropertiesFunction>,
            /// The library. The functions are valid as long as it is loaded.
            _library: Library,
        }

        impl HipLibrary {
            fn from_library(library: Library) -> Result<HipLibrary> {
                Ok(HipLibrary {
                    $($field: {
                        // SAFETY: the function of this name has this type, by the header of ROCm.
                        let symbol = unsafe { library.get(concat!($name, "\0").as_bytes()) };
                        // A library that lacks a function is rejected now rather than at a later call.
                        *symbol.map_err(|error| {
                            no_driver("HIP", format_args!("the driver library lacks {}: {error}", $name))
                        })?
                    },)*
                    properties: PropertiesFunction::find_newest(&library),
                    _library: library,
                })
            }
        }
    };
}

functions! {
    init = "hipInit": fn(c_uint) -> HipCode;
    error_name = "hipGetErrorName": fn(HipCode) -> *const c_char;
    runtime_version = "hipRuntimeGetVersion": fn(*mut c_int) -> HipCode;
    device_count = "hipGetDeviceCount": fn(*mut c_int) -> HipCode;
    set_device = "hipSetDevice": fn(c_int) -> HipCode;
    device_attribute = "hipDeviceGetAttribute": fn(*mut c_int, c_int, c_int) -> HipCode;
    device_name = "hipDeviceGetName": fn(*mut c_char, c_int, c_int) -> HipCode;
    device_memory = "hipDeviceTotalMem": fn(*mut usize, c_int) -> HipCode;
    malloc = "hipMalloc": fn(*mut *mut c_void, usize) -> HipCode;
    free = "hipFree": fn(*mut c_void) -> HipCode;
    copy = "hipMemcpyAsync": fn(*mut c_void, *const c_void, usize, c_int, *mut c_void) -> HipCode;
    copy_peer = "hipMemcpyPeerAsync": fn(*mut c_void, c_int, *const c_void, c_int, usize, *mut c_void) -> HipCode;
    create_stream = "hipStreamCreateWithFlags": fn(*mut *mut c_void, c_uint) -> HipCode;
    destroy_stream = "hipStreamDestroy": fn(*mut c_void) -> HipCode;
    sync_stream = "hipStreamSynchronize": fn(*mut c_void) -> HipCode;
    wait_event = "hipStreamWaitEvent": fn(*mut c_void, *mut c_void, c_uint) -> HipCode;
    create_event = "hipEventCreateWithFlags": fn(*mut *mut c_void, c_uint) -> HipCode;
    record_event = "hipEventRecord": fn(*mut c_void, *mut c_void) -> HipCode;
    sync_event = "hipEventSynchronize": fn(*mut c_void) -> HipCode;
    elapsed = "hipEventElapsedTime": fn(*mut f32, *mut c_void, *mut c_void) -> HipCode;
    destroy_event = "hipEventDestroy": fn(*mut c_void) -> HipCode;
    load_module = "hipModuleLoadData": fn(*mut *mut c_void, *const c_void) -> HipCode;
    unload_module = "hipModuleUnload": fn(*mut c_void) -> HipCode;
    module_function = "hipModuleGetFunction": fn(*mut *mut c_void, *mut c_void, *const c_char) -> HipCode;
    launch = "hipModuleLaunchKernel": fn(
        *mut c_void, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, *mut c_void, *mut *mut c_void, *mut *mut c_void
    ) -> HipCode;
}

/// The function that fills in `hipDeviceProp_t`, and the offset of `gcnArchName` in that struct.
///
/// ROCm 6 changed the struct. Its header defines `hipGetDeviceProperties` as a macro for `hipGetDevicePropertiesR0600`. The function
/// with the old name still writes the struct of ROCm 5. The offsets come from the headers of ROCm 5.2 and 6.0. The first was tested on
/// hardware, and both were tested on the simulated library.
#[derive(Clone, Copy)]
struct PropertiesFunction {
    call: unsafe extern "C" fn(*mut HipProperties, c_int) -> HipCode,
    arch_name: usize,
}

/// A buffer for the struct: 792 bytes in ROCm 5, 1472 in ROCm 6, and room for drivers that write more.
#[repr(C, align(16))]
struct HipProperties([u8; 4096]);

/// The size of `gcnArchName` in bytes, with the NUL at the end.
const ARCH_NAME_BYTES: usize = 256;

impl PropertiesFunction {
    /// Returns the newest version that the library has, or `None`. A library without any is still usable for everything else.
    fn find_newest(library: &Library) -> Option<PropertiesFunction> {
        const NEWEST_FIRST: [(&[u8], usize); 2] = [
            (b"hipGetDevicePropertiesR0600\0", 1160),
            (b"hipGetDeviceProperties\0", 396),
        ];
        NEWEST_FIRST.into_iter().find_map(|(name, arch_name)| {
            // SAFETY: the function of this name has this type, by the header of ROCm.
            let call = unsafe { library.get(name) }.ok()?;
            Some(PropertiesFunction {
                call: *call,
                arch_name,
            })
        })
    }
}

impl HipLibrary {
    /// Returns the architecture of a device, such as `gfx90a:sramecc+:xnack-`, or `None` if the driver wrote no name.
    pub(super) fn arch_name(
        &self,
        device: c_int,
    ) -> std::result::Result<Option<String>, HipFailure> {
        // DEV-08: without an answer the attribute is null, not an error.
        let Some(PropertiesFunction { call, arch_name }) = self.properties else {
            return Ok(None);
        };
        let mut properties = HipProperties([0; 4096]);
        // SAFETY: there is room for more than the driver writes.
        match unsafe { call(&raw mut properties, device) } {
            SUCCESS => {
                let name = properties.0.get(arch_name..arch_name + ARCH_NAME_BYTES);
                Ok(name.and_then(text))
            }
            code => Err(HipFailure {
                code,
                meaning: self.meaning(code),
            }),
        }
    }
}

/// Returns the text in `bytes` up to the first NUL, or `None` if it is empty or has no NUL.
pub(super) fn text(bytes: &[u8]) -> Option<String> {
    let text = CStr::from_bytes_until_nul(bytes).ok()?.to_string_lossy();
    (!text.is_empty()).then(|| text.into_owned())
}

impl HipLibrary {
    /// Loads the library under the first name that is found.
    pub(super) fn load() -> Result<HipLibrary> {
        let libraries = NAMES.iter().filter_map(|name| {
            // SAFETY: loading a library runs its initialisers; the system's HIP is trusted with that.
            unsafe { Library::new(*name) }.ok()
        });
        // The first library that loads is used. If it lacks a function, that is reported; the next name is not tried.
        match libraries.into_iter().next() {
            Some(library) => HipLibrary::from_library(library),
            None => Err(no_driver(
                "HIP",
                "the driver library (libamdhip64.so) was not found",
            )),
        }
    }

    /// Returns the driver's name of a failure, such as `hipErrorNoDevice`.
    pub(super) fn meaning(&self, code: HipCode) -> String {
        // SAFETY: the function accepts any number.
        let name = unsafe { (self.error_name)(code) };
        if name.is_null() {
            return String::new();
        }
        // SAFETY: a NUL-terminated string of the library, which stays.
        let name = unsafe { CStr::from_ptr(name) };
        name.to_string_lossy().into_owned()
    }
}
