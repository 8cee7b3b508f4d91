//! The least device that the contract allows: six methods and a log. What it shows are the defaults.

use crate::device::pool::SpaceSource;
use crate::device::{
    Attribute, AttributeValue, CopyRequest, Device, DeviceApi, Dtype, Result, Space, Stream, cpu,
};
use std::sync::Mutex;

/// A device whose memory is the host's and that writes down what it is asked.
#[derive(Default)]
pub(crate) struct Recorder {
    log: Mutex<Vec<String>>,
    copies: bool,
}

impl Recorder {
    /// A device that cannot copy: it keeps the default.
    pub(crate) fn new() -> Recorder {
        Recorder::default()
    }

    /// A device that can copy.
    pub(crate) fn that_copies() -> Recorder {
        Recorder {
            copies: true,
            ..Recorder::default()
        }
    }

    /// What was asked since the last time, and nothing more.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut *self.lock())
    }

    /// What was asked so far, kept.
    pub(crate) fn peek(&self) -> Vec<String> {
        self.lock().clone()
    }

    /// The log, also behind a thread that panicked.
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.log
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Notes a call as one line.
    fn note(&self, call: String) {
        self.lock().push(call);
    }
}

// Memory is taken from the CPU: what a pool or a default does with an address is real, and only the calls are looked at.
impl SpaceSource for Recorder {
    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space> {
        let Dtype { code, bits, lanes } = hint;
        self.note(format!(
            "alloc {nbytes} align {alignment} hint {code}:{bits}x{lanes} on {}",
            device.id
        ));
        cpu::cpu().alloc(Device::CPU, nbytes, alignment, hint)
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        self.note(format!("free on {}", device.id));
        // SAFETY: the caller's promise, and `alloc` took it from the CPU.
        unsafe { DeviceApi::free(cpu::cpu(), Device::CPU, space) }
    }
}

impl DeviceApi for Recorder {
    fn set_device(&self, device: Device) -> Result<()> {
        self.note(format!("set {}", device.id));
        Ok(())
    }

    fn attribute(&self, _: Device, attribute: Attribute) -> Result<AttributeValue> {
        self.note(format!("attribute {}", attribute.number()));
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
        // SAFETY: the caller's promise.
        unsafe { SpaceSource::free(self, device, space) }
    }

    unsafe fn copy(&self, copy: &CopyRequest, stream: Stream) -> Result<()> {
        self.note(format!(
            "copy {} from +{} on {}:{} to +{} on {}:{} hint {}:{}x{}",
            copy.nbytes,
            copy.from_offset,
            copy.from_device.kind,
            copy.from_device.id,
            copy.to_offset,
            copy.to_device.kind,
            copy.to_device.id,
            copy.hint.code,
            copy.hint.bits,
            copy.hint.lanes,
        ));
        if self.copies {
            // SAFETY: the caller's promise; all memory of this device is the host's.
            return unsafe { cpu::cpu().copy(copy, stream) };
        }
        // SAFETY: the default touches nothing.
        unsafe { Bare.copy(copy, stream) }
    }

    fn sync(&self, device: Device, _: Stream) -> Result<()> {
        self.note(format!("sync {}", device.id));
        Ok(())
    }
}

/// Only the defaults.
///
/// The default of `copy` is what DEV-18 demands of a device that cannot; the recorder reaches it through this one, as its own method hides it.
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
