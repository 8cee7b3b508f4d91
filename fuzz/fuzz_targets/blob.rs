//! Reads any bytes as a library binary, in every layout. Also writes generated modules with their import tree, and reads them back.
#![no_main]

#[path = "naive/mod.rs"]
mod naive;

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use tvmspec::blob::{Blob, LibraryModule, StoredModule, detect::detect};
use tvmspec::import_tree::ImportTree;
use tvmspec::release::Layout;
use tvmspec::rule::Findings;
use tvmspec::wire::Trace;

fuzz_target!(|data: &[u8]| {
    let Some((selector, bytes)) = data.split_first() else { return };
    if selector & 4 == 0 {
        read(bytes, Layout::ALL[usize::from(selector & 3)]);
        read(bytes, detect(bytes, None));
        // BLOB-18: the two newer symbols settle the layout. The oldest symbol leaves two layouts possible.
        assert_eq!(detect(bytes, Some("__tvm_ffi__library_bin")), Layout::V0_22);
        assert_eq!(detect(bytes, Some("__tvm_ffi_library_bin")), Layout::V0_21);
        assert!(detect(bytes, Some("__tvm_dev_mblob")) < Layout::V0_21);
    } else if let Ok(blob) = invented(&mut Unstructured::new(bytes)) {
        write_and_read_back(&blob);
    }
});

fn read(bytes: &[u8], layout: Layout) {
    let whole = Blob::read(bytes, layout);
    let trace = Trace::new();
    let partial = Blob::read_traced(bytes, layout, &trace);
    assert_eq!(whole.is_ok(), partial.broken.is_none(), "a partial reading breaks exactly where a whole one does");
    // Fields never overlap.
    let mut end = 0;
    for span in trace.into_spans() {
        assert!(span.start >= end && span.end > span.start, "{span:?} begins before {end}");
        end = span.end;
    }
    let (blob, findings) = match whole {
        Ok(read) => (read.value, read.findings),
        Err(broken) => {
            assert_eq!(naive::blob::read(bytes, layout, &mut naive::Odd::new()), None, "what keeps every rule is read");
            // BLOB-03, BLOB-06 and BLOB-10 are reported first. A missing module and an unknown kind break later rules too.
            let unknown = broken.rule().id() == "PAY-01" && !broken.field().contains("imports");
            assert!(!unknown, "{broken}");
            if let Some(rule) = naive::blob::is_short(bytes, layout) {
                assert_eq!(broken.rule().id(), rule, "{broken}");
            }
            return;
        }
    };
    let ends: Vec<Option<usize>> = blob.modules.iter().map(|module| Some(module.payload()?.len())).collect();
    let mut odd = naive::Odd::new();
    let (modules, tree) = naive::blob::read(bytes, layout, &mut odd).expect("the second reading accepts it too");
    // The bytes left over in a payload belong to another chapter.
    odd.remove("WIRE-08");
    assert_eq!(naive::findings(&findings, &["BLOB", "TREE"]), odd);
    assert!(modules.iter().map(|(kind, _)| kind.as_str()).eq(blob.modules.iter().map(LibraryModule::kind)));
    assert!(modules.iter().map(|(_, length)| *length).eq(ends));
    assert_eq!(tree.map(|rows| rows.len()), blob.tree.as_ref().map(ImportTree::modules));
    if findings.is_empty() {
        let written = blob.write().expect("a value without findings can be written");
        assert!(written == bytes, "a canonical blob is written to the same bytes");
        for end in [bytes.len() / 2, bytes.len().saturating_sub(1)] {
            assert!(Blob::read(&bytes[..end], layout).is_err(), "cut at {end}");
        }
    }
    for to in Layout::ALL {
        if let Ok(converted) = blob.convert(to) {
            let _ = converted.write();
        }
    }
}

fn invented(from: &mut Unstructured<'_>) -> arbitrary::Result<Blob<'static>> {
    let count = from.int_in_range(1..=6)?;
    let library = from.int_in_range(0..=count)?;
    let mut modules = Vec::new();
    for index in 0..count {
        if index == library {
            modules.push(LibraryModule::Host);
            continue;
        }
        let payload = Vec::<u8>::arbitrary(from)?;
        modules.push(StoredModule::new(format!("acme{index}"), payload, Layout::V0_22).into());
    }
    let mut indptr = vec![0_u64];
    let mut indices = Vec::new();
    for row in 0..count {
        for child in row + 1..count {
            // The first child keeps every module reachable from the root.
            if child == row + 1 || from.arbitrary()? {
                indices.push(child as u64);
            }
        }
        indptr.push(indices.len() as u64);
    }
    let tree = ImportTree::new(&indptr, &indices, &mut Findings::default()).unwrap();
    Ok(Blob { layout: Layout::V0_22, modules, tree: Some(tree) })
}

fn write_and_read_back(blob: &Blob<'_>) {
    let bytes = blob.write().expect("layout 0.22 holds any modules");
    let read = Blob::read(&bytes, Layout::V0_22).expect("written bytes can be read").value;
    assert_eq!(read.to_json(), blob.to_json());
}
