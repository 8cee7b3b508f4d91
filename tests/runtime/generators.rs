//! Code of the generators of this crate, compiled, loaded and run: modules that real releases lowered, with the numbers that their own
//! builds compute, and NumPy for 0.8.
#![cfg(all(
    feature = "runtime",
    feature = "target",
    target_os = "linux",
    target_arch = "x86_64"
))]

#[path = "../../examples/foo.rs"]
mod foo;
#[cfg(feature = "opencl")]
mod opencl;

use crate::support::skip::skipped;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use half::f16;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tvmspec::module::{self, Module};
use tvmspec::object::{Scalar, Tensor};
use tvmspec::release::Release;
use tvmspec::target::{Generators, LoweredModule, Targets};

/// The modules of a release: name, JSON, and what a call of it computes.
fn golden(release: &str) -> Vec<(String, Vec<u8>, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden/target/lowered")
        .join(release);
    let runs = fs::read_to_string(folder.join("runs.json")).expect("it is there");
    let runs: Value = serde_json::from_str(&runs).expect("JSON");
    let runs = runs.as_object().expect("an object").clone();
    let module = |name: &str| fs::read(folder.join(format!("{name}.json"))).expect("it is there");
    runs.into_iter()
        .map(|(name, run)| (name.clone(), module(&name), run))
        .collect()
}

/// The module's code as a library; `None` where there is no compiler.
fn library(folder: &Path, name: &str, text: &[u8]) -> Option<PathBuf> {
    let module = LoweredModule::read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let target = Targets::new(Release::of(27)).read("c").expect("a kind");
    let code = Generators::new().generate(&module, &target);
    let code = code.unwrap_or_else(|error| panic!("{name}: {error}"));
    let file = folder.join(format!("{name}.c"));
    let library = folder.join(format!("{name}.so"));
    fs::write(&file, code.source().expect("C")).expect("it can be written");
    let built = Command::new("cc")
        .args([
            "-std=c11",
            "-shared",
            "-fPIC",
            "-O1",
            "-ffp-contract=off",
            // TGT-91: what C leaves open ends the process.
            "-fsanitize=undefined",
            "-fsanitize-undefined-trap-on-error",
            "-Wall",
            "-Werror",
            "-Wno-unused",
        ])
        .arg("-o")
        .args([&library, &file])
        .arg("-lm")
        .output();
    match built {
        Err(why) => {
            skipped(format_args!("there is no cc: {why}"));
            None
        }
        Ok(built) => {
            let errors = String::from_utf8_lossy(&built.stderr);
            assert!(
                built.status.success(),
                "{name}: {errors}\n{}",
                code.source().expect("C")
            );
            Some(library)
        }
    }
}

fn open(library: &Path) -> Module {
    // SAFETY: code that was just made of a module of a release, and is called as it was compiled.
    unsafe { module::load(library) }
        .unwrap_or_else(|error| panic!("{}: {error}", library.display()))
}

fn of<T: Scalar + Default>(form: &Value, read: fn(&[u8]) -> T) -> Tensor {
    let shape: Vec<i64> = form["shape"]
        .as_array()
        .expect("a shape")
        .iter()
        .filter_map(Value::as_i64)
        .collect();
    let bytes = BASE64_STANDARD
        .decode(form["data"].as_str().expect("data"))
        .expect("base64");
    let elements: Vec<T> = bytes.chunks(size_of::<T>()).map(read).collect();
    Tensor::from_slice(&elements, &shape).expect("a tensor")
}

fn tensor(form: &Value) -> Tensor {
    match form["dtype"].as_str().expect("a dtype") {
        "int8" => of(form, |bytes| i8::from_le_bytes(bytes.try_into().unwrap())),
        "uint8" => of(form, |bytes| u8::from_le_bytes(bytes.try_into().unwrap())),
        "int32" => of(form, |bytes| i32::from_le_bytes(bytes.try_into().unwrap())),
        "int64" => of(form, |bytes| i64::from_le_bytes(bytes.try_into().unwrap())),
        "uint64" => of(form, |bytes| u64::from_le_bytes(bytes.try_into().unwrap())),
        "float16" => of(form, |bytes| f16::from_le_bytes(bytes.try_into().unwrap())),
        "float32" => of(form, |bytes| f32::from_le_bytes(bytes.try_into().unwrap())),
        "float64" => of(form, |bytes| f64::from_le_bytes(bytes.try_into().unwrap())),
        other => panic!("{other}"),
    }
}

/// Integers are equal; fractions up to the last few bits, since sums are added in another order and functions are those of C.
fn assert_close(name: &str, ours: &Tensor, theirs: &Tensor, dtype: &str) {
    let (ours, theirs, allowed): (Vec<f64>, Vec<f64>, f64) = match dtype {
        "float32" => {
            let wide = |tensor: &Tensor| {
                tensor
                    .to_vec::<f32>()
                    .unwrap()
                    .into_iter()
                    .map(f64::from)
                    .collect()
            };
            (wide(ours), wide(theirs), 2e-6)
        }
        "float16" => {
            let wide = |tensor: &Tensor| {
                let narrow = tensor.to_vec::<f16>().unwrap();
                narrow.into_iter().map(f64::from).collect()
            };
            // One unit in the last place: releases compute some functions with more bits.
            (wide(ours), wide(theirs), 1e-3)
        }
        "float64" => (ours.to_vec().unwrap(), theirs.to_vec().unwrap(), 1e-14),
        _ => {
            assert_eq!(
                ours.to_bytes().unwrap(),
                theirs.to_bytes().unwrap(),
                "{name}"
            );
            return;
        }
    };
    // Of `exp10` LLVM's code is the exponential of a product that is rounded, and of a factor with 10 figures.
    let allowed = match (name.starts_with("more_"), dtype) {
        (true, "float16") => 3e-2,
        (true, "float32") => 1e-5,
        (true, _) => 1e-9,
        _ => allowed,
    };
    for (at, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        let difference = (a - b).abs() / b.abs().max(1.0);
        assert!(
            difference <= allowed || a == b,
            "{name}[{at}]: {a}, and theirs is {b}"
        );
    }
}

