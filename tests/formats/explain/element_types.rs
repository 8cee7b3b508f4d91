//! Element types by the names and codes of each release, for which `convert`, `explain` and `inspect` once used those of another
//! release.

use super::regressions::{E4M3, Made, convert, edited, expect, form, made};
use super::user_files::print;
use super::{ask, golden};
use serde_json::{Value, json};
use std::fs;

/// The offset of the type code of the tensor of [`E4M3`].
const CODE: usize = 0x45;

/// Creates a graph whose first entry has type `dtype`.
fn graph(dtype: &str) -> Made {
    let bytes = fs::read(golden("graph/mlp.json")).unwrap();
    let mut graph: Value = serde_json::from_slice(&bytes).unwrap();
    graph["attrs"]["dltype"][1][0] = json!(dtype);
    made("graph.json", graph.to_string())
}

#[test]
fn a_type_code_of_two_meanings_is_converted_by_its_writer() {
    let folder = tempfile::tempdir().unwrap();
    let e5m2 = made("e5m2.params", edited(E4M3, |bytes| bytes[CODE] = 7));
    let e4m3 = golden(E4M3);
    for (params, index, writer, name) in [
        (&e4m3, "tensor-cache.json", "0.16", "float8_e4m3fn"),
        (&e4m3, "ndarray-cache.json", "0.19", "e4m3_float8"),
        (&e4m3, "ndarray-cache.json", "0.20", "float8_e4m3fn"),
        (&e4m3, "tensor-cache.json", "0.27", "bool"),
        (&e5m2.path, "tensor-cache.json", "0.19", "float8_e5m2"),
    ] {
        let out = folder.path().join(index);
        let (code, text) = convert(params, &out, &[]);
        assert_eq!(code, Some(2), "{text}");
        assert!(
            text.contains("finding: ") && text.contains("[TEN-02]"),
            "{text}"
        );
        assert!(text.contains("--written-by 0.19"), "{text}");
        assert!(!out.exists());
        let (code, text) = convert(params, &out, &["--written-by", writer]);
        assert_eq!(code, Some(0), "{text}");
        let index: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
        assert_eq!(index["records"][0]["records"][0]["dtype"], name, "{writer}");
        fs::remove_file(out).unwrap();
    }
    // The stated release has no such type.
    let out = folder.path().join("tensor-cache.json");
    let (code, text) = convert(&e4m3, &out, &["--written-by", "0.21"]);
    assert_ne!(code, Some(0));
    assert!(text.contains("no element type of code 6"), "{text}");
    // Zeros and ones are the bool of 0.27, so that no release has to be stated.
    let bool = golden("tensor/bool-0.27.params");
    assert_eq!(convert(&bool, &out, &[]), (Some(0), String::new()));
    assert!(fs::read_to_string(&out).unwrap().contains("\"bool\""));
}

#[test]
fn a_type_that_no_release_names_is_not_loaded_whole() {
    // In the real 0.8, 0.9, 0.19, 0.21 and 0.27, reading the type fails.
    let nameless = "whatever asks for that type fails";
    for code in [5, 18, 100] {
        let params = made("x.params", edited(E4M3, |bytes| bytes[CODE] = code));
        expect(
            &params.path,
            &[
                (8, "silent", nameless),
                (19, "silent", nameless),
                (27, "silent", nameless),
            ],
        );
    }
    let custom = made("x.params", edited(E4M3, |bytes| bytes[CODE] = 150));
    let registered = "unless the process has registered a type of that code";
    expect(
        &custom.path,
        &[(8, "silent", registered), (27, "silent", registered)],
    );
    // From 0.21 on, a wrong width has a text: `float4_e2m1fn` of 8 bits.
    let wide = made("x.params", edited(E4M3, |bytes| bytes[CODE] = 17));
    expect(
        &wide.path,
        &[
            (19, "silent", nameless),
            (20, "silent", nameless),
            (27, "loads", ""),
        ],
    );
}

#[test]
fn arguments_of_kernels_have_the_names_of_their_era() {
    // The second argument of the only kernel: its code and its bits.
    let argument = |code: u8, bits: u8| {
        let mut bytes = fs::read(form("unsigned.bin")).unwrap();
        bytes[0xaa..0xac].copy_from_slice(&[code, bits]);
        made("kernel.bin", bytes)
    };
    let complex = argument(5, 64);
    let (_, text) = print(&["verify"], &complex.path);
    assert!(
        text.contains("is code 5 of 64 bits, 1 lanes, which no runtime"),
        "{text}"
    );
    let (_, text) = print(&["inspect"], &complex.path);
    assert!(
        text.contains("modA_my_fn_kernel(handle, [5,64,1]"),
        "{text}"
    );
    let old = argument(6, 8);
    let out = old.folder.path().join("old.bin");
    let (code, text) = convert(&old.path, &out, &["--layout", "0.7"]);
    assert_eq!(code, Some(0), "{text}");
    let (_, text) = print(&["verify"], &out);
    assert!(
        text.contains("is float8_e4m3fn, which no runtime"),
        "{text}"
    );
}

#[test]
fn types_of_graphs_have_the_names_of_their_releases() {
    // The real 0.8 fails: `unknown type e4m3_float8`. The real 0.19 creates an executor.
    for name in ["e4m3_float8", "e5m2_float8"] {
        let graph = graph(name);
        let lacks = format!("it has no element type `{name}`");
        expect(
            &graph.path,
            &[
                (8, "fails", &lacks),
                (12, "fails", &lacks),
                (19, "loads", ""),
            ],
        );
        let inspected = ask(&["inspect", "--json"], &graph.path).unwrap();
        assert_eq!(inspected["graph"]["inputs"][0]["dtype"], name);
    }
    let custom = graph("custom[posites2]32");
    let registered = "if the process has registered the type of `custom[posites2]32`";
    expect(
        &custom.path,
        &[
            (5, "fails", ""),
            (8, "unknown", registered),
            (19, "unknown", registered),
        ],
    );
    let (_, text) = print(&["verify"], &custom.path);
    assert!(
        text.contains("is a custom type, which the program that runs the graph registers"),
        "{text}"
    );
    expect(
        &graph("bfloat16").path,
        &[(6, "fails", "`bfloat16`"), (19, "loads", "")],
    );
}
