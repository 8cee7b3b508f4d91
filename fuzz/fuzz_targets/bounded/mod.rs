//! A CPU device with a memory limit of 8 MiB. It rejects every request beyond the limit without allocating.

use std::collections::HashMap;
use std::sync::{Mutex, Once, PoisonError};
use tvmspec::device::cpu::cpu;
use tvmspec::device::{Attribute, AttributeValue, CopyRequest, Device, DeviceApi, Dtype, Space, Stream, manager};
use tvmspec::Error;
use tvmspec::function::ErrorKind;

type Result<T> = std::result::Result<T, Error>;

const MOST: usize = 8 << 20;

/// A wrapper around the library's CPU device. It maps the address of each live allocation to its size.
pub struct Bounded {
    taken: Mutex<Option<HashMap<usize, usize>>>,
}

static BOUNDED: Bounded = Bounded { taken: Mutex::new(None) };

/// Registers the bounded device as the CPU, once.
pub fn install() -> &'static Bounded {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: every space comes from the library's own CPU, and that CPU keeps DEV-12, DEV-13, DEV-41 and DEV-46.
        unsafe { manager::register("cpu", &BOUNDED) }.expect("a name of its own");
    });
    &BOUNDED
}

impl DeviceApi for Bounded {
    fn set_device(&self, device: Device) -> Result<()> {
        cpu().set_device(device)
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<AttributeValue> {
        cpu().attribute(device, attribute)
    }

    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = taken.get_or_insert_default();
        let all: usize = taken.values().sum();
        if all.saturating_add(nbytes).saturating_add(alignment) > MOST {
            return Err(Error::new(ErrorKind::Memory, format!("no memory for {nbytes} bytes (the bounded host)")));
        }
        let space = cpu().alloc(device, nbytes, alignment, hint)?;
        taken.insert(space.address(), nbytes);
        Ok(space)
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let known = taken.get_or_insert_default().remove(&space.address());
        assert!(known.is_some(), "freed memory was allocated here and not freed before");
        // SAFETY: the caller keeps the requirements of `free`.
        unsafe { cpu().free(device, space) }
    }

    unsafe fn copy(&self, copy: &CopyRequest, stream: Stream) -> Result<()> {
        // SAFETY: the caller keeps the requirements of `copy`.
        unsafe { cpu().copy(copy, stream) }
    }

    fn sync(&self, device: Device, stream: Stream) -> Result<()> {
        cpu().sync(device, stream)
    }

    fn supports_pointer_arithmetic(&self) -> bool {
        true
    }
}
