//! Names of functions that safe code does not find (FUN-10).

/// Names whose functions load code, take addresses as numbers, or change what others may be looking at: what they do is as
/// safe as their arguments, which they cannot check. [`lookup`](super::registry::lookup) does not return them (FUN-10).
const RAW: [&str; 11] = [
    // The first two take addresses of functions, which are called as if they were of the right type.
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
    // Empties a place of a tuple, whose element another holder of the tuple may be looking at.
    "vm.builtin.tuple_reset_item",
];

/// Whether only [`lookup_raw`](super::registry::lookup_raw) returns the function of this name (FUN-10).
pub(crate) fn is_raw(name: &[u8]) -> bool {
    // A loader of device code makes functions of whatever the file holds, as that of `.so` does.
    let device_file = |name: &[u8]| {
        let extension = name.strip_prefix(b"ffi.Module.load_from_file.")?;
        crate::payload::file::file_format(std::str::from_utf8(extension).ok()?)
    };
    RAW.iter().any(|raw| raw.as_bytes() == name) || device_file(name).is_some()
}
