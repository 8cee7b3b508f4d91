//! What drivers have in common: [`Backend`] is a device API over the calls of one [`Driver`].
//!
//! | file     | what                                                                   |
//! |----------|------------------------------------------------------------------------|
//! | `mod`    | devices that are opened once, memory, copies by direction, the streams |
//! | `spaces` | handles: addresses, and numbers that lead to no memory                 |
//! | `code`   | modules: loaded once per device, kernels looked up once per module     |
//! | `events` | the order of streams, and timers, for drivers with events              |

pub(crate) mod code;
#[cfg(any(feature = "cuda", feature = "hip"))]
pub(crate) mod events;
pub(crate) mod spaces;

use crate::device::error::{absent, driver_error, refuse};
use crate::device::pool::{SpaceSource, WorkspacePools};
use crate::device::stream::set_current_device;
use crate::device::{
    Attribute, AttributeValue, CopyRequest, DEV_12, DEV_21, DEV_40, DEV_41, DEV_42, Device,
    DeviceApi, Dtype, Error, Result, Space, Stream,
};
use crate::rule::Kind;
use spaces::SpaceTable;
use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

/// The calls of one driver library.
///
/// [`Backend`] makes a device API of it: it checks what callers hand in, and calls with devices that `Driver::open_all`
/// returned, after [`Driver::enter`] on this thread.
pub(crate) trait Driver: Sized + 'static {
    /// A device with what is needed to work on it.
    type Opened: Send + Sync;
    /// What the driver knows memory by.
    type Memory: Copy + Send;
    /// How memory becomes a [`Space`].
    type Spaces: SpaceTable<Self::Memory>;
    /// What its calls fail with.
    type Failure;

    /// Its name in messages: `CUDA`, ...
    const NAME: &'static str;
    /// Its name in the registry and in errors of its calls: `cuda`, ...
    const KEY: &'static str;
    /// The device type, as id 0 of it.
    const DEVICE: Device;
    /// Whether there are streams besides the default one. Without, the contract's defaults hold (DEV-21).
    const HAS_STREAMS: bool = false;

    /// The one backend of this driver in the process. Nothing is loaded by naming it.
    fn backend() -> &'static Backend<Self>;

    /// The number of a failure, and what it means.
    fn explain(failure: Self::Failure) -> (i64, String);

    /// Loads the library and opens every device, in the order of the driver. Called once.
    fn open_all() -> Result<Vec<Self::Opened>>;

    /// Makes a device the one that this thread's calls are for, where the driver keeps one per thread.
    fn enter(_: &Self::Opened) -> Result<()> {
        Ok(())
    }

    /// As [`DeviceApi::attribute`], for a device that exists.
    fn attribute(on: &Self::Opened, attribute: Attribute) -> Result<AttributeValue>;

    /// As [`DeviceApi::target_property`].
    fn target_property(_: &Self::Opened, _: &str) -> Result<AttributeValue> {
        Ok(AttributeValue::None)
    }

    /// Takes memory. No driver has memory of no bytes: 0 is as 1.
    fn alloc(on: &Self::Opened, nbytes: usize) -> Result<Self::Memory>;

    /// Frees memory, after work that is queued and still uses it (DEV-46).
    ///
    /// # Safety
    ///
    /// The memory is of `alloc`, was not freed, and is not used by anything that is queued later.
    unsafe fn free(on: &Self::Opened, memory: Self::Memory) -> Result<()>;

    /// Rejects a part of memory that ends behind it, where the driver does not look (DEV-41).
    fn check(_: &SpacePart<Self>) -> Result<()> {
        Ok(())
    }

    /// Queues a copy from the host.
    ///
    /// # Safety
    ///
    /// `from` is valid for the bytes, and unchanged until the stream was synced. The stream is as for [`Driver::sync`].
    unsafe fn upload(
        on: &Self::Opened,
        from: *const c_void,
        to: SpacePart<Self>,
        stream: *mut c_void,
    ) -> Result<()>;

    /// Queues a copy to the host.
    ///
    /// # Safety
    ///
    /// `to` is valid for the bytes until the stream was synced. The stream is as for [`Driver::sync`].
    unsafe fn download(
        on: &Self::Opened,
        from: SpacePart<Self>,
        to: *mut c_void,
        stream: *mut c_void,
    ) -> Result<()>;

    /// Queues a copy within a device, of parts that do not overlap.
    ///
    /// # Safety
    ///
    /// Both parts hold the bytes. The stream is as for [`Driver::sync`].
    unsafe fn within(
        on: &Self::Opened,
        from: SpacePart<Self>,
        to: SpacePart<Self>,
        stream: *mut c_void,
    ) -> Result<()>;

    /// Copies from one device to another: through the host, unless the driver connects them. This thread has entered the
    /// source.
    ///
    /// # Safety
    ///
    /// As for [`Driver::within`] and [`Driver::sync`].
    unsafe fn across(
        (source, from): (&Self::Opened, SpacePart<Self>),
        (target, to): (&Self::Opened, SpacePart<Self>),
        stream: *mut c_void,
    ) -> Result<()> {
        let mut bytes = vec![0u8; from.nbytes];
        // SAFETY: `bytes` holds as many, and lives beyond the sync.
        unsafe { Self::download(source, from, bytes.as_mut_ptr().cast(), stream) }?;
        // A device that does not come to an end of its work may still write to the bytes, or read them: they stay.
        // SAFETY: as for this function.
        if let Err(error) = unsafe { Self::sync(source, stream) } {
            std::mem::forget(bytes);
            return Err(error);
        }
        Self::enter(target)?;
        // SAFETY: `bytes` holds as many, and lives unchanged beyond the sync, or for good.
        unsafe { Self::upload(target, bytes.as_ptr().cast(), to, stream) }?;
        // SAFETY: as for this function.
        unsafe { Self::sync(target, stream) }.inspect_err(|_| std::mem::forget(bytes))
    }

    /// Waits for what is queued on a stream; null is the default one.
    ///
    /// # Safety
    ///
    /// The stream is null, or of `create_stream` and not freed.
    unsafe fn sync(on: &Self::Opened, stream: *mut c_void) -> Result<()>;

    /// Creates a stream, where there are any.
    fn create_stream(_: &Self::Opened) -> Result<*mut c_void> {
        Ok(std::ptr::null_mut())
    }

    /// Frees a stream.
    ///
    /// # Safety
    ///
    /// The stream is of `create_stream`, was not freed, and is not used any more.
    unsafe fn free_stream(_: &Self::Opened, _: *mut c_void) -> Result<()> {
        Ok(())
    }

    /// Work queued on `after` from now on waits for what is queued on `before` now (DEV-38).
    ///
    /// # Safety
    ///
    /// As for [`Driver::sync`], of both.
    unsafe fn order(_: &Self::Opened, _before: *mut c_void, _after: *mut c_void) -> Result<()> {
        Ok(())
    }

    /// A failure of `call`.
    fn failure(call: impl std::fmt::Display, failure: Self::Failure) -> Error {
        let (code, meaning) = Self::explain(failure);
        driver_error(Self::KEY, call, code, meaning)
    }

    /// `result`, or an error that names the call.
    fn checked<T>(
        call: impl std::fmt::Display,
        result: std::result::Result<T, Self::Failure>,
    ) -> Result<T> {
        result.map_err(|failure| Self::failure(call, failure))
    }
}

