//! The device registrations of a process: its own numbers and names, functions under their names, C tables.

use super::CodedProgram;
use super::failing_table::as_a_table;
use super::suite_device_types::SIMULATED as NUMBER;
use super::tables::rejected;
use crate::conformance::behaviour::{Failure, Outcome, demand, expect};
use crate::device::c_table::{self, DeviceTable};
use crate::device::error::{driver_error, missing_driver, out_of_memory};
use crate::device::simulated::{Simulated, SimulatedCall};
use crate::device::{
    Attribute, DEV_04, DEV_06, DEV_12, Device, DeviceApi, Dtype, Error, Stream, cpu, device_type,
    manager, stream,
};
use crate::function::{registry, take_broken};
use crate::release::Release;
use crate::rule::Kind;
use crate::value::{Any, AnyView};
use std::sync::OnceLock;

/// The programs for registrations and for live memory.
pub(super) const PROGRAMS: &[CodedProgram] = &[
    ("device/a-number-of-its-own", own_number),
    ("device/functions-of-the-registry", functions),
    ("device/errors-of-the-registry", errors),
    ("device/stream-functions-of-the-registry", streams),
    ("device/table-is-recognised-by-its-first-bytes", tables),
    ("device/launch-goes-to-the-current-device", launches),
    ("device/freed-memory-is-free", freed),
];

const NAME: &str = "suite_simulated";

/// Returns the simulated device of this process, registered under its own number.
fn simulated() -> Result<&'static Simulated, Failure> {
    static DEVICE: OnceLock<Result<&'static Simulated, String>> = OnceLock::new();
    let registered = DEVICE.get_or_init(|| {
        let device: &'static Simulated = Box::leak(Box::new(Simulated::new(1)));
        // SAFETY: the simulated device keeps the contract, as its own cases show.
        unsafe { manager::register_number(NUMBER, NAME, device) }
            .map(|()| device)
            .map_err(|error| error.to_string())
    });
    registered.clone().map_err(Failure::Broken)
}

/// Returns a simulated device as C would pass it: a table at an address that this crate does not know.
pub(super) fn behind_a_table() -> &'static dyn DeviceApi {
    static API: OnceLock<&'static dyn DeviceApi> = OnceLock::new();
    *API.get_or_init(|| {
        let device: &'static Simulated = Box::leak(Box::new(Simulated::new(5)));
        as_a_table(device)
    })
}

/// Runs `device/a-number-of-its-own` (DEV-01, DEV-06).
fn own_number() -> Outcome {
    simulated()?;
    expect(
        device_type::name_in(NUMBER, Release::LAST)?,
        NAME,
        "the name of 97",
    )?;
    expect(
        device_type::number_of(NAME),
        Some(NUMBER),
        "the number of the name",
    )?;
    let taken = [
        (2, "suite_2"),
        (0, "suite_0"),
        (-1, "suite_1"),
        (NUMBER, "suite_97"),
        (128, "suite_128"),
    ];
    // DEV-06: checked for both functions that name a device: here the one without an API, below the one with it.
    for (number, name) in taken.into_iter().chain([(96, "cuda"), (96, NAME)]) {
        let what = format!("{number} as `{name}`");
        rejected(
            device_type::add(number, name),
            DEV_06,
            Kind::Duplicate,
            &what,
        )?;
    }
    let numbers = ["cuda", "hexagon", "gpu", "aocl"].map(device_type::number_of);
    expect(numbers, [Some(2), Some(16), None, None], "numbers of names")?;
    let parsed = ["cuda:3", "cpu", "suite_simulated:1", "gpu:0", "cpu:x"].map(Device::parse);
    let here = [Device::cuda(3), Device::CPU, Device::new(NUMBER, 1)].map(Some);
    let [first, second, third] = here;
    let expected = [first, second, third, None, None];
    expect(parsed, expected, "devices of their texts")?;
    drop(take_broken());
    for (number, name) in taken.into_iter().chain([(96, "cuda"), (96, NAME)]) {
        // SAFETY: the CPU keeps the contract.
        let registered = unsafe { manager::register_number(number, name, cpu::cpu()) };
        let broken = registered.is_err().then(take_broken).flatten();
        let broken = broken.map(|broken| (broken.rule().id(), broken.kind().name()));
        let expected = Some((DEV_06.id(), Kind::Duplicate.name()));
        expect(broken, expected, &format!("{number} as `{name}`"))?;
    }
    // SAFETY: the simulated device keeps the contract, as its own cases show.
    unsafe { manager::register(NAME, simulated()?) }?;
    // A name of the process belongs to its newest release. Files and messages of older releases never contain it.
    let before = device_type::name_in(NUMBER, Release::of(26));
    demand(before.is_err(), || "an earlier release has the name".into())
}

