//! The common part of all drivers: [`Backend`] is a device API on the calls of one [`Driver`].
//!
//! | file     | content                                                              |
//! |----------|----------------------------------------------------------------------|
//! | `driver` | the interface to one driver library                                  |
//! | `mod`    | opening devices once, memory, the direction of copies, streams       |
//! | `spaces` | handles of memory: addresses, or numbers that are not addresses      |
//! | `code`   | modules: loaded once per device, kernels looked up once per module   |
//! | `events` | the order of streams, and timers, for drivers with events            |

pub(crate) mod code;
mod driver;
#[cfg(any(feature = "cuda", feature = "hip"))]
pub(crate) mod events;
pub(crate) mod spaces;

pub(crate) use driver::{Driver, SpacePart};

use crate::device::error::{is_no_driver, missing_driver, reject};
use crate::device::pool::{SpaceSource, WorkspacePools};
use crate::device::stream::set_current_device;
use crate::device::{
    Attribute, AttributeValue, CopyRequest, DEV_12, DEV_21, DEV_40, DEV_41, DEV_42, Device,
    DeviceApi, Dtype, Result, Space, Stream,
};
use crate::rule::Kind;
use spaces::SpaceTable;
use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

/// A device API on the calls of a driver. The first call opens the devices.
pub(crate) struct Backend<D: Driver> {
    /// The opened devices. The pools share them, because they allocate their blocks there.
    devices: Arc<OpenedDevices<D>>,
    /// The pools of workspace, per thread and device (DEV-25 to DEV-35).
    pools: WorkspacePools,
}

impl<D: Driver> Backend<D> {
    /// Creates a backend without opening a device or loading a library.
    pub(crate) fn new() -> Backend<D> {
        let devices = Arc::new(OpenedDevices {
            opened: OnceLock::new(),
            spaces: D::Spaces::new(D::NAME),
        });
        Backend {
            pools: WorkspacePools::new(devices.clone()),
            devices,
        }
    }

    /// Returns device `id`, after it was entered on this thread.
    pub(crate) fn enter(&self, id: i32) -> Result<&D::Opened> {
        self.devices.enter(id)
    }

    /// Returns the memory of a handle, and the id of its device.
    #[cfg(any(feature = "opencl", feature = "vulkan"))]
    pub(crate) fn memory(&self, space: Space) -> Result<(i32, D::Memory)> {
        self.devices.spaces.find(D::DEVICE, space)
    }

    /// Returns one side of a copy as a part of a space, and the id of its device.
    fn part(
        &self,
        device: Device,
        space: Space,
        offset: usize,
        nbytes: usize,
    ) -> Result<(i32, SpacePart<D>)> {
        let (id, memory) = self.devices.spaces.find(device, space)?;
        let part = SpacePart {
            memory,
            offset,
            nbytes,
        };
        D::check(&part)?;
        Ok((id, part))
    }

    /// Returns whether the two sides of a copy share a byte.
    fn overlaps(copy: &CopyRequest) -> bool {
        let (from, to) = if D::Spaces::ADDRESSES {
            (copy.from.address(), copy.to.address())
        } else if copy.from == copy.to {
            (0, 0)
        } else {
            // Two different handles never mean the same memory.
            return false;
        };
        let from = from.wrapping_add(copy.from_offset);
        let to = to.wrapping_add(copy.to_offset);
        from < to.wrapping_add(copy.nbytes) && to < from.wrapping_add(copy.nbytes)
    }

    /// Returns the driver's handle of a stream; fails for a driver without streams (DEV-21).
    fn handle(stream: Stream) -> Result<*mut c_void> {
        if D::HAS_STREAMS || stream == Stream::DEFAULT {
            return Ok(stream.handle());
        }
        reject(
            DEV_21,
            Kind::Unsupported,
            format!("{} has only the default stream", D::NAME),
        )
    }
}

