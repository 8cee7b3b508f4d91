//! Device types: their numbers, and their names in each release.
//!
//! A number alone is ambiguous: 11 was OpenGL and is now pinned ROCm memory; 14 was Hexagon and is now oneAPI.

use crate::device::error::reject;
use crate::device::{DEV_06, DEV_57, Device, Result};
use crate::release::Release;
use crate::rule::Kind;
use std::sync::{PoisonError, RwLock};

/// The first number of a remote type. A remote number `kind` means type `kind % 128` in session `kind / 128 - 1` (DEV-57).
pub(crate) const REMOTE: i32 = 128;

/// A name of a number, with the releases that use it: number, name, first minor release, last minor release.
struct DeviceTypeName(i32, &'static str, u8, u8);

/// The names under which the manager searches the registry (DEV-01). A last release of 27 means that the name is still used.
const NAMES: &[DeviceTypeName] = &[
    DeviceTypeName(1, "cpu", 2, 27),
    DeviceTypeName(2, "gpu", 2, 7),
    DeviceTypeName(2, "cuda", 8, 27),
    // DLPack has 3 from the start; up to 0.6 TVM has no name for it.
    DeviceTypeName(3, "cpu_pinned", 7, 7),
    DeviceTypeName(3, "cuda_host", 8, 27),
    DeviceTypeName(4, "opencl", 2, 27),
    DeviceTypeName(5, "aocl", 4, 10),
    DeviceTypeName(6, "sdaccel", 4, 10),
    DeviceTypeName(7, "vulkan", 3, 27),
    DeviceTypeName(8, "metal", 2, 27),
    DeviceTypeName(9, "vpi", 2, 27),
    DeviceTypeName(10, "rocm", 2, 27),
    // 0.11 left 11, 13 and 14 to the types of DLPack and moved its own types to 32 and above.
    DeviceTypeName(11, "opengl", 2, 6),
    DeviceTypeName(11, "rocm_host", 11, 27),
    DeviceTypeName(12, "ext_dev", 2, 27),
    DeviceTypeName(13, "micro_dev", 6, 7),
    DeviceTypeName(13, "cuda_managed", 11, 27),
    DeviceTypeName(14, "hexagon", 7, 10),
    DeviceTypeName(14, "oneapi", 11, 27),
    DeviceTypeName(15, "webgpu", 7, 27),
    DeviceTypeName(16, "hexagon", 11, 27),
    // 17 is `maia` in DLPack; no release has a name for it.
    DeviceTypeName(18, "trn", 25, 27),
    DeviceTypeName(32, "aocl", 11, 19),
    DeviceTypeName(33, "sdaccel", 11, 19),
    DeviceTypeName(34, "opengl", 11, 19),
    // This name has no underscore, unlike that of 13 in 0.6 and 0.7.
    DeviceTypeName(35, "microdev", 11, 19),
];

/// Returns the name of device type `kind` in `release`. The registry key is `device_api.<name>` (DEV-01, DEV-06).
pub(crate) fn name_in(kind: i32, release: Release) -> Result<&'static str> {
    match named(kind, release).or_else(|| added(kind, release)) {
        Some(name) => Ok(name),
        // DEV-06: releases index a table of 32 entries (36 since 0.12) without a check. A larger number reads past its end; in 0.27
        // the number 127 ends in a segmentation fault.
        None => reject(
            DEV_06,
            Kind::UnknownKind,
            format!("unknown type = {kind}: no device of {release} has this number"),
        ),
    }
}

/// Returns the name that a release itself has for `kind`.
fn named(kind: i32, release: Release) -> Option<&'static str> {
    let at = release.minor();
    NAMES.iter().find_map(|name| {
        let DeviceTypeName(number, text, since, until) = *name;
        (number == kind && since <= at && at <= until).then_some(text)
    })
}

/// The names that this process added for its own numbers. Up to 0.27 upstream compiles the names into the runtime.
static ADDED: RwLock<Vec<(i32, &'static str)>> = RwLock::new(Vec::new());

/// Returns the name that this process added for `kind`. Older releases cannot have it.
fn added(kind: i32, release: Release) -> Option<&'static str> {
    if release != Release::LAST {
        return None;
    }
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    added
        .iter()
        .find_map(|(number, name)| (*number == kind).then_some(*name))
}

