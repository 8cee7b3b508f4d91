//! A device in a table of C functions, in both directions.

use super::CodedProgram;
use super::failing_table::{FAILED, as_a_table, device_from_table, last_error_null, returning};
use super::recorder::Recorder;
use crate::conformance::behaviour::{Failure, Outcome, demand, expect};
use crate::device::c_table::{self, CopyBytes, DeviceTable};
use crate::device::{
    Attribute, AttributeValue, CopyRequest, DEV_18, DEV_38, Device, DeviceApi, Dtype, Error,
    Result as DeviceResult, Space, Stream, cpu,
};
use crate::function::registry;
use crate::rule::Kind;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

/// The programs for tables.
pub(super) const PROGRAMS: &[CodedProgram] = &[
    ("device/table-that-fails", fails),
    ("device/table-without-streams", without_streams),
    ("device/table-answers", answers),
    ("device/table-of-a-device-that-panics", panics),
    ("device/stream-of-another-type-is-rejected", other_streams),
    ("device/tables-of-own-devices", own_devices),
    ("device/own-table-keeps-its-errors", own_table),
];

/// Checks that `result` is a rejection by this rule with this kind.
pub(super) fn rejected<T: std::fmt::Debug>(
    result: DeviceResult<T>,
    rule: crate::rule::Rule,
    kind: Kind,
    what: &str,
) -> Outcome {
    match result.as_ref().map_err(Error::violation) {
        Err(Some(broken)) => {
            let names = (broken.rule().id(), broken.kind().name());
            expect(names, (rule.id(), kind.name()), what)
        }
        _ => Failure::broken(format!("{what}: {result:?}")),
    }
}

/// A copy of no bytes, for which no device may dereference a pointer.
const NOTHING: CopyRequest = CopyRequest {
    from: Space::NULL,
    from_offset: 0,
    to: Space::NULL,
    to_offset: 0,
    nbytes: 0,
    from_device: Device::CPU,
    to_device: Device::ext_dev(0),
    hint: Dtype::UINT8,
};

/// Runs `device/table-that-fails` (DEV-02).
fn fails() -> Outcome {
    let device = Device::ext_dev(0);
    let api = device_from_table(returning(FAILED))?;
    let default = Stream::DEFAULT;
    let results = [
        ("set_device", api.set_device(device)),
        (
            "attribute",
            api.attribute(device, Attribute::Exist).map(drop),
        ),
        ("alloc", api.alloc(device, 1, 64, Dtype::UINT8).map(drop)),
        // SAFETY: the function does not read its arguments.
        ("free", unsafe { api.free(device, Space::NULL) }),
        // SAFETY: the function does not read its arguments.
        ("copy", unsafe { api.copy(&NOTHING, default) }),
        ("sync", api.sync(device, default)),
        ("create_stream", api.create_stream(device).map(drop)),
        // SAFETY: the function does not read its arguments.
        ("free_stream", unsafe { api.free_stream(device, default) }),
        ("sync_streams", api.sync_streams(device, default, default)),
    ];
    for (name, result) in results {
        let text = result.err().map(|error| error.message().to_owned());
        let expected = format!("a device of C: {name} failed with 7 (out of luck)");
        expect(text, Some(expected), name)?;
    }
    // `last_error` may be missing, or may return no text.
    for last_error in [Some(last_error_null as _), None] {
        let table = DeviceTable {
            last_error,
            ..returning(FAILED)
        };
        let failed = device_from_table(table)?.sync(device, default).err();
        let text = failed.map(|error| error.message().to_owned());
        let expected = "a device of C: sync failed with 7".to_owned();
        expect(text, Some(expected), "a failure without a text")?;
    }
    Ok(())
}

/// Runs `device/table-without-streams` (DEV-21).
fn without_streams() -> Outcome {
    let device = Device::ext_dev(0);
    let api = device_from_table(DeviceTable {
        create_stream: None,
        free_stream: None,
        sync_streams: None,
        ..returning(0)
    })?;
    let stream = api.create_stream(device)?;
    expect(stream, Stream::DEFAULT, "a new stream")?;
    api.sync_streams(device, stream, stream)?;
    // SAFETY: created above.
    Ok(unsafe { api.free_stream(device, stream) }?)
}

/// Runs `device/table-answers` (DEV-08).
fn answers() -> Outcome {
    let api = device_from_table(returning(0))?;
    let expected = [
        AttributeValue::None,
        AttributeValue::Int(5),
        AttributeValue::Text("five".into()),
        AttributeValue::None,
        AttributeValue::None,
    ];
    for (attribute, expected) in Attribute::ALL.into_iter().zip(expected) {
        let answer = api.attribute(Device::ext_dev(0), attribute)?;
        expect(answer, expected, attribute.name())?;
    }
    Ok(())
}

/// A device that panics without a message on the terminal.
struct Panics;

/// Panics without the hook that prints a message, because dozens of messages in a run look like a broken suite.
fn panic<T>() -> T {
    std::panic::resume_unwind(Box::new(()))
}

impl DeviceApi for Panics {
    fn set_device(&self, _: Device) -> DeviceResult<()> {
        panic()
    }

    fn attribute(&self, _: Device, _: Attribute) -> DeviceResult<AttributeValue> {
        panic()
    }

    fn alloc(&self, _: Device, _: usize, _: usize, _: Dtype) -> DeviceResult<Space> {
        panic()
    }

    unsafe fn free(&self, _: Device, _: Space) -> DeviceResult<()> {
        panic()
    }

    fn sync(&self, _: Device, _: Stream) -> DeviceResult<()> {
        panic()
    }
}

