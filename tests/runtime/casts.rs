//! Casts by type index: an object has the memory of a Rust type only if this library made the type.
//!
//! A program without `unsafe` registers every type key of the library's source before the library does. It then passes objects of these
//! types to every global function. It runs in separate processes, whose last line names the last call.
#![cfg(all(feature = "frontend", feature = "vm", feature = "rpc"))]
#![forbid(unsafe_code)]

use crate::support::separate_process::alone;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tvmspec::function::registry;
use tvmspec::object::{self, Array, Shape, construct};
use tvmspec::tensor::Dtype;
use tvmspec::value::{Any, AnyView, index, types};

/// Environment variable of the process that takes the keys. Its value is the name of the way to take them.
const WAY: &str = "TVMSPEC_CASTS_WAY";

/// Size of a record in bytes, larger than any Rust type of the library.
const RECORD: i64 = 1024;

/// Adds every string literal below `folder` that may be a type key.
fn collect_keys(folder: &Path, keys: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_keys(&path, keys);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let is_key = |text: &&str| {
                text.contains('.')
                    && text
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b"._".contains(&b))
            };
            keys.extend(text.split('"').filter(is_key).map(str::to_owned));
        }
    }
}

fn keys() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    collect_keys(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut keys,
    );
    for known in [
        "vm.Storage",
        "relax.vm.Closure",
        "tvmspec.Extension",
        "tvmspec.rpc.RemoteObject",
        "ffi.StructuralKey",
    ] {
        assert!(
            keys.contains(known),
            "{known} is no literal of the source any more"
        );
    }
    keys
}

/// Returns whether a function is skipped, because it ends the process, waits, or changes the results of later calls.
fn is_left_out(name: &str) -> bool {
    ["sleep", "exit", "ffi.FunctionRemoveGlobal"]
        .iter()
        .any(|part| name.contains(part))
}

/// Passes each object to every global function, alone and with arguments that functions of an object often take.
fn pass_to_all_functions(objects: &[Any]) {
    let (none, zero, text) = (Any::none(), Any::from(0i64), Any::from("a text"));
    let (shape, dtype) = (Any::from(Shape::new(&[0i64])), Any::from(Dtype::FLOAT32));
    let mut answers = 0;
    for name in registry::names() {
        let Some(function) = registry::lookup(name).filter(|_| !is_left_out(name)) else {
            continue;
        };
        for (at, object) in objects.iter().enumerate() {
            println!("{name} {at} {}", types::key_of(object.type_index()));
            for args in [
                &[object][..],
                &[object, object],
                &[object, object, object],
                &[&zero, object],
                &[object, &zero],
                &[object, &none],
                &[&text, object],
                &[object, &text],
                &[object, &zero, &shape, &dtype],
                &[object, &zero, &shape, &dtype, &text],
            ] {
                let args: Vec<AnyView<'_>> = args.iter().map(|arg| arg.view()).collect();
                answers += usize::from(function.call_packed(&args).is_ok());
            }
        }
    }
    println!("all made: {} objects, {answers} answers", objects.len());
}

/// Makes objects of this library, one of every type that safe code can make.
fn own_objects() -> Vec<Any> {
    let call = |name: &str, args: &[AnyView<'_>]| {
        registry::require(name).and_then(|found| found.call_packed(args))
    };
    let made = types::keys()
        .into_iter()
        .filter_map(|key| construct::make_object(&[Any::from(key).view()]).ok());
    let mut made: Vec<Any> = made.collect();
    // The number lies at the offset where another type of this library has the tag of a string.
    made.extend(call("ffi.StructuralKey", &[i64::from(index::STR).into()]));
    let shape = Any::from(Shape::new(&[16i64]));
    for scope in ["", "global"] {
        let scope = Any::from(scope);
        let args = [
            AnyView::none(),
            shape.view(),
            0i64.into(),
            Dtype::FLOAT32.into(),
            scope.view(),
        ];
        made.extend(call("vm.builtin.alloc_storage", &args));
    }
    made.push(object::missing().clone().into());
    made.push(Array::new([]).into());
    made
}

/// Runs in the process that takes the keys.
#[test]
fn victim() {
    let Ok(way) = std::env::var(WAY) else { return };
    let mut taken = Vec::new();
    match way.as_str() {
        // Each key becomes a type of the program, with objects of zeroed memory.
        "records" => taken.extend(
            keys()
                .iter()
                .map(|key| types::register(key, index::OBJECT).unwrap()),
        ),
        // Each type is derived from the one before, so that every Rust type would be an instance of all earlier ones.
        "ancestors" => {
            let mut parent = index::OBJECT;
            for key in keys() {
                let at = types::register(&key, parent).unwrap();
                // A key with a fixed index already has a type.
                if at >= index::DYNAMIC_BEGIN {
                    taken.push(at);
                    parent = at;
                }
            }
        }
        // No index is left for the types of the library.
        "full table" => {
            let mut at = 0;
            while types::register(&format!("casts.{at:07}"), index::OBJECT).is_ok() {
                at += 1;
            }
            assert!(at > 1_000_000, "{at}");
        }
        other => panic!("{other}"),
    }
    object::init();
    let record = registry::require("ffi._PyClassRegisterTypeAttrColumns").unwrap();
    let mut objects = Vec::new();
    // The names of functions are not types.
    taken.retain(|&at| registry::lookup(types::key_of(at)).is_none());
    for at in taken {
        let is_record = record.call((at, RECORD)).is_ok();
        objects.extend(
            is_record
                .then(|| construct::make_object(&[at.into()]).ok())
                .flatten(),
        );
    }
    println!("{} records", objects.len());
    objects.extend(own_objects());
    pass_to_all_functions(&objects);
}

#[test]
fn no_function_reads_an_object_as_another_type() {
    for way in ["records", "ancestors", "full table"] {
        let output = alone(module_path!(), "victim")
            .env(WAY, way)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(3)..].join("\n");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{way}: {} after\n{last}\n{errors}",
            output.status
        );
        println!(
            "{way}: {:?}",
            lines.iter().find(|line| line.starts_with("all made"))
        );
    }
}
