//! Complete libraries whose code runs on a device: called through the loader and from the command line.
#![cfg(feature = "suite")]

use crate::support::device_memory::{Floats, counting, device_or_skip, golden, plus_one};
use crate::support::skip::skipped;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tvmspec::device::{self, Device};
use tvmspec::module;
use tvmspec::value::{AnyView, DLTensor};

/// Library with a function that writes its first argument plus one to its second argument.
struct AddsOne<'a> {
    library: &'a Path,
    function: &'a str,
    device: Device,
    /// Name of the device for `--device`.
    device_name: &'a str,
    count: usize,
    /// Message of the host code about a tensor on the CPU.
    rejection: &'a str,
}

impl AddsOne<'_> {
    fn holds(&self, test: &str) {
        let Some(api) = device_or_skip(self.device) else {
            return;
        };
        let name = api.attribute(self.device, device::Attribute::DeviceName);
        println!("{test}: {} on {name:?}", self.library.display());
        self.through_the_loader(api);
        self.through_the_command_line(test);
    }

    fn through_the_loader(&self, api: &dyn device::DeviceApi) {
        // SAFETY: a golden of a release, called as it was compiled.
        let module = unsafe { module::load(self.library) }.unwrap();
        let function = module
            .function(self.function, true)
            .unwrap()
            .unwrap_or_else(|| panic!("no `{}` in {}", self.function, self.library.display()));
        let values = counting(self.count);
        let mut from = Floats::new(api, self.device, &values);
        let mut to = Floats::new(api, self.device, &vec![0.0; self.count]);
        let (from_tensor, to_tensor) = (from.tensor(), to.tensor());
        // SAFETY: it describes memory of this test, which is valid until its end.
        let input = unsafe { AnyView::dltensor(&from_tensor) };
        // SAFETY: it describes memory of this test, which is valid until its end.
        let output = unsafe { AnyView::dltensor(&to_tensor) };
        // Repeated, because the second call uses the built kernel and the cached lookup.
        for _ in 0..3 {
            function.call_packed(&[input, output]).unwrap();
        }
        assert_eq!(to.read(), plus_one(&values));

        let on_cpu = DLTensor {
            device: Device::CPU,
            ..from_tensor
        };
        // SAFETY: the function rejects the device before it looks at the memory.
        let on_cpu = unsafe { AnyView::dltensor(&on_cpu) };
        let error = function
            .call_packed(&[on_cpu, output])
            .unwrap_err()
            .to_string();
        assert!(error.contains(self.rejection), "{error}");
    }

    fn through_the_command_line(&self, test: &str) {
        let Some(program) = tvmspec(test) else { return };
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("x.npy");
        let values = counting(self.count);
        std::fs::write(&input, npy(&values)).unwrap();
        let call = |extra: &[&str]| {
            let mut command = Command::new(&program);
            command.arg("call").arg(self.library).arg(self.function);
            command.arg(format!("@{}", input.display()));
            command.arg(format!("out:float32[{}]", self.count));
            command.args(extra).output().unwrap()
        };
        let reply = call(&[
            "--device",
            self.device_name,
            "--save",
            folder.path().to_str().unwrap(),
        ]);
        let (out, err) = texts(&reply);
        assert!(reply.status.success(), "{out}{err}");
        let shown: Vec<&str> = out.lines().take(2).collect();
        println!(
            "{test}: tvmspec call --device {}:\n{}",
            self.device_name,
            shown.join("\n")
        );
        let saved = std::fs::read(folder.path().join("out_0.npy")).unwrap();
        assert_eq!(floats_of_npy(&saved, self.count), plus_one(&values));

        let rejected = call(&[]);
        let (out, err) = texts(&rejected);
        assert_eq!(rejected.status.code(), Some(1), "{out}{err}");
        assert!(err.contains(self.rejection), "{err}");
        println!("{test}: tvmspec call on the cpu: {err}");
    }
}

fn texts(reply: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&reply.stdout), text(&reply.stderr))
}

/// Returns the `tvmspec` program if it was built with the tests.
fn tvmspec(test: &str) -> Option<PathBuf> {
    let built = option_env!("CARGO_BIN_EXE_tvmspec").map(PathBuf::from);
    let program = built.filter(|program| program.is_file());
    if program.is_none() {
        println!("{test}: the command line is skipped, because it is not built here");
    }
    program
}

/// Creates an `.npy` file of a vector: version 1.0, with the header padded with blanks to 128 bytes.
fn npy(values: &[f32]) -> Vec<u8> {
    let header = format!(
        "{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}",
        values.len()
    );
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend_from_slice(format!("{header:<117}\n").as_bytes());
    file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    file
}

/// Returns the last `count` floats of an `.npy` file.
fn floats_of_npy(file: &[u8], count: usize) -> Vec<f32> {
    let values = file[file.len() - 4 * count..].chunks_exact(4);
    values
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
        .collect()
}

/// Checks whether this machine can load real libraries for x86-64 Linux.
fn can_load() -> bool {
    let here = cfg!(all(target_arch = "x86_64", target_os = "linux"));
    if !here {
        skipped("the library is x86-64 code for Linux");
    }
    here
}

#[test]
fn opencl_library_of_0_8_adds_one() {
    let test = "opencl_library_of_0_8_adds_one";
    if !can_load() {
        return;
    }
    AddsOne {
        library: &golden("host_opencl-0.8.so"),
        function: "add1",
        device: Device::opencl(0),
        device_name: "opencl",
        count: 300,
        rejection: "Argument arg0.device_type has an unsatisfied constraint",
    }
    .holds(test);
}

#[test]
fn opencl_library_of_0_27_adds_one() {
    let test = "opencl_library_of_0_27_adds_one";
    if !can_load() {
        return;
    }
    AddsOne {
        library: &golden("opencl-0.27.so"),
        function: "main",
        device: Device::opencl(0),
        device_name: "opencl",
        count: 12,
        rejection: "Mismatched A.device_type on argument #0",
    }
    .holds(test);
}

/// No available release writes Vulkan libraries, so the host code and the payload are handwritten and compiled here.
#[test]
fn vulkan_library_by_hand_adds_one() {
    let test = "vulkan_library_by_hand_adds_one";
    if cfg!(not(unix)) {
        skipped("the host code is written for compilers of Unix");
        return;
    }
    let Some(program) = tvmspec(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (object, library) = (folder.path().join("host.o"), folder.path().join("add1.so"));
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC"])
        .arg("-c")
        .arg(golden("vulkan_host.c"))
        .arg("-o")
        .arg(&object)
        .output();
    match compiled {
        Ok(reply) => assert!(reply.status.success(), "{}", texts(&reply).1),
        Err(why) => {
            skipped(format_args!("there is no C compiler: {why}"));
            return;
        }
    }
    let packed = Command::new(program)
        .arg("pack")
        .arg(golden("vulkan_library.toml"))
        .arg("-o")
        .arg(&library)
        .arg("--with")
        .arg(&object)
        .output()
        .unwrap();
    assert!(packed.status.success(), "{}", texts(&packed).1);
    // One block, one block plus one thread, and many blocks.
    for count in [12, 65, 1000] {
        AddsOne {
            library: &library,
            function: "add1",
            device: Device::vulkan(0),
            device_name: "vulkan",
            count,
            rejection: "add1: argument #0 is on device type 1, not on vulkan (7)",
        }
        .holds(test);
    }
}