/// TGT-92: with NaN `!=` is true and the other comparisons are false; in the code that LLVM makes for the release `!=` is false, too. What is joined
/// of them is not looked at: a release makes `!=` of some of it before the generator is called.
fn assert_order(args: &[Tensor], theirs: &Tensor) {
    let numbers = |at: usize| args[at].to_vec::<f32>().unwrap();
    let (x, z, ours) = (numbers(0), numbers(1), args[2].to_vec::<i32>().unwrap());
    for (at, theirs) in theirs.to_vec::<i32>().unwrap().into_iter().enumerate() {
        let (x, z) = (x[at], z[at]);
        if x.is_nan() || z.is_nan() {
            let compared = 0b11_1111;
            assert_eq!(ours[at] & compared, 1 << 5, "{x} and {z}");
            assert_eq!(theirs & compared, 0, "{x} and {z}");
        } else {
            assert_eq!(ours[at], theirs, "{x} and {z}");
        }
    }
}

fn run_all(release: &str, least: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut count = 0;
    for (name, text, run) in golden(release) {
        let Some(library) = library(folder.path(), &name, &text) else {
            return;
        };
        let module = open(&library);
        let function = module
            .require(&name)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let args: Vec<Tensor> = run["args"]
            .as_array()
            .expect("arguments")
            .iter()
            .map(tensor)
            .collect();
        let answer = match args.as_slice() {
            [a, b] => function.call_with([a.clone().into(), b.clone().into()]),
            [a, b, c] => function.call_with([a.clone().into(), b.clone().into(), c.clone().into()]),
            other => panic!("{} arguments", other.len()),
        };
        answer.unwrap_or_else(|error| panic!("{name}: {error}"));
        let result = args.last().expect("a result");
        let dtype = run["result"]["dtype"].as_str().expect("a dtype");
        count += 1;
        if name == "order_nan" {
            assert_order(&args, &tensor(&run["result"]));
            continue;
        }
        assert_close(&name, result, &tensor(&run["result"]), dtype);
    }
    println!("{release}: {count} modules compute what the release computes");
    assert!(count >= least, "{count} modules");
}

#[test]
fn modules_of_0_27_compute_the_same() {
    run_all("0.27", 70);
}

/// Its numbers are in place, and not nodes as those of 0.27.
#[test]
fn modules_of_0_26_compute_the_same() {
    run_all("0.26", 9);
}

#[test]
fn modules_of_0_8_compute_the_same() {
    run_all("0.8", 28);
}

#[test]
fn modules_of_0_16_compute_the_same() {
    run_all("0.16", 50);
}

#[test]
fn wrong_calls_end_in_the_errors_of_the_release() {
    let folder = tempfile::tempdir().expect("a folder");
    let (name, text, run) = golden("0.27")
        .into_iter()
        .find(|(name, ..)| name == "matmul")
        .expect("it is there");
    let Some(library) = library(folder.path(), &name, &text) else {
        return;
    };
    let function = open(&library).require(&name).unwrap();
    let zeros = |shape: &[i64]| {
        Tensor::from_slice(
            &vec![0.0_f32; shape.iter().product::<i64>().try_into().unwrap()],
            shape,
        )
        .unwrap()
    };
    let (a, b, c) = (zeros(&[6, 7]), zeros(&[7, 5]), zeros(&[6, 5]));
    let flat = zeros(&[6]);
    let short = zeros(&[6, 3]);
    let other = Tensor::from_slice(&[0_i32; 42], &[6, 7]).unwrap();
    let errors = run["errors"].as_object().expect("errors");
    assert_eq!(errors.len(), 5);
    for (wrong, expected) in errors {
        let answer = match wrong.as_str() {
            "count" => function.call_with([a.clone().into(), b.clone().into()]),
            "number" => function.call_with([1_i64.into(), b.clone().into(), c.clone().into()]),
            "axes" => function.call_with([flat.clone().into(), b.clone().into(), c.clone().into()]),
            "size" => {
                function.call_with([short.clone().into(), b.clone().into(), c.clone().into()])
            }
            _ => function.call_with([other.clone().into(), b.clone().into(), c.clone().into()]),
        };
        let error = answer
            .err()
            .unwrap_or_else(|| panic!("{wrong} is accepted"));
        assert_eq!(
            error.kind().to_string(),
            expected[0].as_str().unwrap(),
            "{wrong}"
        );
        assert_eq!(error.message(), expected[1].as_str().unwrap(), "{wrong}");
    }
}

#[test]
fn a_kind_a_device_and_a_generator_of_ones_own() {
    if Command::new("cc").arg("--version").output().is_err() {
        return skipped("there is no cc");
    }
    foo::main().unwrap();
}
