//! Devices as files store them: a type number and an index. Chapter `device` has the names of the numbers.

use super::TEN_10;
use crate::rule::Violation;
use crate::wire::{Cursor, Writer};

/// A device as DLPack and TVM store it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

    /// Reads both numbers (TEN-10).
    ///
    /// # Errors
    ///
    /// WIRE-01 if the input is too short.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Device, Violation> {
        // TEN-10: the numbers are signed, as in DLPack. No number is invalid here (TEN-23 applies to records).
        cursor.within("device", None, |cursor| {
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
