//! `call` and `run` with the element types of the package ml_dtypes: bfloat16, small floats, and integers of less than a byte.
#![cfg(all(feature = "cli", target_os = "linux", target_arch = "x86_64"))]

use super::commands::{npy, text, tvmspec};
use std::path::Path;

/// `(function, numpy's word, bytes of 8 elements, printed text)`: the bytes that ml_dtypes writes for these values.
const TYPES: [(&str, &str, [u8; 8], &str); 4] = [
    (
        "float8_e4m3fn",
        "<V1",
        [0x00, 0x38, 0x40, 0x44, 0x48, 0x80, 0x7f, 0x01],
        "[0.0, 1.0, 2.0, 3.0, 4.0, -0.0, NaN, 0.001953125]",
    ),
    (
        "float4_e2m1fn",
        "<V1",
        [0, 1, 2, 3, 4, 7, 8, 15],
        "[0.0, 0.5, 1.0, 1.5, 2.0, 6.0, -0.0, -6.0]",
    ),
    (
        "int4",
        "<V1",
        [0, 1, 2, 7, 8, 9, 14, 15],
        "[0, 1, 2, 7, -8, -7, -2, -1]",
    ),
    (
        "uint1",
        "|b1",
        [0, 1, 1, 0, 0, 0, 1, 1],
        "[false, true, true, false, false, false, true, true]",
    ),
];

fn library(function: &str) -> String {
    format!("golden/function/{function}-0.27.so")
}

/// Calls a function that copies 8 elements. Returns its output and the saved file.
fn copied(folder: &Path, function: &str, input: &str) -> (String, Vec<u8>) {
    let out = format!("out:{function}[8]");
    let saved = folder.to_str().unwrap();
    let done = tvmspec(&[
        "call",
        &library(function),
        function,
        input,
        &out,
        "--save",
        saved,
    ]);
    assert!(done.status.success(), "{function}: {}", text(&done.stderr));
    let file = std::fs::read(folder.join("out_0.npy")).unwrap();
    (text(&done.stdout), file)
}

#[test]
fn small_types_go_through_a_function_and_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.npy");
    for (function, word, bytes, printed) in TYPES {
        std::fs::write(&file, npy(word, "(8,)", &bytes)).unwrap();
        // Up to 0.19 the type had another name.
        let old = (function == "float8_e4m3fn").then_some("e4m3_float8");
        for name in old.into_iter().chain([function]) {
            let input = format!("@{}:{name}", file.display());
            let (shown, _) = copied(folder.path(), function, &input);
            assert_eq!(shown.trim(), printed, "{name}");
        }
        let input = format!("@{}:{function}", file.display());
        let (_, saved) = copied(folder.path(), function, &input);
        assert!(saved.ends_with(&bytes), "{function}");
        assert!(
            text(&saved).contains(&format!("'descr': '{word}'")),
            "{function}"
        );
    }
    let bytes: Vec<u8> = [
        0x0000_u16, 0x3f80, 0xc000, 0x7f80, 0x0001, 0x4049, 0xff7f, 0x3e80,
    ]
    .iter()
    .flat_map(|bits| bits.to_le_bytes())
    .collect();
    // Elements of two bytes, raw or as integers.
    for word in ["<V2", "<u2"] {
        std::fs::write(&file, npy(word, "(8,)", &bytes)).unwrap();
        let input = format!("@{}:bfloat16", file.display());
        let (shown, saved) = copied(folder.path(), "bfloat16", &input);
        assert!(shown.starts_with("[0.0, 1.0, -2.0, inf, "), "{shown}");
        assert!(saved.ends_with(&bytes) && text(&saved).contains("'descr': '<V2'"));
    }
}

#[test]
fn raw_elements_need_a_type_of_their_size() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.npy");
    let path = file.display();
    std::fs::write(&file, npy("<V2", "(8,)", &[0; 16])).unwrap();
    for (input, wrong) in [
        (
            format!("@{path}"),
            "write the type after the .npy file, as in `x.npy:bfloat16`",
        ),
        (
            format!("@{path}:float32"),
            "its elements take 2 bytes, those of float32 take 4",
        ),
        (
            format!("@{path}:complex64"),
            "`complex64` is not an option of a tensor: write a type",
        ),
        (
            format!("@{path}:int4"),
            "its elements take 2 bytes, those of int4 take 1",
        ),
    ] {
        let done = tvmspec(&[
            "call",
            &library("bfloat16"),
            "bfloat16",
            &input,
            "out:bfloat16[8]",
        ]);
        assert_eq!(done.status.code(), Some(2), "{input}");
        assert!(
            text(&done.stderr).contains(wrong),
            "{input}: {}",
            text(&done.stderr)
        );
    }
    std::fs::write(&file, npy("<f2", "(8,)", &[0; 16])).unwrap();
    let input = format!("@{path}:bfloat16");
    let done = tvmspec(&[
        "call",
        &library("bfloat16"),
        "bfloat16",
        &input,
        "out:bfloat16[8]",
    ]);
    let wrong = "its elements are float16, not bfloat16";
    assert!(text(&done.stderr).contains(wrong), "{}", text(&done.stderr));
}