/// Calls a function of the registry by its name.
fn call(name: &str, args: &[Any]) -> Result<Any, Failure> {
    // SAFETY: the streams of these programs are of the device and alive.
    let function = unsafe { registry::lookup_raw(name.as_bytes()) };
    let missing = || Failure::Broken(format!("there is no function `{name}`"));
    let views: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
    Ok(function.ok_or_else(missing)?.call_packed(&views)?)
}

/// Returns the calls that reached the device after the first `before` calls.
fn since(device: &Simulated, before: usize) -> Vec<SimulatedCall> {
    device.calls().split_off(before)
}

/// Runs `device/functions-of-the-registry` (DEV-07, DEV-42).
fn functions() -> Outcome {
    let device = simulated()?;
    let ask = |kind: i64, id: i64, number: i32| {
        let found = call(
            "runtime.GetDeviceAttr",
            &[kind.into(), id.into(), i64::from(number).into()],
        )?;
        Ok::<_, Failure>(i64::try_from(found.view()).ok())
    };
    let threads = Attribute::MaxThreadsPerBlock.number();
    expect(ask(97, 0, 0)?, Some(1), "exist of (97, 0)")?;
    expect(ask(97, 5, 0)?, Some(0), "exist of (97, 5)")?;
    expect(ask(97, 0, threads)?, Some(256), "threads of (97, 0)")?;
    expect(ask(97, 0, 99)?, None, "attribute 99")?;
    let whole = Device {
        kind: NUMBER,
        id: 0,
    };
    let found = call(
        "runtime.GetDeviceAttr",
        &[Any::from(whole), i64::from(threads).into()],
    )?;
    expect(
        i64::try_from(found.view()).ok(),
        Some(256),
        "threads of a device",
    )?;
    let before = device.calls().len();
    call("__tvm_set_device", &[97i64.into(), 1i64.into()])?;
    expect(
        since(device, before),
        vec![SimulatedCall::SetDevice(1)],
        "calls",
    )?;
    stream::set_current_device(Device::ext_dev(0));
    demand(
        call("__tvm_set_device", &[97i64.into(), 9i64.into()]).is_err(),
        || "device 9 was made current".into(),
    )
}

/// Runs `device/errors-of-the-registry` (DEV-07).
fn errors() -> Outcome {
    let raised = |error: Error| (error.kind().as_str().to_owned(), error.message().to_owned());
    let memory = out_of_memory(5, "none");
    let rejection = DEV_04.rejected(Kind::Missing, "nothing");
    let own = ("RuntimeError".to_owned(), "nothing".to_owned());
    expect(raised(rejection.into()), own, "a rejection")?;
    for (error, kind, text) in [
        (memory, "MemoryError", "no memory for 5 bytes (none)"),
        (
            driver_error("suite", "call", 3, "why"),
            "RuntimeError",
            "suite: call failed with 3 (why)",
        ),
        (missing_driver("no suite"), "RuntimeError", "no suite"),
    ] {
        expect(raised(error), (kind.to_owned(), text.to_owned()), kind)?;
    }
    // SAFETY: the function only reads its arguments.
    let function = unsafe { registry::lookup_raw(b"runtime.GetDeviceAttr") };
    let Some(function) = function else {
        return Failure::broken("there is no function `runtime.GetDeviceAttr`");
    };
    let (one, text) = (Any::from(1i64), Any::from("cpu"));
    for args in [vec![&one; 4], vec![&one; 2], vec![&text]] {
        let views: Vec<AnyView<'_>> = args.iter().map(|any| any.view()).collect();
        let failed = function.call_packed(&views).err();
        let kind = failed.map(|error| error.kind().as_str().to_owned());
        let count = args.len();
        let expected = Some("TypeError".to_owned());
        expect(kind, expected, &format!("{count} arguments"))?;
    }
    Ok(())
}