/// Adds `name` for a number that no release uses: greater than 18 and below 128, or 5, 6 and 17, which are free again.
///
/// # Errors
///
/// Returns DEV-06 if the number or the name is taken, or the number is out of range.
pub fn add(kind: i32, name: &'static str) -> Result<()> {
    // DEV-57: from 128 on the number includes a session, so a device of this process cannot have it.
    let local = kind.is_positive() && kind < REMOTE;
    // The lock covers both the check and the insertion. If two threads add the same number, one is rejected.
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    let among_added = added
        .iter()
        .any(|(number, text)| *number == kind || *text == name);
    let taken =
        named(kind, Release::LAST).is_some() || builtin_number(name).is_some() || among_added;
    if !local || taken {
        let message =
            format!("device type {kind} cannot be `{name}`: the number or the name is taken");
        return reject(DEV_06, Kind::Duplicate, message);
    }
    added.push((kind, name));
    Ok(())
}

/// Returns the number of `name` in the newest release.
pub fn number_of(name: &str) -> Option<i32> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let is_added = |row: &(i32, &str)| (row.1 == name).then_some(row.0);
    builtin_number(name).or_else(|| added.iter().find_map(is_added))
}

/// Returns the number that the newest release itself has for `name`.
fn builtin_number(name: &str) -> Option<i32> {
    // A name that the newest release no longer uses is free, and may be added again.
    let last = Release::LAST.minor();
    NAMES.iter().find_map(|row| {
        let DeviceTypeName(number, text, _, until) = *row;
        (text == name && until == last).then_some(number)
    })
}

impl Device {
    /// Creates CUDA device `id`.
    pub const fn cuda(id: i32) -> Device {
        Device::new(2, id)
    }

    /// Creates OpenCL device `id`.
    pub const fn opencl(id: i32) -> Device {
        Device::new(4, id)
    }

    /// Creates Vulkan device `id`.
    pub const fn vulkan(id: i32) -> Device {
        Device::new(7, id)
    }

    /// Creates ROCm device `id`.
    pub const fn rocm(id: i32) -> Device {
        Device::new(10, id)
    }

    /// Creates external device `id`. Devices without a device type number use this type.
    pub const fn ext_dev(id: i32) -> Device {
        Device::new(12, id)
    }

    /// Returns whether this is host memory, pinned or not. Any device may copy from and to it (DEV-20).
    pub fn is_host(self) -> bool {
        // DEV-20: `cpu`, `cuda_host`, `rocm_host`. Upstream does not name `cuda_managed` (13) here.
        matches!(self.kind, 1 | 3 | 11)
    }

    /// Returns the RPC session of a remote device (DEV-57).
    #[cfg_attr(not(any(feature = "rpc", feature = "suite")), allow(dead_code))]
    pub(crate) fn session(self) -> Option<i32> {
        (self.kind >= REMOTE).then_some(self.kind / REMOTE - 1)
    }

    /// Returns this device as a device of `session`; rejects a device that is already remote (DEV-57).
    #[cfg_attr(not(any(feature = "rpc", feature = "suite")), allow(dead_code))]
    pub(crate) fn in_session(self, session: i32) -> Result<Device> {
        if let Some(there) = self.session() {
            return reject(
                DEV_57,
                Kind::Type,
                format!("the device is of session {there} already"),
            );
        }
        // DEV-57: upstream's table of sessions has 32 entries.
        if !(0..32).contains(&session) {
            return reject(
                DEV_57,
                Kind::Limit,
                format!("session {session}: there are 0 to 31"),
            );
        }
        Ok(Device::new(self.kind | (REMOTE * (session + 1)), self.id))
    }

    /// Returns the device as its own process names it.
    #[cfg_attr(not(any(feature = "rpc", feature = "suite")), allow(dead_code))]
    pub(crate) fn without_session(self) -> Device {
        Device::new(self.kind % REMOTE, self.id)
    }

    /// Returns `name:id`, up to 0.13 `name(id)`. A remote device has the prefix `remote[session]-` (DEV-58).
    #[cfg_attr(not(feature = "suite"), allow(dead_code))]
    pub(crate) fn text_in(self, release: Release) -> Result<String> {
        let bare = self.without_session();
        let name = name_in(bare.kind, release)?;
        let parentheses = release.minor() <= 13;
        let text = if parentheses {
            format!("{name}({})", self.id)
        } else {
            format!("{name}:{}", self.id)
        };
        Ok(match self.session() {
            None => text,
            // Up to 0.7 the number in the text was larger by one, and session 0 of type 0 was not recognized as remote.
            Some(session) if release.minor() <= 7 => format!("remote[{}]-{text}", session + 1),
            Some(session) => format!("remote[{session}]-{text}"),
        })
    }

    /// Parses `name` or `name:id`, with the names of the newest release.
    pub fn parse(text: &str) -> Option<Device> {
        let (name, id) = text.split_once(':').unwrap_or((text, "0"));
        Some(Device::new(number_of(name)?, id.parse().ok()?))
    }
}
