//! The smallest device that the contract allows: six methods and a log. It exposes the defaults.

use crate::device::pool::SpaceSource;
use crate::device::{
    Attribute, AttributeValue, CopyRequest, Device, DeviceApi, Dtype, Result, Space, Stream, cpu,
};
use crate::lock::lock;
use serde_json::{Value, json};
use std::sync::Mutex;

/// A device that uses host memory and logs its calls.
#[derive(Default)]
pub(crate) struct Recorder {
    log: Mutex<Vec<Value>>,
    copies: bool,
}

impl Recorder {
    /// Creates a device that cannot copy, because it keeps the default.
    pub(crate) fn new() -> Recorder {
        Recorder::default()
    }

    /// Creates a device that can copy.
    pub(crate) fn that_copies() -> Recorder {
        Recorder {
            copies: true,
            ..Recorder::default()
        }
    }

    /// Removes and returns the calls since the last time. Each is a list of the name and the arguments.
    pub(crate) fn take_log(&self) -> Vec<Value> {
        std::mem::take(&mut *lock(&self.log))
    }

    /// Returns the calls so far, and keeps them.
    pub(crate) fn peek(&self) -> Vec<Value> {
        lock(&self.log).clone()
    }

    /// Logs a call.
    fn note(&self, call: Value) {
        lock(&self.log).push(call);
    }
}

/// Returns the name of a data type.
fn dtype(hint: Dtype) -> String {
    hint.to_string()
}

// The CPU allocates the memory, so that a pool or a default can use the address. Only the calls are checked.
impl SpaceSource for Recorder {
    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space> {
        self.note(json!(["alloc", device.id, nbytes, alignment, dtype(hint)]));
        cpu::cpu().alloc(Device::CPU, nbytes, alignment, hint)
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        self.note(json!(["free", device.id]));
        // SAFETY: the caller guarantees it, and `alloc` took it from the CPU.
        unsafe { DeviceApi::free(cpu::cpu(), Device::CPU, space) }
    }
}

impl DeviceApi for Recorder {
    fn set_device(&self, device: Device) -> Result<()> {
        self.note(json!(["set-device", device.id]));
        Ok(())
    }

    fn attribute(&self, _: Device, attribute: Attribute) -> Result<AttributeValue> {
        self.note(json!(["ask", attribute.name()]));
        Ok(if attribute == Attribute::Exist {
            AttributeValue::Int(1)
        } else {
            AttributeValue::None
        })
    }

    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space> {
        SpaceSource::alloc(self, device, nbytes, alignment, hint)
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        // SAFETY: the caller guarantees it.
        unsafe { SpaceSource::free(self, device, space) }
    }

    unsafe fn copy(&self, copy: &CopyRequest, stream: Stream) -> Result<()> {
        let end = |device: Device, offset| json!([[device.kind, device.id], offset]);
        let (from, to) = (copy.from_device, copy.to_device);
        let ends = (end(from, copy.from_offset), end(to, copy.to_offset));
        self.note(json!([
            "copy",
            copy.nbytes,
            ends.0,
            ends.1,
            dtype(copy.hint)
        ]));
        if self.copies {
            // SAFETY: the caller guarantees it; all memory of this device is host memory.
            return unsafe { cpu::cpu().copy(copy, stream) };
        }
        // SAFETY: the default touches nothing.
        unsafe { Bare.copy(copy, stream) }
    }

    fn sync(&self, device: Device, _: Stream) -> Result<()> {
        self.note(json!(["sync", device.id]));
        Ok(())
    }
}

/// A device with only the defaults.
///
/// The default of `copy` is what DEV-18 demands of a device that cannot copy. The recorder calls it through this device, because
/// its own method hides the default.
struct Bare;

impl DeviceApi for Bare {
    fn set_device(&self, _: Device) -> Result<()> {
        Ok(())
    }

    fn attribute(&self, _: Device, _: Attribute) -> Result<AttributeValue> {
        Ok(AttributeValue::None)
    }

    fn alloc(&self, _: Device, _: usize, _: usize, _: Dtype) -> Result<Space> {
        Ok(Space::NULL)
    }

    unsafe fn free(&self, _: Device, _: Space) -> Result<()> {
        Ok(())
    }

    fn sync(&self, _: Device, _: Stream) -> Result<()> {
        Ok(())
    }
}
