//! Types whose codes were assigned twice, by their names in the releases that may have written a file (TEN-02).
#![cfg(feature = "cli")]

use serde_json::json;
use std::fs;
use std::path::Path;
use tvmspec::payload::relay_vm::RelayExecutable;
use tvmspec::release::Releases;
use tvmspec::rpc::{CopyTarget, PackedValue, Packet};
use tvmspec::rule::Findings;
use tvmspec::tensor::Dtype;
use tvmspec::wire::Cursor;

/// `float8_e4m3fn` of 0.13 to 0.20, and bool from 0.22 on.
const CODE_6: Dtype = Dtype::scalar(6, 8);

#[test]
fn a_type_has_the_name_of_its_era() {
    let name = |dtype: Dtype, since, until| dtype.name_in(Releases::between(since, until));
    assert_eq!(name(CODE_6, 7, 20).as_deref(), Some("float8_e4m3fn"));
    assert_eq!(name(CODE_6, 22, 27).as_deref(), Some("bool"));
    let both = "float8_e4m3fn (to 0.20) or bool (from 0.22)";
    assert_eq!(name(CODE_6, 2, 27).as_deref(), Some(both));
    let four = Dtype { lanes: 4, ..CODE_6 };
    assert_eq!(name(four, 13, 20).as_deref(), Some("float8_e4m3fnx4"));
    assert_eq!(
        name(Dtype::scalar(7, 8), 19, 19).as_deref(),
        Some("float8_e5m2")
    );
    assert_eq!(
        name(Dtype::scalar(7, 8), 21, 27).as_deref(),
        Some("float8_e3m4")
    );
    assert_eq!(
        name(Dtype::scalar(8, 4), 2, 27).as_deref(),
        Some("float4_e2m1fn")
    );
    // No release of the era has a name for it, or the name never changed.
    assert_eq!(name(CODE_6, 2, 8), None);
    assert_eq!(name(Dtype::scalar(Dtype::FLOAT, 32), 2, 27), None);
}

#[test]
fn packets_show_types_by_the_releases_that_speak_like_that() {
    let block = |dtype| CopyTarget::Flat(1, 0, tvmspec::tensor::Device::CPU, dtype);
    let packets = [
        Packet::Return(vec![PackedValue::Dtype(CODE_6, 0)]),
        Packet::CopyFromRemote(block(CODE_6), 8),
    ];
    for packet in packets {
        let newest = json!(packet).to_string();
        assert!(newest.contains("\"dtype\":\"bool\""), "{newest}");
        let shown =
            |since, until| json!(packet.in_era(Releases::between(since, until))).to_string();
        assert!(
            shown(16, 20).contains("\"dtype\":\"float8_e4m3fn\""),
            "{packet:?}"
        );
        assert_eq!(shown(22, 27), newest);
        assert!(shown(2, 27).contains("float8_e4m3fn (to 0.20) or bool (from 0.22)"));
    }
}

#[test]
fn code_of_the_relay_vm_names_types_as_its_release_does() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/eras/0.13/relay-vm.ro");
    let bytes = fs::read(file).unwrap();
    let read = RelayExecutable::read_code(&mut Cursor::new(&bytes), &mut Findings::default());
    let mut executable = read.unwrap();
    // AllocTensor: storage, offset, code, bits, lanes, and then the shape.
    let mut code = executable
        .functions
        .iter_mut()
        .flat_map(|function| &mut function.code);
    let alloc =
        code.find(|instruction| instruction.fields.get(2..5) == Some([2, 32, 1].as_slice()));
    alloc.expect("an instruction with float32").fields[2..4].copy_from_slice(&[6, 8]);
    let text = executable.disassemble();
    assert!(text.contains(", float8_e4m3fn, "), "{text}");
}

#[test]
fn extract_says_what_the_form_calls_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/blob/opencl-0.19.bin");
    let bytes = fs::read(library).unwrap();
    let handle = [3, 64, 1, 0];
    let at = bytes.windows(4).position(|four| four == handle).unwrap();
    let edited = folder.path().join("edited.bin");
    fs::write(
        &edited,
        [&bytes[..at], &[6, 8, 1, 0], &bytes[at + 4..]].concat(),
    )
    .unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["extract", "--json", "--layout", "0.7"])
        .arg(&edited)
        .arg("opencl")
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("\"bool\"")
    );
    assert!(
        errors.contains("`bool` in this form is float8_e4m3fn in the releases of layout 0.7"),
        "{errors}"
    );
}
