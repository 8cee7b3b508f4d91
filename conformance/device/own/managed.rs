//! The manager: which devices it finds, and where it sends its calls.
//!
//! The registry is a list of names here, so that no device of this machine, and none that another case has registered, is found.

use super::super::recorder::Recorder;
use super::super::tables::rejected;
use crate::conformance::behaviour::{Failure, Outcome, demand, expect};
use crate::device::manager::{ApiFactory, Manager};
use crate::device::{
    Attribute, AttributeValue, DEV_04, DEV_06, DEV_20, Device, DeviceApi, Dtype, Space, Stream,
    TensorRef,
};
use crate::rule::Kind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// A manager whose registry is a list of names, each with a recorder; it records the lookups.
struct Registry {
    manager: Manager,
    lookups: Arc<Mutex<Vec<String>>>,
    names: Arc<Mutex<Vec<&'static str>>>,
}

/// Recorders that managers hold for ever, one per name, so that running a case again leaks nothing new.
fn recorder_of(name: &'static str) -> &'static Recorder {
    static ALL: Mutex<Vec<(&str, &Recorder)>> = Mutex::new(Vec::new());
    let mut all = ALL
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, recorder)) = all.iter().find(|(known, _)| *known == name) {
        return recorder;
    }
    let recorder: &'static Recorder = Box::leak(Box::new(Recorder::that_copies()));
    all.push((name, recorder));
    recorder
}

