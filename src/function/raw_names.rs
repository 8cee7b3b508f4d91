//! Names of functions that safe code cannot look up (FUN-10).

/// Names of functions that load code, take addresses as numbers, or change data that others may be reading. They are only as safe as
/// their arguments, which they cannot check. [`lookup`](super::registry::lookup) does not return them (FUN-10).
const RAW: [&str; 11] = [
    // The first two take addresses and call them as functions of the expected type.
    "ffi.FunctionFromExternC",
    "ffi.MakeFieldSetter",
    "ffi.Module.load_from_file.so",
    "ffi.ModuleLoadFromFile",
    "runtime.Device_SetStream",
    "runtime.Device_StreamFree",
    "runtime.Device_StreamSync",
    "runtime.Device_StreamSyncFromTo",
    "runtime.ModuleLoadFromFile",
    "runtime.TVMSetStream",
    // Empties an element of a tuple, which another holder of the tuple may be reading.
    "vm.builtin.tuple_reset_item",
];

/// Returns whether only [`lookup_raw`](super::registry::lookup_raw) returns the function of this name (FUN-10).
pub(crate) fn is_raw(name: &[u8]) -> bool {
    // A loader of device code creates functions from any file content, like the loader of `.so` files.
    let device_file = |name: &[u8]| {
        let extension = name.strip_prefix(b"ffi.Module.load_from_file.")?;
        crate::payload::file::file_format(std::str::from_utf8(extension).ok()?)
    };
    RAW.iter().any(|raw| raw.as_bytes() == name) || device_file(name).is_some()
}
