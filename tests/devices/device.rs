//! Devices: the contract on every available backend, deliberate defects, and the pool compared with a model.
#![cfg(feature = "suite")]

mod api;
mod pool;

use crate::support::cargo;
use crate::support::skip::skipped;
use tvmspec::conformance::device::{contract, contract_on, script};
use tvmspec::device::simulated::{Bug, Simulated};
use tvmspec::device::{Device, cpu};

#[test]
fn the_cpu_keeps_the_contract() {
    let report = contract_on(cpu::cpu(), Device::CPU).unwrap();
    println!("{report}");
    assert!(report.holds(), "{report}");
}

#[test]
fn the_simulated_device_keeps_the_contract() {
    for seed in [1, 2, 3] {
        let simulated = Simulated::new(seed);
        let report = contract(&simulated).unwrap();
        println!("{report}");
        assert!(report.holds(), "seed {seed}: {report}");
    }
}

/// A library user may have neither the source tree nor the feature `embed`.
#[cfg(not(feature = "embed"))]
#[test]
fn a_contract_without_cases_says_so() {
    use crate::support::separate_process::alone;
    use std::ffi::CStr;
    use tvmspec::conformance::device::c_contract::tvmspec_device_contract;
    if std::env::var_os("TVMSPEC_ROOT").is_none_or(|root| root != "/nowhere") {
        let mut again = alone(module_path!(), "a_contract_without_cases_says_so");
        let out = again.env("TVMSPEC_ROOT", "/nowhere").output().unwrap();
        assert!(out.status.success(), "{out:?}");
        return;
    }
    let expected = "there are no cases below /nowhere: set TVMSPEC_ROOT to a clone";
    let error = contract_on(cpu::cpu(), Device::CPU)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains(expected), "{error}");
    let mut report = [0; 256];
    let kind = Device::CPU.kind;
    // SAFETY: the report holds its bytes.
    let broken = unsafe { tvmspec_device_contract(kind, 0, report.as_mut_ptr(), report.len()) };
    // SAFETY: the function ends the text with a NUL.
    let text = unsafe { CStr::from_ptr(report.as_ptr()) };
    assert_eq!((broken, text.to_str().unwrap()), (-1, &*error));
}

#[test]
fn every_planted_bug_is_found_by_the_behaviours() {
    for bug in Bug::ALL {
        let report = contract(&Simulated::with_bug(1, bug)).unwrap();
        let behaviours: Vec<&str> = report
            .broken()
            .map(|result| result.id)
            .filter(|id| *id != "device/random-walk")
            .collect();
        println!("{bug:?}: {}", behaviours.join(", "));
        assert!(!behaviours.is_empty(), "{bug:?} was not noticed:\n{report}");
    }
}

#[test]
fn every_planted_bug_is_found_by_the_walk_and_shrunk() {
    for bug in Bug::ALL {
        let far = script::Walk {
            scripts: 400,
            ..script::Walk::default()
        };
        let make = || Simulated::with_bug(1, bug);
        let found = script::walk_fresh(make, Device::ext_dev(0), &far).expect_err("a planted bug");
        println!("{bug:?}: {found}");
        let script::Minimal { script, before, .. } = &found;
        assert!(
            script.len() <= 7,
            "{bug:?} was not shrunk far enough: {found}"
        );
        assert!(script.len() <= *before, "{bug:?}: {found}");
    }
}

/// Returns the OpenCL device of this machine. Without one, prints why the test is skipped.
#[cfg(feature = "opencl")]
fn opencl_here() -> Option<&'static dyn tvmspec::device::DeviceApi> {
    use tvmspec::device::{Attribute, AttributeValue, opencl};
    let api = opencl::opencl();
    if api.attribute(Device::opencl(0), Attribute::Exist) == Ok(AttributeValue::Int(1)) {
        return Some(api);
    }
    let why = api
        .attribute(Device::opencl(0), Attribute::DeviceName)
        .expect_err("no device");
    skipped(why);
    None
}

#[cfg(feature = "opencl")]
#[test]
fn opencl_keeps_the_contract() {
    let Some(api) = opencl_here() else {
        return;
    };
    let report = contract_on(api, Device::opencl(0)).unwrap();
    println!("{report}");
    assert!(report.holds(), "{report}");
}

/// Returns the Vulkan device of this machine. Without one, prints why the test is skipped.
#[cfg(feature = "vulkan")]
fn vulkan_here() -> Option<&'static dyn tvmspec::device::DeviceApi> {
    use tvmspec::device::{Attribute, AttributeValue, vulkan};
    let api = vulkan::vulkan();
    if api.attribute(Device::vulkan(0), Attribute::Exist) == Ok(AttributeValue::Int(1)) {
        return Some(api);
    }
    let why = api
        .attribute(Device::vulkan(0), Attribute::DeviceName)
        .expect_err("no device");
    skipped(why);
    None
}

#[cfg(feature = "vulkan")]
#[test]
fn vulkan_keeps_the_contract() {
    let Some(api) = vulkan_here() else {
        return;
    };
    let report = contract_on(api, Device::vulkan(0)).unwrap();
    println!("{report}");
    assert!(report.holds(), "{report}");
}

/// Through a table, the simulated device keeps the contract like a foreign device. A device in C consists of its table alone.
#[test]
fn a_device_behind_a_table_keeps_the_contract() {
    use tvmspec::device::c_table::{self, DeviceTable};
    let simulated: &'static Simulated = Box::leak(Box::new(Simulated::new(5)));
    // A copy at another address is not recognized as the table of a Rust device, so it is called through C.
    let copied: &'static mut DeviceTable = Box::leak(Box::new(*c_table::of_api(simulated)));
    // SAFETY: a complete table that is never freed.
    let api = unsafe { c_table::to_api(copied) }.expect("a table");
    let report = contract(api).unwrap();
    println!("{report}");
    assert!(report.holds(), "{report}");
    let mut nonsense = [7u64; 32];
    // SAFETY: eight bytes at least, and they are not the magic.
    assert!(unsafe { c_table::to_api(nonsense.as_mut_ptr().cast()) }.is_none());
}

/// Compiles the example in C against the header, links it with our library, and runs it.
#[test]
fn a_device_in_c_keeps_the_contract() {
    use std::path::Path;
    use std::process::Command;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = match cargo::c_library() {
        Ok(library) => library,
        Err(why) => return skipped(why),
    };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("external_device");
    let built = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(format!("-I{}", root.join("include").display()))
        .arg(root.join("examples/c/external_device.c"))
        .arg(&library)
        .status();
    match built {
        Ok(status) => assert!(status.success(), "the example does not compile"),
        Err(why) => {
            return skipped(format_args!("there is no C compiler: {why}"));
        }
    }
    let folder = library.parent().unwrap();
    let output = Command::new(&program)
        .env("LD_LIBRARY_PATH", folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
