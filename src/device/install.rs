//! The functions that this chapter puts into the global registry, under the names that compiled code and frontends use.

use crate::device::built_in::OWN;
use crate::device::error::text;
use crate::device::manager::{self, Manager};
use crate::device::{Attribute, AttributeValue, Device, Space, Stream};
use crate::function::{self, ErrorKind, Function, registry};
use crate::module::workspace::{self, WorkspaceRequest};
use crate::value::{Any, AnyView};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Once;

/// Registers the devices of this crate as `device_api.<name>`, once, unless another device has the name.
///
/// This crate finds its devices without these entries. C callers that need the tables of the devices call this function. It is not
/// called by default, because a C++ runtime in the same process would treat the result of such a function as its own object.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (name, api) in OWN {
            registry::provide(&format!("device_api.{name}"), manager::factory(api()));
        }
    });
}

/// Provides the functions for devices, the loaders of device modules, and workspace.
pub(crate) fn provide() {
    functions();
    crate::device::load::provide();
    workspace::provide(&DeviceWorkspace);
}

/// Provides the functions for devices: attributes, the current device, and streams, which frontends hold as integers.
fn functions() {
    // FUN-11: these functions yield to those of a C++ runtime in the same process, regardless of the order of registration.
    let put = registry::provide;
    put("runtime.GetDeviceAttr", Function::from_packed(device_attr));
    put(
        // DEV-42, DEV-43: compiled host code calls this function before a launch.
        "__tvm_set_device",
        Function::named(None, |kind: i32, id: i32| {
            Manager::global().set_device(Device::new(kind, id))
        }),
    );
    put(
        // The older of two functions. Its arguments are type, index and a pointer. `runtime.Device_SetStream` takes a device and an
        // integer.
        "runtime.TVMSetStream",
        Function::named(None, |kind: i32, id: i32, stream: *mut c_void| {
            let device = Device::new(kind, id);
            // SAFETY: the registry returns this function only to `lookup_raw`, whose caller is responsible for the stream.
            let stream = unsafe { Stream::from_handle(device, stream) };
            manager::set_stream(device, stream)
        }),
    );
    put(
        "runtime.Device_StreamCreate",
        Function::named(None, |device: Device| {
            Manager::global()
                .api(device.kind)?
                .create_stream(device)
                .map(|stream| stream.handle() as i64)
        }),
    );
    put(
        "runtime.Device_StreamFree",
        Function::named(None, |device: Device, stream: i64| {
            let api = Manager::global().api(device.kind)?;
            // SAFETY: the registry returns this function only to `lookup_raw`, whose caller is responsible for the stream.
            let stream = unsafe { stream_of_handle(device, stream) };
            // SAFETY: the registry returns this function only to `lookup_raw`, whose caller is responsible for the stream.
            unsafe { api.free_stream(device, stream) }
        }),
    );
    put(
        "runtime.Device_SetStream",
        Function::named(None, |device: Device, stream: i64| {
            // SAFETY: the registry returns this function only to `lookup_raw`, whose caller is responsible for the stream.
            let stream = unsafe { stream_of_handle(device, stream) };
            manager::set_stream(device, stream)
        }),
    );
    put(
        "runtime.Device_StreamSync",
        Function::named(None, |device: Device, stream: i64| {
            // SAFETY: the registry returns this function only to `lookup_raw`, whose caller is responsible for the stream.
            let stream = unsafe { stream_of_handle(device, stream) };
            Manager::global().api(device.kind)?.sync(device, stream)
        }),
    );
    put(
        "runtime.Device_StreamSyncFromTo",
        Function::named(None, |device: Device, before: i64, after: i64| {
            // SAFETY: the registry returns this function only to `lookup_raw`, whose caller is responsible for the stream.
            let before = unsafe { stream_of_handle(device, before) };
            // SAFETY: the registry returns this function only to `lookup_raw`, whose caller is responsible for the stream.
            let after = unsafe { stream_of_handle(device, after) };
            Manager::global()
                .api(device.kind)?
                .sync_streams(device, before, after)
        }),
    );
}

/// Creates a stream from the integer that a frontend holds.
///
/// # Safety
///
/// As for [`Stream::from_handle`].
unsafe fn stream_of_handle(device: Device, stream: i64) -> Stream {
    // `runtime.Device_StreamCreate` made the integer from a pointer.
    let handle = std::ptr::with_exposed_provenance_mut(stream as usize);
    // SAFETY: the caller keeps the requirements of this function, which are the same.
    unsafe { Stream::from_handle(device, handle) }
}

/// Implements `runtime.GetDeviceAttr(type, id, number)`. One device may replace type and id, which releases do not accept (DEV-07).
fn device_attr(args: &[AnyView<'_>]) -> function::Result {
    let int = |at: usize| args.get(at).and_then(|arg| i32::try_from(*arg).ok());
    let (device, number) = match (args.len(), int(0), int(1), int(2)) {
        (3, Some(kind), Some(id), Some(number)) => (Device::new(kind, id), number),
        (2, _, Some(number), _) => (Device::try_from(args[0])?, number),
        _ => {
            return Err(function::Error::new(
                ErrorKind::Type,
                "runtime.GetDeviceAttr takes a device type, an id and a number",
            ));
        }
    };
    match Attribute::from_number(number) {
        Some(attribute) => Ok(Manager::global().attribute(device, attribute)?.into()),
        // DEV-08: an attribute number that no release has gets no answer.
        None => Ok(Any::none()),
    }
}

impl From<AttributeValue> for Any {
    fn from(value: AttributeValue) -> Any {
        match value {
            AttributeValue::None => Any::none(),
            AttributeValue::Int(number) => number.into(),
            AttributeValue::Text(text) => text.as_str().into(),
        }
    }
}

/// The workspace of compiled code, allocated from the device that the code names.
struct DeviceWorkspace;

impl workspace::WorkspaceSource for DeviceWorkspace {
    fn alloc(&self, request: WorkspaceRequest) -> Result<NonNull<c_void>, String> {
        let space = Manager::global()
            .workspace(&request)
            .map_err(|error| text(&error))?;
        // DEV-35: compiled code treats null as a failure, so a device that returns null has failed.
        NonNull::new(space.0).ok_or_else(|| "the device returned a null workspace".to_owned())
    }

    unsafe fn free(&self, device: (i32, i32), memory: NonNull<c_void>) -> Result<(), String> {
        let device = Device::new(device.0, device.1);
        let api = Manager::global()
            .api(device.kind)
            .map_err(|error| text(&error))?;
        // SAFETY: `memory` is from `alloc` of this device on this thread, and not freed yet.
        unsafe { api.free_workspace(device, Space(memory.as_ptr())) }.map_err(|error| text(&error))
    }
}
