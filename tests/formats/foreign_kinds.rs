//! Unknown kinds of modules in layouts whose payloads have no length. The modules after them are read if the bytes show where the
//! payload ends.

use tvmspec::blob::{Blob, ForeignKinds, PartialBlob};
use tvmspec::import_tree::ImportTree;
use tvmspec::release::Layout;
use tvmspec::rule::{Findings, Kind};
use tvmspec::wire::Writer;

fn key(out: &mut Writer, kind: &str) {
    out.str(kind);
}

/// Writes the payload of a JSON runtime.
fn json_runtime(out: &mut Writer, symbol: &str) {
    out.str(symbol);
    out.str("{\"nodes\": []}");
    out.vector(&["c0", "c1"], |out, name| out.str(name));
}

fn metal(out: &mut Writer) {
    out.str("metal");
    out.count(0);
    out.str("kernel void k() {}");
}

/// Creates a library binary of layout 0.7: `_lib`, which imports all of `modules`, and the tree.
fn library(modules: &[&dyn Fn(&mut Writer)]) -> Vec<u8> {
    let mut body = Writer::new();
    body.count(modules.len() + 2);
    key(&mut body, "_lib");
    for module in modules {
        module(&mut body);
    }
    key(&mut body, "_import_tree");
    let count = modules.len() as u64;
    let mut indptr = vec![count; modules.len() + 2];
    indptr[0] = 0;
    let indices: Vec<u64> = (1..=count).collect();
    ImportTree::new(&indptr, &indices, &mut Findings::default())
        .unwrap()
        .write(&mut body);
    let body = body.into_bytes();
    let mut out = Writer::new();
    out.bytes(&body);
    out.into_bytes()
}

fn read<'b>(bytes: &'b [u8], kinds: &ForeignKinds) -> PartialBlob<'b> {
    Blob::read_foreign(bytes, Layout::V0_7, None, kinds)
}

fn kinds_of(partial: &PartialBlob<'_>) -> Vec<String> {
    let modules = partial.blob.modules.iter();
    modules.map(|module| module.kind().to_string()).collect()
}

#[test]
fn several_json_runtimes_of_a_vendor_are_read() {
    let vendor = |out: &mut Writer| {
        key(out, "npu_json");
        json_runtime(out, "sub_0");
    };
    let metal = |out: &mut Writer| {
        key(out, "metal");
        metal(out);
    };
    let bytes = library(&[&vendor, &metal, &vendor, &vendor]);
    assert!(Blob::read(&bytes, Layout::V0_7).is_err());
    let partial = read(&bytes, &ForeignKinds::default());
    assert!(partial.broken.is_none(), "{:?}", partial.broken);
    assert_eq!(
        kinds_of(&partial),
        ["_lib", "npu_json", "metal", "npu_json", "npu_json"]
    );
    assert_eq!(partial.findings.as_slice().len(), 3);
    let payload = ForeignKinds::default().decode(partial.blob.modules[3].stored().unwrap());
    assert!(payload.is_some_and(|payload| payload.field("symbol").is_some()));
    // Layout 0.22 has lengths, and stores payloads without a known grammar.
    let framed = partial.blob.convert(Layout::V0_22).unwrap();
    assert_eq!(
        framed.modules[1].payload(),
        partial.blob.modules[1].payload()
    );
}

#[test]
fn a_payload_of_any_bytes_ends_where_the_tree_begins() {
    let vendor = |out: &mut Writer| {
        key(out, "npu");
        out.raw(&[7; 33]);
    };
    let metal = |out: &mut Writer| {
        key(out, "metal");
        metal(out);
    };
    let bytes = library(&[&metal, &vendor]);
    let partial = read(&bytes, &ForeignKinds::default());
    assert!(partial.broken.is_none(), "{:?}", partial.broken);
    assert_eq!(partial.blob.modules[2].payload(), Some([7; 33].as_slice()));
    let bytes = library(&[&vendor, &metal]);
    assert!(read(&bytes, &ForeignKinds::default()).broken.is_none());
}

#[test]
fn two_payloads_of_any_bytes_are_not_told_apart_and_the_tree_is_found() {
    let vendor = |out: &mut Writer| {
        key(out, "npu");
        out.raw(&[7; 33]);
    };
    let bytes = library(&[&vendor, &vendor]);
    let partial = read(&bytes, &ForeignKinds::default());
    let broken = partial.broken.as_ref().unwrap();
    assert_eq!(
        (broken.rule().id(), broken.kind()),
        ("BLOB-06", Kind::UnknownKind)
    );
    assert_eq!(partial.blob.imports(0), [1, 2]);
    assert_eq!(kinds_of(&partial), ["_lib"]);
}

#[test]
fn a_stated_grammar_is_held_to() {
    let vendor = |out: &mut Writer| {
        key(out, "npu");
        metal(out);
    };
    let bytes = library(&[&vendor, &vendor]);
    let stated = ForeignKinds::new([("npu", "cuda")]).unwrap();
    let partial = read(&bytes, &stated);
    assert!(partial.broken.is_none(), "{:?}", partial.broken);
    let payload = stated
        .decode(partial.blob.modules[1].stored().unwrap())
        .unwrap();
    assert_eq!(payload.format(), Some("metal"));
    let wrong = ForeignKinds::new([("npu", "coreml")]).unwrap();
    assert!(read(&bytes, &wrong).broken.is_some());
    assert_eq!(ForeignKinds::new([("npu", "none")]).err(), Some("none"));
}

#[test]
fn many_modules_of_a_vendor_take_linear_time() {
    let vendor = |out: &mut Writer| {
        key(out, "npu_json");
        json_runtime(out, "sub");
    };
    let modules: Vec<&dyn Fn(&mut Writer)> = (0..4000).map(|_| &vendor as _).collect();
    let bytes = library(&modules);
    let start = std::time::Instant::now();
    assert!(read(&bytes, &ForeignKinds::default()).broken.is_none());
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