impl<D: Driver> DeviceApi for Backend<D> {
    fn set_device(&self, device: Device) -> Result<()> {
        self.enter(device.id)?;
        // A C table passes only the id of a device. The type is therefore the driver's, not the caller's.
        set_current_device(Device::new(D::DEVICE.kind, device.id));
        Ok(())
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<AttributeValue> {
        let opened = self.enter(device.id);
        if attribute == Attribute::Exist {
            // DEV-07: a missing driver answers only this attribute.
            return Ok(AttributeValue::Int(opened.is_ok().into()));
        }
        D::attribute(opened?, attribute)
    }

    fn target_property(&self, device: Device, name: &str) -> Result<AttributeValue> {
        D::target_property(self.enter(device.id)?, name)
    }

    fn has_driver(&self) -> bool {
        let opened = self.devices.all();
        !opened.is_err_and(|why| is_no_driver(&why, D::NAME))
    }

    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space> {
        self.devices.alloc(device, nbytes, alignment, hint)
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        // SAFETY: the caller frees a space of `alloc` once, and does not use it afterwards (`DeviceApi::free`).
        unsafe { self.devices.free(device, space) }
    }

    unsafe fn copy(&self, copy: &CopyRequest, stream: Stream) -> Result<()> {
        let handle = Self::handle(stream)?;
        // DEV-38: checked against the device types of the copy, because a C table uses other numbers than the driver.
        stream.handle_for(copy.device())?;
        let stream = handle;
        let nbytes = copy.nbytes;
        // DEV-39: several drivers reject a copy of no bytes, so none reaches them.
        if nbytes == 0 {
            return Ok(());
        }
        let source = || self.part(copy.from_device, copy.from, copy.from_offset, nbytes);
        let target = || self.part(copy.to_device, copy.to, copy.to_offset, nbytes);
        match (copy.from_device.is_host(), copy.to_device.is_host()) {
            (true, true) => reject(
                DEV_41,
                Kind::Type,
                format!("{} does not copy from host to host", D::NAME),
            ),
            (true, false) => {
                let (id, to) = target()?;
                let from = copy.from.0.wrapping_byte_add(copy.from_offset);
                // SAFETY: the host side is valid until a sync (`DeviceApi::copy`).
                unsafe { D::upload(self.enter(id)?, from, to, stream) }
            }
            (false, true) => {
                let (id, from) = source()?;
                let to = copy.to.0.wrapping_byte_add(copy.to_offset);
                // SAFETY: the host side is valid until a sync (`DeviceApi::copy`).
                unsafe { D::download(self.enter(id)?, from, to, stream) }
            }
            (false, false) => {
                let ((from_id, from), (to_id, to)) = (source()?, target()?);
                if from_id != to_id {
                    // The source is entered last, as `Driver::across` expects.
                    let target = self.enter(to_id)?;
                    let source = self.enter(from_id)?;
                    // SAFETY: both spaces hold the bytes (`DeviceApi::copy`).
                    return unsafe { D::copy_across_devices((source, from), (target, to), stream) };
                }
                // DEV-40: no driver here defines the result of an overlapping copy within a device. Such a copy is therefore rejected.
                if Self::overlaps(copy) {
                    let message = format!(
                        "{nbytes} bytes from {:#x} + {} to {:#x} + {} overlap",
                        copy.from.address(),
                        copy.from_offset,
                        copy.to.address(),
                        copy.to_offset
                    );
                    return reject(DEV_40, Kind::Unsupported, message);
                }
                // SAFETY: both spaces hold the bytes (`DeviceApi::copy`).
                unsafe { D::copy_within_device(self.enter(from_id)?, from, to, stream) }
            }
        }
    }

    fn sync(&self, device: Device, stream: Stream) -> Result<()> {
        let handle = Self::handle(stream)?;
        let opened = self.enter(device.id)?;
        stream.handle_for(device)?;
        // SAFETY: null, or a stream of this type of device, as `Stream::on` just checked, that is not freed
        // (`Stream::from_handle`).
        unsafe { D::sync(opened, handle) }
    }

    fn create_stream(&self, device: Device) -> Result<Stream> {
        // DEV-21: without streams, creation returns the default stream, and freeing and ordering do nothing.
        if !D::HAS_STREAMS {
            return Ok(Stream::DEFAULT);
        }
        let made = D::create_stream(self.enter(device.id)?)?;
        // SAFETY: the driver just made it for this device; freeing it is `unsafe`.
        Ok(unsafe { Stream::from_handle(device, made) })
    }

    unsafe fn free_stream(&self, device: Device, stream: Stream) -> Result<()> {
        if !D::HAS_STREAMS {
            return Ok(());
        }
        let opened = self.enter(device.id)?;
        // SAFETY: the caller frees a stream of `create_stream` once, and does not use it afterwards
        // (`DeviceApi::free_stream`).
        unsafe { D::free_stream(opened, stream.handle_for(device)?) }
    }

    fn sync_streams(&self, device: Device, before: Stream, after: Stream) -> Result<()> {
        if !D::HAS_STREAMS {
            return Ok(());
        }
        let opened = self.enter(device.id)?;
        let (before, after) = (before.handle_for(device)?, after.handle_for(device)?);
        // SAFETY: null, or streams of this type of device, as `Stream::on` just checked, that are not freed
        // (`Stream::from_handle`).
        unsafe { D::order(opened, before, after) }
    }

    fn alloc_workspace(&self, device: Device, nbytes: usize, _: Dtype) -> Result<Space> {
        // DEV-25: pools take bytes from the device, so the hint is dropped.
        self.pools.alloc(device, nbytes)
    }

    unsafe fn free_workspace(&self, device: Device, space: Space) -> Result<()> {
        self.pools.free(device, space)
    }

    fn pools_workspace(&self) -> bool {
        true
    }

    fn supports_pointer_arithmetic(&self) -> bool {
        D::Spaces::ADDRESSES
    }
}

/// The devices of a driver, and the memory that is allocated there.
struct OpenedDevices<D: Driver> {
    /// The opened devices. One lock protects the whole start, because some OpenCL platforms crash when two threads start them.
    opened: OnceLock<Result<Vec<D::Opened>>>,
    /// The live memory, by the handles of the callers.
    spaces: D::Spaces,
}

impl<D: Driver> OpenedDevices<D> {
    /// Returns every device of the driver. The first call opens them. A driver that is missing then stays missing in this process.
    fn all(&self) -> Result<&[D::Opened]> {
        let opened = self.opened.get_or_init(|| {
            let opened = D::open_all()?;
            if opened.is_empty() {
                return Err(missing_driver(format!(
                    "{} is here, but no device",
                    D::NAME
                )));
            }
            Ok(opened)
        });
        // FUN-05: each call gets a new error, so that its backtrace is its own.
        opened
            .as_deref()
            .map_err(|error| error.with_message(error.message()))
    }

