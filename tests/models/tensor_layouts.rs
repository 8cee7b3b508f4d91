//! Tensors of `call` with a memory layout that compiled code does not expect (FUN-27 to FUN-29), passed to code of four releases.
#![cfg(all(feature = "cli", target_os = "linux", target_arch = "x86_64"))]

use super::commands::{npy, text, tvmspec};
use std::process::Output;

const RELEASES: [&str; 4] = ["0.8", "0.19", "0.21", "0.27"];

/// Calls the function that copies the 2 x 3 numbers 1 to 6, with options for input and output.
fn copied(release: &str, function: &str, input: &str, output: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.npy");
    let data: Vec<u8> = (1..=6)
        .flat_map(|number| (number as f32).to_le_bytes())
        .collect();
    std::fs::write(&file, npy("<f4", "(2, 3)", &data)).unwrap();
    let library = format!("golden/function/{function}-{release}.so");
    let (input, output) = (
        format!("@{}{input}", file.display()),
        format!("out:float32[2,3]{output}"),
    );
    tvmspec(&["call", &library, function, &input, &output])
}

const COPIED: &str = "[[1.0, 2.0, 3.0],\n [4.0, 5.0, 6.0]]";

#[test]
fn what_code_allows_arrives_whole() {
    for release in RELEASES {
        for (input, output) in [
            ("", ""),
            (":strides=3,1", ""),
            ("", ":strides=3,1:align=64"),
            (":align=16", ":align=16"),
        ] {
            let done = copied(release, "copy", input, output);
            assert_eq!(
                text(&done.stdout).trim(),
                COPIED,
                "{release} {input}: {}",
                text(&done.stderr)
            );
        }
    }
}

#[test]
fn code_says_what_is_wrong_with_strides_and_offsets() {
    for release in RELEASES {
        for (option, says) in [
            (":strides=1,2", "compact array"),
            (":strides=0,1", "compact array"),
            (":strides=7,1", "compact array"),
            (":offset=64", "byte_offset"),
        ] {
            for (input, output) in [(option, ""), ("", option)] {
                let done = copied(release, "copy", input, output);
                let said = text(&done.stderr);
                assert_eq!(
                    done.status.code(),
                    Some(1),
                    "{release} {input} {output}: {said}"
                );
                assert!(said.contains(says), "{release} {input} {output}: {said}");
            }
        }
    }
}

#[test]
fn memory_that_is_not_aligned_ends_the_process_of_the_call() {
    // The compiler decides whether misalignment matters. Code of 0.27 loads and stores four numbers at once.
    let done = copied("0.27", "copy", ":align=4", "");
    assert_eq!(done.status.code(), Some(1));
    assert!(
        text(&done.stderr).contains("crashed"),
        "{}",
        text(&done.stderr)
    );
    let done = copied("0.27", "rows", ":align=4", ":align=4");
    assert_eq!(text(&done.stdout).trim(), COPIED, "{}", text(&done.stderr));
}

/// Arrays from a forum thread about tensors that are not contiguous.
#[test]
fn arrays_of_numpy_arrive_in_the_order_of_their_axes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.npy");
    let bytes = |number: i32, descr: &str| match descr {
        "<f4" => (number as f32).to_le_bytes().to_vec(),
        ">f4" => (number as f32).to_be_bytes().to_vec(),
        _ => f64::from(number).to_le_bytes().to_vec(),
    };
    let call = |descr: &str, shape: &str, order: &str| {
        let data: Vec<u8> = (1..=6).flat_map(|number| bytes(number, descr)).collect();
        let mut array = npy(descr, shape, &data);
        let at = array.windows(5).position(|word| word == b"False").unwrap();
        array[at..at + 5].copy_from_slice(order.as_bytes());
        std::fs::write(&file, array).unwrap();
        let input = format!("@{}", file.display());
        let library = "golden/blob/posted/copy23-0.27.so";
        tvmspec(&["call", library, "copy23", &input, "out:float32[2,3]"])
    };
    for descr in ["<f4", ">f4"] {
        let done = call(descr, "(2, 3)", "False");
        assert_eq!(text(&done.stdout).trim(), COPIED, "{}", text(&done.stderr));
    }
    for (descr, shape, order, code, says) in [
        (
            "<f8",
            "(2, 3)",
            "False",
            1,
            "Mismatched A.dtype on argument #0",
        ),
        ("<f4", "(3, 2)", "False", 1, "expected to be compact array"),
        ("<f4", "(2, 3)", "True ", 2, "column-major"),
    ] {
        let done = call(descr, shape, order);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{descr} {shape}: {said}");
        assert!(said.contains(says), "{descr} {shape}: {said}");
    }
}

#[test]
fn strides_lay_out_the_elements_of_the_file() {
    // An axis of length 1 may have any stride. The function reads and writes the row.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("row.npy");
    let data: Vec<u8> = [1.0_f32, 2.0, 3.0]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    std::fs::write(&file, npy("<f4", "(1, 3)", &data)).unwrap();
    let input = format!("@{}:strides=40,1", file.display());
    let done = tvmspec(&[
        "call",
        "golden/function/rows-0.27.so",
        "rows",
        &input,
        "out:float32[1,3]:strides=9,1:align=32",
    ]);
    assert_eq!(
        text(&done.stdout).trim(),
        "[[1.0, 2.0, 3.0]]",
        "{}",
        text(&done.stderr)
    );
    // Bytes can be placed at any stride. The function does not touch the bytes in between.
    let saved = folder.path().to_str().unwrap();
    let args = [
        "call",
        "golden/function/int4-0.27.so",
        "int4",
        "out:int4[8]:align=1",
        "out:int4[8]:align=2",
        "--save",
        saved,
    ];
    let done = tvmspec(&args);
    assert_eq!(
        text(&done.stdout)
            .matches("[0, 0, 0, 0, 0, 0, 0, 0]")
            .count(),
        2,
        "{}",
        text(&done.stderr)
    );
}

#[test]
fn options_that_make_no_tensor_are_errors() {
    for (input, output, says) in [
        ("", ":strides=1", "are 1, for 2 axes"),
        ("", ":strides=-3,1", "is not an option of a tensor"),
        ("", ":stride=3,1", "is not an option of a tensor"),
        ("", ":align=48", "is not an option of a tensor"),
        ("", ":align=128", "is not an option of a tensor"),
        ("", ":float32", "is not an output"),
        ("", ":offset=18446744073709551615", "no memory reaches"),
        ("", ":strides=9223372036854775807,1", "no memory reaches"),
    ] {
        let done = copied("0.27", "copy", input, output);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{input} {output}: {said}");
        assert!(said.contains(says), "{input} {output}: {said}");
    }
}
