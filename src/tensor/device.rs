//! Devices as they are stored: a type number and an index. What the numbers are called is for the chapter `device`.

use super::TEN_10;
use crate::rule::Violation;
use crate::wire::{Cursor, Writer};

/// A device as DLPack and TVM store it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// The device type: 1 is the CPU, 2 CUDA, 4 OpenCL, ...
    pub kind: i32,
    /// Which device of that type.
    pub id: i32,
}

impl Device {
    /// The type number of the CPU, in every release.
    pub const CPU_KIND: i32 = 1;

    /// The CPU, where every stored tensor lives.
    pub const CPU: Device = Device {
        kind: Device::CPU_KIND,
        id: 0,
    };

    /// Reads both numbers (TEN-10).
    ///
    /// # Errors
    ///
    /// WIRE-01 when there are fewer bytes.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Device, Violation> {
        // TEN-10: signed, as DLPack has it: no number is invalid here (TEN-23 is about records).
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