/// Runs `device/stream-functions-of-the-registry` (DEV-22, DEV-38).
fn streams() -> Outcome {
    let device = simulated()?;
    let of = Device::new(NUMBER, 0);
    let argument = || {
        Any::from(Device {
            kind: NUMBER,
            id: 0,
        })
    };
    let before = device.calls().len();
    let made = i64::try_from(call("runtime.Device_StreamCreate", &[argument()])?.view())?;
    let calls = since(device, before);
    let [SimulatedCall::CreateStream(0, made_there)] = calls.as_slice() else {
        return Failure::broken(format!("making a stream: {calls:?}"));
    };
    let own = *made_there;
    demand(made != 0 && own.handle() as i64 == made, || {
        format!("the stream is {made}")
    })?;
    call("runtime.Device_SetStream", &[argument(), made.into()])?;
    expect(stream::current(of), own, "the thread's stream")?;
    call(
        "runtime.TVMSetStream",
        &[97i64.into(), 0i64.into(), Any::none()],
    )?;
    expect(
        stream::current(of),
        Stream::DEFAULT,
        "the thread's stream, set back",
    )?;
    let before = device.calls().len();
    call(
        "runtime.Device_StreamSyncFromTo",
        &[argument(), made.into(), 0i64.into()],
    )?;
    call("runtime.Device_StreamSync", &[argument(), made.into()])?;
    call("runtime.Device_StreamFree", &[argument(), made.into()])?;
    let expected = vec![
        SimulatedCall::SyncStreams(0, own, Stream::DEFAULT),
        SimulatedCall::Sync(0, own),
        SimulatedCall::FreeStream(0, own),
    ];
    expect(since(device, before), expected, "calls")
}

/// Runs `device/table-is-recognised-by-its-first-bytes` (DEV-02).
fn tables() -> Outcome {
    let whole = *c_table::of_api(cpu::cpu());
    let read = |table: DeviceTable| {
        // SAFETY: a complete table that is never freed.
        unsafe { c_table::to_api(Box::leak(Box::new(table))) }
    };
    // SAFETY: null is not a table.
    let null = unsafe { c_table::to_api(std::ptr::null_mut()) };
    let other = read(DeviceTable {
        magic: whole.magic ^ 1,
        ..whole
    });
    let short = read(DeviceTable {
        size: whole.size - 1,
        ..whole
    });
    demand(null.is_none(), || "null is a device".into())?;
    demand(other.is_none(), || "other first bytes are a device".into())?;
    demand(short.is_none(), || {
        "a table that is too short is a device".into()
    })?;
    let Some(api) = read(whole) else {
        return Failure::broken("a whole table is not a device");
    };
    let space = api.alloc(Device::CPU, 100, 256, Dtype::UINT8)?;
    let aligned = space.address().is_multiple_of(256);
    // SAFETY: allocated above, freed once.
    unsafe { api.free(Device::CPU, space)? };
    demand(aligned, || {
        format!("{space:?} is not aligned to 256 ({DEV_12})")
    })
}

/// Runs `device/launch-goes-to-the-current-device` (DEV-55).
fn launches() -> Outcome {
    let device = Simulated::new(1);
    for id in [1, 0] {
        device.set_device(Device::ext_dev(id))?;
        device.launch(Stream::DEFAULT, |_, _| {})?;
    }
    let launched = device.calls().into_iter().filter_map(|call| match call {
        SimulatedCall::Launch(id, _) => Some(id),
        _ => None,
    });
    expect(launched.collect::<Vec<_>>(), vec![1, 0], "launches")
}

/// Returns the bytes of the address space of this process.
fn own_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').next()?.parse().ok()?;
    pages.checked_mul(4096)
}

/// Runs `device/freed-memory-is-free` (DEV-46).
fn freed() -> Outcome {
    let Some(before) = own_bytes() else {
        return Failure::skipped("this system does not say how much memory a process has");
    };
    for _ in 0..16 {
        let space = cpu::cpu().alloc(Device::CPU, 64 << 20, 64, Dtype::UINT8)?;
        // SAFETY: allocated above, freed once.
        unsafe { cpu::cpu().free(Device::CPU, space)? };
    }
    let grown = own_bytes().unwrap_or(before).saturating_sub(before);
    // The limit is half of the allocated memory, because allocators keep some, and other threads allocate some.
    demand(grown < 512 << 20, || {
        format!("the process has {grown} bytes more after 16 times 64 MiB")
    })
}