    /// Returns device `id`, made current on this thread in the driver; fails with DEV-42 for an index without a device.
    fn enter(&self, id: i32) -> Result<&D::Opened> {
        let all = self.all()?;
        let Some(opened) = usize::try_from(id).ok().and_then(|id| all.get(id)) else {
            return reject(
                DEV_42,
                Kind::Missing,
                format!("Invalid device id {id}: {} are here", all.len()),
            );
        };
        D::enter(opened)?;
        Ok(opened)
    }
}

impl<D: Driver> SpaceSource for OpenedDevices<D> {
    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, _: Dtype) -> Result<Space> {
        // DEV-12: drivers with addresses align to 256 bytes and not further. A handle has no alignment.
        const ALIGNMENT: usize = 256;
        if D::Spaces::ADDRESSES && (alignment == 0 || !ALIGNMENT.is_multiple_of(alignment)) {
            let message = format!(
                "{} space is aligned at {ALIGNMENT} bytes, not at {alignment}",
                D::NAME
            );
            return reject(DEV_12, Kind::Unsupported, message);
        }
        let memory = D::alloc(self.enter(device.id)?, nbytes)?;
        Ok(self.spaces.insert(device.id, memory))
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        // DEV-41: removed from the table before it is freed, so that a second free is rejected even if the first one failed.
        let (id, memory) = self.spaces.remove(device, space)?;
        // SAFETY: the memory is from `alloc`, and the caller frees its space once (`SpaceSource::free`).
        unsafe { D::free(self.enter(id)?, memory) }
    }
}