impl Registry {
    /// A registry of these names. A look-up that finds nothing is recorded as `no NAME`.
    fn with(names: &[&'static str]) -> Registry {
        let names = Arc::new(Mutex::new(names.to_vec()));
        let lookups = Arc::new(Mutex::new(Vec::new()));
        let (known, log) = (names.clone(), lookups.clone());
        let lookup = move |name: &str| -> Option<ApiFactory> {
            let known = known
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let found = known.iter().copied().find(|known| *known == name);
            let mut log = log
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            log.push(if found.is_some() {
                name.to_owned()
            } else {
                format!("no {name}")
            });
            let recorder = recorder_of(found?);
            Some(Box::new(move || Ok(recorder as &dyn DeviceApi)))
        };
        Registry {
            manager: Manager::with_lookup(Box::new(lookup)),
            lookups,
            names,
        }
    }

    /// The look-ups since the last time, in order.
    fn lookups(&self) -> Vec<String> {
        std::mem::take(
            &mut *self
                .lookups
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        )
    }
}

/// `device/lookup-is-by-name-and-once` (DEV-01, DEV-02). Where it does not hold: a device is added by registering a name; asking twice
/// would make two of it.
pub(super) fn lookup_once() -> Outcome {
    let registry = Registry::with(&["device_api.cpu", "device_api.cuda", "device_api.ext_dev"]);
    for kind in [2, 2, 12, 1, 12] {
        registry.manager.api(kind)?;
    }
    expect(
        registry.lookups(),
        ["device_api.cuda", "device_api.ext_dev", "device_api.cpu"]
            .map(String::from)
            .to_vec(),
        "names looked up",
    )
}

/// Another thread that looks at the same time is one look-up inside the other here.
pub(super) fn overtaken() -> Outcome {
    let calls = Arc::new(AtomicUsize::new(0));
    let looked = AtomicBool::new(false);
    let shared = calls.clone();
    let manager = Arc::new_cyclic(|manager: &Weak<Manager>| {
        let manager = manager.clone();
        Manager::with_lookup(Box::new(move |_| -> Option<ApiFactory> {
            let calls = shared.clone();
            // The first look-up alone asks again: one that always did would never end.
            if !looked.swap(true, Ordering::Relaxed) {
                manager.upgrade()?.find(8).ok()?;
            }
            Some(Box::new(move || {
                calls.fetch_add(1, Ordering::Relaxed);
                Ok(recorder_of("device_api.metal") as &dyn DeviceApi)
            }))
        }))
    });
    let first = manager.api(8)?;
    demand(std::ptr::addr_eq(first, manager.api(8)?), || {
        "the device is another one at the second look".into()
    })?;
    let called = calls.load(Ordering::Relaxed);
    expect(called, 1, "calls of the factory")
}

/// `device/remote-devices-share-one-api` (DEV-03). Where it does not hold: the session is in the number; an API per session would lose
/// the sessions of the others.
pub(super) fn remote_share() -> Outcome {
    let registry = Registry::with(&["device_api.rpc"]);
    // DEV-57: sessions 0 and 1, and the last one.
    for kind in [128, 130, 257, 4096 + 4] {
        registry.manager.api(kind)?;
    }
    expect(
        registry.lookups(),
        vec!["device_api.rpc".to_owned()],
        "names looked up",
    )
}

/// `device/missing-device-says-its-name` (DEV-04). Where it does not hold: the user has to learn which backend to build or install.
pub(super) fn missing_says() -> Outcome {
    let registry = Registry::with(&[]);
    let Err(error) = registry.manager.api(2).map(drop) else {
        return Failure::broken("something was found where nothing is");
    };
    let text = error.to_string();
    demand(text.contains("Device API cuda is not enabled."), || {
        format!("the error is `{text}`")
    })?;
    rejected::<()>(Err(error), DEV_04, Kind::Missing, "a missing device")?;
    // DEV-04: `find` is the caller that allows a type to be missing, and gets nothing in the place of the error.
    demand(registry.manager.find(2)?.is_none(), || {
        "something was found where nothing is".into()
    })
}

/// `device/a-miss-is-not-remembered` (DEV-05). Where it does not hold: a plug-in that registers its device after the first question would
/// never be found.
pub(super) fn miss_forgotten() -> Outcome {
    let registry = Registry::with(&[]);
    demand(registry.manager.find(12)?.is_none(), || {
        "something was found where nothing is".into()
    })?;
    registry
        .names
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .push("device_api.ext_dev");
    demand(registry.manager.find(12)?.is_some(), || {
        "a device that was registered later is not found".into()
    })
}

/// `device/unknown-number-is-rejected` (DEV-06). Where it does not hold: upstream indexes past its table: type 127 is a segmentation
/// fault.
pub(super) fn unknown_number() -> Outcome {
    let registry = Registry::with(&["device_api.unknown"]);
    // DEV-06: the ends of the tables of releases are among them, 32 and 36, and what lies behind.
    for kind in [-1, 0, 5, 6, 17, 31, 32, 36, 99, 127] {
        let found = registry.manager.api(kind).map(drop);
        rejected(found, DEV_06, Kind::UnknownKind, &format!("type {kind}"))?;
    }
    expect(registry.lookups(), Vec::<String>::new(), "names looked up")
}

/// `device/exist-is-answered-for-the-missing` (DEV-07). Where it does not hold: programs ask whether there is a GPU before they use one.
pub(super) fn exist_of_missing() -> Outcome {
    let registry = Registry::with(&["device_api.cuda"]);
    let ask = |kind, attribute| registry.manager.attribute(Device::new(kind, 0), attribute);
    expect(
        ask(4, Attribute::Exist)?,
        AttributeValue::Int(0),
        "exist of a backend that is not here",
    )?;
    expect(
        ask(2, Attribute::Exist)?,
        AttributeValue::Int(1),
        "exist of one that is",
    )?;
    // DEV-07: `exist` alone is answered without an API. Null would say that a device is there and does not know (DEV-08).
    let size = ask(4, Attribute::WarpSize);
    rejected(
        size,
        DEV_04,
        Kind::Missing,
        "the warp size of a missing one",
    )?;
    expect(
        ask(2, Attribute::WarpSize)?,
        AttributeValue::None,
        "that of another",
    )
}

/// Eight bytes of the host that count as memory of `device`: recorders copy host memory, and which of them does is what is looked at.
fn bytes_on(device: Device, memory: *mut [u8; 8]) -> TensorRef<'static> {
    TensorRef {
        data: Space(memory.cast()),
        device,
        dtype: Dtype::UINT8,
        shape: &[8],
        strides: None,
        byte_offset: 0,
    }
}

