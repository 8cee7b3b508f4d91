//! `Target.from_device` of a release compared with ours (TGT-59): on its own devices, on simulated answers for the devices it does
//! not have, and on the OpenCL device of this machine.
#![cfg(all(feature = "runtime", feature = "target"))]

use crate::support::python;
use crate::support::skip::skipped;
use serde_json::{Value, json};
use std::path::Path;
use tvmspec::device::{Attribute, AttributeValue, Device, Manager, device_type};
use tvmspec::release::Release;
use tvmspec::rule::Kind;
use tvmspec::target::{HostMachine, Target, Targets, device_target};

/// Returns simulated device answers, by the attribute names of DEV-09 and the target properties of TGT-59.
fn answers() -> Value {
    let device = |shared: i64, threads: i64, warp: i64, version: &str| {
        json!({
            "max_shared_memory_per_block": shared, "max_threads_per_block": threads, "warp_size": warp, "compute_version": version,
            "supports_float16": 1, "supports_int8": 0, "supports_int16": 1, "supports_int64": 0, "supports_16bit_buffer": 1,
            "supports_8bit_buffer": 0, "supports_storage_buffer_storage_class": 1,
        })
    };
    json!([
        device(49152, 1024, 32, "8.6"),
        device(65536, 256, 64, "9.0"),
        device(16384, 512, 1, "12.1"),
        device(0, 1, 0, "7.5"),
    ])
}

/// Checks that our target equals theirs, or that both fail for the same reason.
fn hold(ours: Result<Target, tvmspec::rule::Violation>, theirs: &Value, what: &str) {
    match (ours, &theirs["target"], theirs["error"].as_str()) {
        (Ok(ours), target @ Value::Object(_), _) => {
            assert_eq!(&Value::Object(ours.export()), target, "{what}");
        }
        (Err(ours), _, Some(theirs)) => {
            let expected = match ours.kind() {
                Kind::Unsupported => "is not supported",
                Kind::Missing => "Cannot detect device",
                _ => "",
            };
            assert!(!expected.is_empty(), "{what}: {ours}, and they: {theirs}");
            assert!(
                theirs.contains(expected),
                "{what}: {ours}, and they: {theirs}"
            );
        }
        (ours, ..) => panic!("{what}: {ours:?}, and they: {theirs}"),
    }
}

#[test]
fn the_wheel_detects_the_same_targets() {
    let Some(python) = python::python("tvm, tvm_ffi") else {
        return;
    };
    let script = include_str!("detected.py");
    let answers = answers().to_string();
    let seen = python::run(&python, script, &[Path::new(&answers)]);
    // The release prints warnings before its answer.
    let seen: Value = serde_json::from_str(seen.lines().last().unwrap()).unwrap();
    let minor = seen["minor"]
        .as_u64()
        .and_then(|minor| u8::try_from(minor).ok());
    let release = Release::of(minor.unwrap());
    let text = |name: &str| seen[name].as_str().map(str::to_owned);
    let Some(triple) = text("GetDefaultTargetTriple") else {
        return skipped("the installed TVM has no LLVM");
    };
    let mut machine = HostMachine::default();
    machine.triple = triple;
    machine.cpu = text("GetHostCPUName");
    let targets = Targets::for_machine(release, machine);

    // Both have the processor. The release must not detect any other device that its wheel has no driver for.
    let devices = seen["devices"].as_object().unwrap();
    hold(device_target(&targets, Device::CPU), &devices["cpu"], "cpu");
    for (name, theirs) in devices.iter().filter(|(name, _)| *name != "cpu") {
        let has_driver = theirs["target"].is_object();
        let ours = targets.detect(name, 0, &|question| match question {
            "exist" => has_driver.into(),
            _ => Value::Null,
        });
        if !has_driver {
            hold(ours, theirs, name);
        }
    }
    let answering = seen["answering"].as_array().unwrap();
    for theirs in answering {
        let name = theirs["device"].as_str().unwrap();
        let ours = targets.detect(name, 0, &|question| match question {
            "exist" => true.into(),
            _ => theirs["answers"][question].clone(),
        });
        hold(ours, theirs, &format!("{name} with {}", theirs["answers"]));
    }
    kinds_are_listed(&seen["kinds"]);
    println!(
        "{release}: {} devices, {} answering",
        devices.len(),
        answering.len()
    );
}

/// TGT-74: the registry functions return the same kinds and option types as the release.
fn kinds_are_listed(theirs: &Value) {
    use std::collections::BTreeMap;
    use tvmspec::function::registry;
    use tvmspec::object::{Array, Map};
    use tvmspec::value::{Any, cast};
    let list = registry::lookup("target.ListTargetKinds").unwrap();
    let listed: Array = cast(list.call(()).unwrap().view()).unwrap();
    let text = |value: &Any| cast::<String>(value.view()).unwrap();
    let mut kinds: Vec<String> = listed.as_slice().iter().map(text).collect();
    kinds.sort();
    let theirs: BTreeMap<String, BTreeMap<String, String>> =
        serde_json::from_value(theirs.clone()).unwrap();
    assert_eq!(kinds, theirs.keys().cloned().collect::<Vec<_>>());
    let options = registry::lookup("target.ListTargetKindOptionsFromName").unwrap();
    for (kind, theirs) in &theirs {
        let ours: Map = cast(options.call((kind.as_str(),)).unwrap().view()).unwrap();
        let ours: BTreeMap<String, String> = ours
            .iter()
            .map(|(name, of)| (text(name), text(of)))
            .collect();
        assert_eq!(&ours, theirs, "{kind}");
    }
}

/// No package of a release has an OpenCL driver, so the target is compared with the device's own answers (TGT-59, DEV-09).
#[test]
fn a_device_of_opencl_has_the_target_of_its_limits() {
    let device = Device::opencl(0);
    let number = |attribute| match Manager::global().attribute(device, attribute) {
        Ok(AttributeValue::Int(number)) => Some(number),
        _ => None,
    };
    if number(Attribute::Exist) != Some(1) {
        return skipped("no OpenCL device here");
    }
    assert_eq!(device_type::number_of("opencl"), Some(device.kind));
    for minor in [16, 20, 23, 27] {
        let targets = Targets::for_machine(Release::of(minor), HostMachine::default());
        let target = device_target(&targets, device).unwrap();
        assert_eq!(target.kind, "opencl");
        for (option, attribute) in [
            (
                "max_shared_memory_per_block",
                Attribute::MaxSharedMemoryPerBlock,
            ),
            ("max_threads_per_block", Attribute::MaxThreadsPerBlock),
            ("thread_warp_size", Attribute::WarpSize),
        ] {
            let answered = number(attribute).map(Value::from);
            assert!(answered.is_some(), "{attribute:?}");
            assert_eq!(
                target.attrs.get(option),
                answered.as_ref(),
                "{option} in 0.{minor}"
            );
        }
        println!("0.{minor}: {}", Value::Object(target.export()));
    }
    // Releases before 0.16 do not detect OpenCL devices.
    let targets = Targets::for_machine(Release::of(15), HostMachine::default());
    let rejected = device_target(&targets, device).unwrap_err();
    assert_eq!(
        (rejected.rule().id(), rejected.kind()),
        ("TGT-59", Kind::Unsupported)
    );
}
