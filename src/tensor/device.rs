//! Devices as files and C functions name them: a type number and an index.

use super::TEN_10;
use crate::rule::Violation;
use crate::wire::{Cursor, Writer};
use std::fmt;

/// The names of the type numbers in the newest release. The numbers had other names before: chapter `device` has them all.
pub(crate) const DEVICE_NAMES: [(i32, &str); 16] = [
    (1, "cpu"),
    (2, "cuda"),
    (3, "cuda_host"),
    (4, "opencl"),
    (7, "vulkan"),
    (8, "metal"),
    (9, "vpi"),
    (10, "rocm"),
    (11, "rocm_host"),
    (12, "ext_dev"),
    (13, "cuda_managed"),
    (14, "oneapi"),
    (15, "webgpu"),
    (16, "hexagon"),
    (17, "maia"),
    (18, "trn"),
];

/// A device as DLPack and TVM store it. The layout is that of DLPack's `DLDevice`, so that C functions can use it directly.
///
/// ```
/// use tvmspec::tensor::Device;
///
/// assert_eq!(Device::CPU.to_string(), "cpu:0");
/// assert_eq!(Device::new(2, 1).to_string(), "cuda:1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Device {
    /// The device type: 1 for the CPU, 2 for CUDA, 4 for OpenCL, ...
    pub kind: i32,
    /// The index of the device among those of its type.
    pub id: i32,
}

impl Device {
    /// The type number of the CPU, in every release.
    pub const CPU_KIND: i32 = 1;

    /// The CPU, on which every stored tensor is.
    pub const CPU: Device = Device {
        kind: Device::CPU_KIND,
        id: 0,
    };

    /// Creates device `id` of type `kind`.
    pub const fn new(kind: i32, id: i32) -> Device {
        Device { kind, id }
    }

    /// Returns the name of the device type in the newest release, such as `cuda`; `None` for a number without a name.
    pub fn name(self) -> Option<&'static str> {
        let named = DEVICE_NAMES.iter().find(|(kind, _)| *kind == self.kind);
        named.map(|(_, name)| *name)
    }

    /// Reads both numbers (TEN-10).
    ///
    /// # Errors
    ///
    /// Returns WIRE-01 if the input is too short.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Device, Violation> {
        // TEN-10: the numbers are signed, as in DLPack. No number is invalid here (TEN-23 applies to records).
        cursor.read_within("device", None, |cursor| {
            Ok(Device {
                kind: *cursor.i32("type", TEN_10)?,
                id: *cursor.i32("id", TEN_10)?,
            })
        })
    }

    /// Writes both numbers, each a little-endian i32 (TEN-10).
    pub fn write(&self, out: &mut Writer) {
        out.i32(self.kind);
        out.i32(self.id);
    }
}

/// Formats as `cuda:1`. A device type without a name is a number: `device type 99:1`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name}:{}", self.id),
            None => write!(f, "device type {}:{}", self.kind, self.id),
        }
    }
}