/// Bytes of a space.
pub(crate) struct SpacePart<D: Driver> {
    pub(crate) memory: D::Memory,
    pub(crate) offset: usize,
    pub(crate) nbytes: usize,
}

/// A device API over the calls of a driver. Its devices are opened when the first question comes.
pub(crate) struct Backend<D: Driver> {
    devices: Arc<OpenedDevices<D>>,
    pools: WorkspacePools,
}

impl<D: Driver> Backend<D> {
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

    /// Device `id`, entered on this thread.
    pub(crate) fn enter(&self, id: i32) -> Result<&D::Opened> {
        self.devices.enter(id)
    }

    /// The memory behind a handle, and the id of its device.
    #[cfg(any(feature = "opencl", feature = "vulkan"))]
    pub(crate) fn memory(&self, space: Space) -> Result<(i32, D::Memory)> {
        self.devices.spaces.find(D::DEVICE, space)
    }

    /// The part of a space that one side of a copy is, and the id of its device.
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

    /// Whether both sides of a copy have a byte in common.
    fn overlaps(copy: &CopyRequest) -> bool {
        let (from, to) = if D::Spaces::ADDRESSES {
            (copy.from.address(), copy.to.address())
        } else if copy.from == copy.to {
            (0, 0)
        } else {
            // No memory has two handles.
            return false;
        };
        let from = from.wrapping_add(copy.from_offset);
        let to = to.wrapping_add(copy.to_offset);
        from < to.wrapping_add(copy.nbytes) && to < from.wrapping_add(copy.nbytes)
    }

    /// The handle of a stream, where the driver has any (DEV-21).
    fn handle(stream: Stream) -> Result<*mut c_void> {
        if D::HAS_STREAMS || stream == Stream::DEFAULT {
            return Ok(stream.handle());
        }
        refuse(
            DEV_21,
            Kind::Unsupported,
            format!("{} has only the default stream", D::NAME),
        )
    }
}