/// Returns the present result of the table's `last_error`.
///
/// It is empty if the table lacks the function, which is optional.
fn last_error(table: &DeviceTable) -> String {
    let Some(last_error) = table.last_error else {
        return String::new();
    };
    // SAFETY: the function of the table, called with its context.
    let text = unsafe { last_error(table.context) };
    // SAFETY: a NUL-terminated string, until the next call.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// Runs `device/table-of-a-device-that-panics` (DEV-02).
fn panics() -> Outcome {
    let table = c_table::of_api(&Panics);
    // SAFETY: the function of the table, called with its context.
    let code = unsafe { (table.set_device)(table.context, 0) };
    expect(code, -1, "setting a device that panics")?;
    expect(
        last_error(table).as_str(),
        "the device panicked",
        "`last_error`",
    )?;
    let recorder: &'static Recorder = Box::leak(Box::default());
    let table = c_table::of_api(recorder);
    let bytes = CopyBytes {
        from: null_mut(),
        from_offset: 0,
        to: null_mut(),
        to_offset: 0,
        nbytes: 0,
        from_device: [1, 0],
        to_device: [12, 0],
        hint: [1, 8, 1],
    };
    // SAFETY: the function of the table, called with its context, and a copy of no bytes.
    let code = unsafe { (table.copy)(table.context, &raw const bytes, null_mut()) };
    expect(code, -1, "a copy of a device that cannot")?;
    let text = last_error(table);
    let named = text.contains("Device does not support CopyDataFromTo.");
    demand(named, || format!("`last_error` is `{text}`"))?;
    // SAFETY: the function of the table, called with its context.
    let code = unsafe { (table.set_device)(table.context, 0) };
    expect(code, 0, "setting the device")
}

/// Runs `device/stream-of-another-type-is-rejected` (DEV-38).
fn other_streams() -> Outcome {
    let recorder: &'static Recorder = Box::leak(Box::default());
    let api = as_a_table(recorder);
    let device = Device::ext_dev(0);
    // SAFETY: nothing dereferences the handle: every call with it is rejected.
    let other =
        unsafe { Stream::from_handle(Device::cuda(0), std::ptr::without_provenance_mut(64)) };
    let default = Stream::DEFAULT;
    // SAFETY: the call is rejected.
    let freed = unsafe { api.free_stream(device, other) };
    let out = CopyRequest {
        from_device: device,
        to_device: Device::CPU,
        ..NOTHING
    };
    // SAFETY: the calls are rejected.
    let copied_in = unsafe { api.copy(&NOTHING, other) };
    // SAFETY: as above.
    let copied_out = unsafe { api.copy(&out, other) };
    let results = [
        ("a copy to the device", copied_in),
        ("a copy to the host", copied_out),
        ("a sync", api.sync(device, other)),
        ("freeing it", freed),
        ("waiting for it", api.sync_streams(device, other, default)),
        ("letting it wait", api.sync_streams(device, default, other)),
        ("making it the thread's", api.set_stream(device, other)),
    ];
    for (what, result) in results {
        rejected(result, DEV_38, Kind::Type, what)?;
    }
    expect(
        recorder.take_log(),
        Vec::<serde_json::Value>::new(),
        "calls",
    )?;
    Ok(api.set_stream(device, default)?)
}

/// Runs `device/tables-of-own-devices` (DEV-01).
fn own_devices() -> Outcome {
    let installed = || {
        let code = crate::capi::device::tvmspec_install_devices();
        expect(code, 0, "installing the devices")?;
        // SAFETY: the function is only called to get its pointer.
        let function = unsafe { registry::lookup_raw(b"device_api.cpu") };
        let Some(function) = function else {
            return Err(Failure::Broken(
                "there is no function `device_api.cpu`".into(),
            ));
        };
        Ok(<*mut c_void>::try_from(&function.call_packed(&[])?)?)
    };
    let pointer = installed()?;
    expect(installed()?, pointer, "the table after a second call")?;
    // SAFETY: the address of a table of this library, which is never freed.
    let table = unsafe { &*pointer.cast::<DeviceTable>() };
    expect(table.magic, c_table::MAGIC, "the first bytes")?;
    let api = device_from_table(*table)?;
    let space = api.alloc(Device::CPU, 100, 512, Dtype::UINT8)?;
    let aligned = space.address().is_multiple_of(512);
    // SAFETY: allocated above, freed once.
    unsafe { api.free(Device::CPU, space) }?;
    demand(aligned, || format!("{space:?} is not aligned to 512"))
}

/// Runs `device/own-table-keeps-its-errors` (DEV-02, DEV-18).
fn own_table() -> Outcome {
    let recorder: &'static Recorder = Box::leak(Box::default());
    let own = c_table::of_api(recorder);
    // SAFETY: a table of this crate, which is never freed.
    let api = unsafe { c_table::to_api(std::ptr::from_ref(own).cast_mut()) };
    let Some(api) = api else {
        return Failure::broken("a table of ours is not a device");
    };
    // SAFETY: the recorder copies nothing.
    let result = unsafe { api.copy(&NOTHING, Stream::DEFAULT) };
    rejected(result, DEV_18, Kind::Unsupported, "a copy")?;
    let room: &'static mut [DeviceTable; 2] =
        Box::leak(Box::new([*c_table::of_api(cpu::cpu()); 2]));
    let odd = room.as_mut_ptr().wrapping_byte_add(1);
    // SAFETY: the second table is in the same memory.
    unsafe {
        odd.cast::<u8>()
            .copy_from(std::ptr::from_ref(own).cast(), size_of::<DeviceTable>())
    };
    // SAFETY: a complete table that is never freed.
    let read = unsafe { c_table::to_api(odd) };
    demand(read.is_none(), || "a table at an odd address is one".into())
}