#[test]
fn a_model_says_itself_what_raw_elements_are() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("x.npy"), folder.path().join("out.npz"));
    // The model adds 1 to the numbers 0 to 7 as bfloat16.
    let bits = [
        0x0000_u16, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0,
    ];
    let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
    let input = format!("x={}", file.display());
    for (word, stated) in [("<V2", ""), ("<u2", ""), ("<V2", ":bfloat16")] {
        std::fs::write(&file, npy(word, "(2, 4)", &bytes)).unwrap();
        let input = format!("{input}{stated}");
        let done = tvmspec(&["run", "golden/vm/bfloat16.so", "--input", &input]);
        let printed = "out_0 = [[1.0, 2.0, 3.0, 4.0],\n [5.0, 6.0, 7.0, 8.0]]";
        assert_eq!(text(&done.stdout).trim(), printed, "{}", text(&done.stderr));
        let saved = out.to_str().unwrap();
        let done = tvmspec(&[
            "run",
            "golden/vm/bfloat16.so",
            "--input",
            &input,
            "-o",
            saved,
        ]);
        assert!(done.status.success(), "{}", text(&done.stderr));
        // The saved file can be read again.
        let again = tvmspec(&["run", "golden/vm/bfloat16.so", "--inputs", saved]);
        assert!(text(&again.stderr).contains("missing inputs: x"));
    }
    // Integers of another size are not converted.
    std::fs::write(&file, npy("<i4", "(2, 4)", &[0; 32])).unwrap();
    let done = tvmspec(&["run", "golden/vm/bfloat16.so", "--input", &input]);
    assert!(
        text(&done.stderr).contains("VM-40"),
        "{}",
        text(&done.stderr)
    );
}

#[test]
fn a_bool_input_of_a_model_up_to_0_22_runs_and_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let values: Vec<u8> = [0.1_f32, 0.9, 0.7, 0.2]
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    std::fs::write(at("x.npy"), npy("<f4", "(4,)", &values)).unwrap();
    std::fs::write(at("c.npy"), npy("|b1", "(4,)", &[1, 1, 0, 1])).unwrap();
    let (x, c) = (
        format!("x={}", at("x.npy").display()),
        format!("c={}", at("c.npy").display()),
    );
    let model = "golden/vm/bool-0.19.so";
    let done = tvmspec(&["run", model, "--input", &x, "--input", &c]);
    let printed = "out_0 = [0.1, 0.9, 0.0, 0.2]\nout_1 = [false, true, false, false]";
    assert_eq!(text(&done.stdout).trim(), printed, "{}", text(&done.stderr));
    let out = at("out.npz");
    let done = tvmspec(&[
        "run",
        model,
        "--input",
        &x,
        "--input",
        &c,
        "-o",
        out.to_str().unwrap(),
    ]);
    assert!(done.status.success(), "{}", text(&done.stderr));
}

#[test]
fn what_cannot_be_saved_is_said_before_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none").join("out.npz");
    let file = folder.path().join("x.npy");
    std::fs::write(&file, npy("<V2", "(2, 4)", &[0; 16])).unwrap();
    let input = format!("x={}", file.display());
    let args = [
        "run",
        "golden/vm/bfloat16.so",
        "--input",
        &input,
        "-o",
        none.to_str().unwrap(),
    ];
    let done = tvmspec(&args);
    assert_eq!(done.status.code(), Some(2));
    assert!(
        text(&done.stderr).contains("cannot write"),
        "{}",
        text(&done.stderr)
    );
    // A file with the name of the folder.
    let args = [
        "call",
        &library("int4"),
        "int4",
        "out:int4[8]",
        "out:int4[8]",
        "--save",
    ];
    let done = tvmspec(&[&args[..], &[file.to_str().unwrap()]].concat());
    assert_eq!(done.status.code(), Some(2), "{}", text(&done.stdout));
    assert!(done.stdout.is_empty());
}

/// Tests `__truncdfhf2` of this program, as a library finds it.
#[test]
fn float64_is_rounded_once_to_float16() {
    let this = libloading::os::unix::Library::this();
    // SAFETY: the function takes a number; up to LLVM 14 code looks for the result where an integer is returned.
    let convert = unsafe { this.get::<extern "C" fn(f64) -> u64>("__truncdfhf2") };
    let convert = convert.expect("tests export their symbols");
    // 1 + 2^-11 lies halfway between 1 and the next float16. The next value is slightly above the tie.
    let tie = 1.0 + 2f64.powi(-11);
    for (value, bits) in [
        (1.0, 0x3c00),
        (tie, 0x3c00),
        (tie + 2f64.powi(-45), 0x3c01),
        (-65520.0, 0xfc00),
        (2f64.powi(-24), 0x0001),
    ] {
        assert_eq!(convert(value) & 0xffff, bits, "{value}");
    }
}