impl<D: Driver> DeviceApi for Backend<D> {
    fn set_device(&self, device: Device) -> Result<()> {
        self.enter(device.id)?;
        // A table of C names devices by id alone: the type is the driver's, not the caller's.
        set_current_device(Device::new(D::DEVICE.kind, device.id));
        Ok(())
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<AttributeValue> {
        let opened = self.enter(device.id);
        if attribute == Attribute::Exist {
            // DEV-07: a driver that is not here answers this one question.
            return Ok(AttributeValue::Int(opened.is_ok().into()));
        }
        D::attribute(opened?, attribute)
    }

    fn target_property(&self, device: Device, name: &str) -> Result<AttributeValue> {
        D::target_property(self.enter(device.id)?, name)
    }

    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space> {
        self.devices.alloc(device, nbytes, alignment, hint)
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        // SAFETY: the caller frees a space of `alloc` once, and does not use it afterwards (`DeviceApi::free`).
        unsafe { self.devices.free(device, space) }
    }

    unsafe fn copy(&self, copy: &CopyRequest, stream: Stream) -> Result<()> {
        let stream = Self::handle(stream)?;
        let nbytes = copy.nbytes;
        if nbytes == 0 {
            return Ok(());
        }
        let source = || self.part(copy.from_device, copy.from, copy.from_offset, nbytes);
        let target = || self.part(copy.to_device, copy.to, copy.to_offset, nbytes);
        match (copy.from_device.is_host(), copy.to_device.is_host()) {
            (true, true) => refuse(
                DEV_41,
                Kind::Type,
                format!("{} does not copy from host to host", D::NAME),
            ),
            (true, false) => {
                let (id, to) = target()?;
                let from = copy.from.0.wrapping_byte_add(copy.from_offset);
                // SAFETY: the host's side is valid until a sync (`DeviceApi::copy`).
                unsafe { D::upload(self.enter(id)?, from, to, stream) }
            }
            (false, true) => {
                let (id, from) = source()?;
                let to = copy.to.0.wrapping_byte_add(copy.to_offset);
                // SAFETY: the host's side is valid until a sync (`DeviceApi::copy`).
                unsafe { D::download(self.enter(id)?, from, to, stream) }
            }
            (false, false) => {
                let ((from_id, from), (to_id, to)) = (source()?, target()?);
                if from_id != to_id {
                    let target = self.enter(to_id)?;
                    let source = self.enter(from_id)?;
                    // SAFETY: both spaces hold the bytes (`DeviceApi::copy`).
                    return unsafe { D::across((source, from), (target, to), stream) };
                }
                if Self::overlaps(copy) {
                    let message = format!(
                        "{nbytes} bytes from {:#x} + {} to {:#x} + {} overlap",
                        copy.from.address(),
                        copy.from_offset,
                        copy.to.address(),
                        copy.to_offset
                    );
                    return refuse(DEV_40, Kind::Unsupported, message);
                }
                // SAFETY: both spaces hold the bytes (`DeviceApi::copy`).
                unsafe { D::within(self.enter(from_id)?, from, to, stream) }
            }
        }
    }

    fn sync(&self, device: Device, stream: Stream) -> Result<()> {
        let handle = Self::handle(stream)?;
        let opened = self.enter(device.id)?;
        stream.on(device)?;
        // SAFETY: null, or a stream of this type of device, as `Stream::on` just checked, that is not freed
        // (`Stream::from_handle`).
        unsafe { D::sync(opened, handle) }
    }

    fn create_stream(&self, device: Device) -> Result<Stream> {
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
        unsafe { D::free_stream(opened, stream.on(device)?) }
    }

    fn sync_streams(&self, device: Device, before: Stream, after: Stream) -> Result<()> {
        if !D::HAS_STREAMS {
            return Ok(());
        }
        let opened = self.enter(device.id)?;
        let (before, after) = (before.on(device)?, after.on(device)?);
        // SAFETY: null, or streams of this type of device, as `Stream::on` just checked, that are not freed
        // (`Stream::from_handle`).
        unsafe { D::order(opened, before, after) }
    }

    fn alloc_workspace(&self, device: Device, nbytes: usize, _: Dtype) -> Result<Space> {
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

/// The devices of a driver, and the memory that was taken there.
struct OpenedDevices<D: Driver> {
    /// All of the start is behind this one lock: some OpenCL platforms do not survive two threads in it.
    opened: OnceLock<Result<Vec<D::Opened>>>,
    spaces: D::Spaces,
}

impl<D: Driver> OpenedDevices<D> {
    fn all(&self) -> Result<&[D::Opened]> {
        let opened = self.opened.get_or_init(|| {
            let opened = D::open_all()?;
            if opened.is_empty() {
                return Err(absent(format!("{} is here, but no device", D::NAME)));
            }
            Ok(opened)
        });
        // FUN-05: each call has an error of its own, whose backtrace is of its way alone.
        opened
            .as_deref()
            .map_err(|error| error.with_message(error.message()))
    }

    fn enter(&self, id: i32) -> Result<&D::Opened> {
        let all = self.all()?;
        let Some(opened) = usize::try_from(id).ok().and_then(|id| all.get(id)) else {
            return refuse(
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
        // DEV-12: drivers with addresses align to 256 bytes, and to no more; a handle is no address.
        const ALIGNMENT: usize = 256;
        if D::Spaces::ADDRESSES && (alignment == 0 || !ALIGNMENT.is_multiple_of(alignment)) {
            let message = format!(
                "{} space is aligned at {ALIGNMENT} bytes, not at {alignment}",
                D::NAME
            );
            return refuse(DEV_12, Kind::Unsupported, message);
        }
        let memory = D::alloc(self.enter(device.id)?, nbytes)?;
        Ok(self.spaces.insert(device.id, memory))
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        let (id, memory) = self.spaces.remove(device, space)?;
        // SAFETY: the memory is of `alloc`, and the caller frees its space once (`SpaceSource::free`).
        unsafe { D::free(self.enter(id)?, memory) }
    }
}
