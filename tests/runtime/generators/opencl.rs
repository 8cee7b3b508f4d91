//! Kernels by the generators of this crate, on OpenCL.

use super::open;
use crate::support::device_memory;
use crate::support::skip::skipped;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tvmspec::release::Release;
use tvmspec::target::{Generators, LoweredModule, Targets};

/// Host code and kernels of one function, both by the generators of this crate, as a library of the release; `None` where there is no compiler.
fn gpu_library(folder: &Path, name: &str, minor: u8) -> Option<PathBuf> {
    use tvmspec::blob::pack::{self, LinkOptions, SymbolNaming};
    use tvmspec::blob::{Blob, StoredModule};
    use tvmspec::import_tree::ImportTree;
    use tvmspec::release::Layout;
    use tvmspec::rule::Findings;

    if Command::new("cc").arg("--version").output().is_err() {
        skipped("there is no cc");
        return None;
    }
    let release = Release::of(minor);
    let code = |part: &str, kind: &str| {
        let file = format!("golden/target/kernels/{release}/{name}.{part}.json");
        let text = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("it is there");
        let target = Targets::new(release).read(kind).expect("a kind");
        let module = LoweredModule::read(&text).expect("a module");
        Generators::new()
            .generate(&module, &target)
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let (host, device) = (code("host", "c"), code("device", "opencl"));
    let layout = Layout::of(release);
    let stored = |kind: &str, payload: Option<Vec<u8>>| StoredModule {
        kind: kind.to_owned().into(),
        payload: payload.map(Into::into),
        offset: 0,
    };
    let payload = device.payload.to_bytes(layout).expect("a payload");
    let blob = Blob {
        layout,
        modules: vec![stored("_lib", None), stored("opencl", Some(payload))],
        tree: Some(ImportTree::new(&[0, 1, 1], &[1], &mut Findings::default()).expect("a tree")),
    };
    let source = folder.join(format!("{name}.c"));
    fs::write(&source, host.source().expect("C")).expect("it can be written");
    let mut with = LinkOptions::default();
    with.inputs = vec![source];
    with.options = vec!["-lm".into()];
    let library = folder.join(format!("{name}.so"));
    let bytes = blob.write().expect("a blob");
    pack::shared(&bytes, &SymbolNaming::library(release), &with, &library).expect("a library");
    Some(library)
}

fn on_opencl(minor: u8) {
    use device_memory::Floats;
    use tvmspec::device::Device;
    use tvmspec::value::AnyView;

    let device = Device::opencl(0);
    let Some(api) = device_memory::here(device) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let run = |name: &str, arrays: &[(&[i64], Vec<f32>)]| -> Option<Vec<f32>> {
        let library = open(&gpu_library(folder.path(), name, minor)?);
        let mut floats: Vec<Floats<'_>> = arrays
            .iter()
            .map(|(_, values)| Floats::new(api, device, values))
            .collect();
        let tensors = floats.iter_mut().zip(arrays).map(|(floats, (shape, _))| {
            let mut tensor = floats.tensor();
            tensor.ndim = shape.len().try_into().expect("few axes");
            tensor.shape = shape.as_ptr().cast_mut();
            tensor
        });
        let tensors: Vec<_> = tensors.collect();
        // SAFETY: each describes memory of the device that outlives the call.
        let views: Vec<AnyView<'_>> = tensors
            .iter()
            .map(|tensor| unsafe { AnyView::dltensor(tensor) })
            .collect();
        let function = library.require(name).expect("a function");
        function
            .call(&views)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        floats.last().map(Floats::read)
    };
    let numbers: Vec<f32> = (0..16_u8).map(f32::from).collect();
    let Some(sums) = run(
        "add1_gpu",
        &[(&[16], numbers.clone()), (&[16], vec![0.0; 16])],
    ) else {
        return;
    };
    assert_eq!(
        sums,
        numbers
            .iter()
            .map(|number| number + 1.0)
            .collect::<Vec<_>>()
    );
    // Small integers: every order of the sums has the same result.
    let (a, b): (Vec<f32>, Vec<f32>) = (
        (0..56_u8).map(|i| f32::from(i % 9)).collect(),
        (0..35_u8).map(|i| f32::from(i % 5)).collect(),
    );
    let dot = |i: usize, j: usize| (0..7).map(|k| a[i * 7 + k] * b[k * 5 + j]).sum::<f32>();
    let expected: Vec<f32> = (0..40).map(|at| dot(at / 5, at % 5)).collect();
    let arrays: [(&[i64], Vec<f32>); 3] = [
        (&[8, 7], a.clone()),
        (&[7, 5], b.clone()),
        (&[8, 5], vec![0.0; 40]),
    ];
    assert_eq!(run("matmul_gpu", &arrays), Some(expected));
    // Lanes of a vector, and numbers that 16 bits hold.
    for (name, of) in [
        (
            "scale_vec_gpu",
            (|number| number * 2.0 + 1.0) as fn(f32) -> f32,
        ),
        ("half_gpu", |number| number * 1.5),
    ] {
        let arrays = [(&[16_i64][..], numbers.clone()), (&[16][..], vec![0.0; 16])];
        let expected: Vec<f32> = numbers.iter().copied().map(of).collect();
        assert_eq!(run(name, &arrays), Some(expected), "{name}");
    }
    // In each element another operator, of numbers that end in a half.
    let mut halves: Vec<f32> = numbers.iter().map(|number| number + 0.5).collect();
    halves[10] = f32::NAN;
    halves[11] = f32::INFINITY;
    halves[12] = f32::NEG_INFINITY;
    let expected = [
        0.5,
        2.0_f32.powf(1.5),
        10.0_f32.powf(2.5),
        1.0 / (1.0 + (-3.5_f32).exp()),
        4.0,
        6.0,
        6.0,
        8.0,
        8.0,
        1.0 / 92.25_f32.sqrt(),
        1.0,
        1.0,
        0.0,
        3.0,
        28.0,
        -16.0,
    ];
    let arrays = [(&[16_i64][..], halves), (&[16][..], vec![0.0; 16])];
    let found = run("counted_gpu", &arrays).expect("the device is there");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let difference = (found - expected).abs() / expected.abs().max(1.0);
        assert!(difference < 1e-5, "[{at}] is {found}, not {expected}");
    }
    println!("0.{minor}: kernels of OpenCL C compute what they are of");
}

#[test]
fn kernels_of_0_27_run_on_opencl() {
    on_opencl(27);
}

#[test]
fn kernels_of_0_16_run_on_opencl() {
    on_opencl(16);
}