/// `device/copy-goes-to-the-device-that-is-not-the-cpu` (DEV-19). Where it does not hold: the CPU cannot read device memory.
pub(super) fn copy_dispatch() -> Outcome {
    let registry = Registry::with(&["device_api.cpu", "device_api.cuda"]);
    let (mut from, mut to) = ([1u8; 8], [0u8; 8]);
    let (cuda, cpu) = (Device::cuda(0), Device::CPU);
    for (source, target, lookups) in [
        (cuda, cpu, "device_api.cuda"),
        (cpu, cuda, "device_api.cuda"),
        (cpu, cpu, "device_api.cpu"),
    ] {
        // Recorders live as long as the process: the log may have calls of an earlier program.
        recorder_of(lookups).take_log();
        // SAFETY: both arrays hold 8 bytes, and recorders copy host memory.
        unsafe {
            registry.manager.copy_tensor(
                &bytes_on(source, &raw mut from),
                &bytes_on(target, &raw mut to),
                Stream::DEFAULT,
            )?
        };
        let copies = recorder_of(lookups)
            .take_log()
            .into_iter()
            .filter(|call| call.starts_with("copy"))
            .count();
        expect(
            copies,
            1,
            &format!(
                "copies by {lookups} from type {} to {}",
                source.kind, target.kind
            ),
        )?;
    }
    Ok(())
}

/// `device/copy-between-types-is-rejected` (DEV-20). Where it does not hold: neither device can read the other's handles.
pub(super) fn copy_between_types() -> Outcome {
    let registry = Registry::with(&["device_api.cpu", "device_api.cuda", "device_api.opencl"]);
    let (mut from, mut to) = ([1u8; 8], [0u8; 8]);
    let mut copy = |source, target| {
        // SAFETY: both arrays hold 8 bytes, and recorders copy host memory.
        unsafe {
            registry.manager.copy_tensor(
                &bytes_on(source, &raw mut from),
                &bytes_on(target, &raw mut to),
                Stream::DEFAULT,
            )
        }
    };
    let copied = copy(Device::cuda(0), Device::opencl(0));
    let text = copied.as_ref().err().map(|error| error.to_string());
    let part = "Can not copy across different device types directly";
    demand(text.is_some_and(|text| text.contains(part)), || {
        format!("a copy between types returns {copied:?}")
    })?;
    rejected(copied, DEV_20, Kind::Unsupported, "a copy between types")?;
    // DEV-20: between devices of one type, and between CUDA and its pinned memory (3), which is host memory.
    copy(Device::cuda(0), Device::cuda(1))?;
    copy(Device::cuda(0), Device::new(3, 0))?;
    Ok(())
}

/// `device/workspace-hint-has-one-lane` (DEV-34). Where it does not hold: the C function has no room for lanes; a hint of none breaks
/// allocators that multiply by them.
pub(super) fn workspace_hint() -> Outcome {
    let registry = Registry::with(&["device_api.ext_dev"]);
    let recorder = recorder_of("device_api.ext_dev");
    recorder.take_log();
    let request = crate::module::workspace::WorkspaceRequest {
        device_type: 12,
        device_id: 3,
        bytes: 100,
        hint: (2, 32),
    };
    let space = registry.manager.workspace(&request)?;
    // SAFETY: made above.
    unsafe { recorder.free_workspace(Device::ext_dev(3), space)? };
    expect(
        recorder.take_log(),
        vec![
            "alloc 100 align 64 hint 2:32x1 on 3".to_owned(),
            "free on 3".into(),
        ],
        "calls",
    )
}

/// `device/set-device-reaches-the-device` (DEV-42). Where it does not hold: compiled code sets the device first and then launches by
/// name.
pub(super) fn set_device_reaches() -> Outcome {
    let registry = Registry::with(&["device_api.vulkan"]);
    let recorder = recorder_of("device_api.vulkan");
    recorder.take_log();
    registry.manager.set_device(Device::vulkan(2))?;
    expect(recorder.take_log(), vec!["set 2".to_owned()], "calls")
}
