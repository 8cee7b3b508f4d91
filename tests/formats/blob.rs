//! The library binary: files of any form, walks, conversions, and damaged blobs.

#[cfg(feature = "inspect")]
use crate::support::folder;
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use std::path::PathBuf;
use tvmspec::blob::container::{self, EmbeddedBlob};
use tvmspec::blob::{self, Blob, LibraryModule, StoredLibrary, StoredModule, detect::detect};
use tvmspec::import_tree::ImportTree;
use tvmspec::release::Layout;
use tvmspec::rule::Findings;

fn golden(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden/blob")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Real blobs, at least one of every layout.
const REAL: [(&str, Layout); 18] = [
    ("opencl.bin", Layout::V0_22),
    ("cuda.bin", Layout::V0_22),
    ("metal.bin", Layout::V0_22),
    ("webgpu.bin", Layout::V0_22),
    ("const-loader-c.bin", Layout::V0_22),
    ("dso-merge.bin", Layout::V0_22),
    ("library-alone.bin", Layout::V0_22),
    ("relax-vm.bin", Layout::V0_22),
    ("opencl-0.21.bin", Layout::V0_21),
    ("opencl-0.8.bin", Layout::V0_7),
    ("metal-0.8.bin", Layout::V0_7),
    ("graph-factory.bin", Layout::V0_7),
    ("relay-vm.bin", Layout::V0_7),
    ("tree3.bin", Layout::V0_7),
    ("opencl-root.bin", Layout::V0_7),
    ("opencl-0.19.bin", Layout::V0_7),
    ("opencl-0.6.bin", Layout::V0_2),
    ("two-imports-0.6.bin", Layout::V0_2),
];

/// Compares `open` with reading step by step, for whole libraries and tars of C text.
#[cfg(feature = "inspect")]
#[test]
fn a_file_of_any_form_opens_in_one_call() {
    use tvmspec::blob::PartialBlob;
    use tvmspec::blob::rules::BLOB_06;

    use tvmspec::examine::Subject;
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden");
    let (mut read, mut broken, mut members, mut owned, mut hosts) = (0, 0, 0, 0, 0);
    for path in folder::files(&folder) {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.display().to_string();
        let opened = blob::open(&bytes);
        let Ok(subject) = Subject::open(&name, &bytes, None) else {
            assert!(opened.is_err(), "{name}");
            broken += 1;
            continue;
        };
        let units = subject.units();
        let by_hand: Vec<_> = units
            .iter()
            .filter_map(|unit| Some((unit, unit.library()?)))
            .collect();
        let first = by_hand
            .iter()
            .find_map(|(unit, partial)| Some((unit, partial.broken.as_ref()?)));
        if let Some((unit, expected)) = first {
            let found = opened.unwrap_err();
            assert_eq!(
                found.to_string(),
                expected
                    .clone()
                    .shifted(unit.offset.unwrap_or(0))
                    .to_string(),
                "{name}"
            );
            assert_eq!(
                found.offset(),
                expected.clone().shifted(unit.offset.unwrap_or(0)).offset(),
                "{name}"
            );
            broken += 1;
            continue;
        }
        // BLOB-06: an inspection continues after a kind at which a reader stops. If payloads have lengths, no reader stops.
        let is_noted = |finding: &&tvmspec::rule::Finding| finding.rule == BLOB_06;
        let is_foreign = |partial: &PartialBlob<'_>| {
            let stops = partial.blob.layout != Layout::V0_22;
            stops
                && partial
                    .findings
                    .as_slice()
                    .iter()
                    .any(|finding| is_noted(&finding))
        };
        if by_hand.iter().any(|(_, partial)| is_foreign(partial)) {
            assert_eq!(opened.unwrap_err().rule(), BLOB_06, "{name}");
            broken += 1;
            continue;
        }
        let mut opened = opened.unwrap_or_else(|error| panic!("{name}: {error}"));
        if by_hand.is_empty() && subject.is_compiled() {
            let host = opened.remove(0);
            let parts = subject.file.parts.iter();
            assert!(host.blob.is_none(), "{name}");
            assert_eq!(host.modules(), [LibraryModule::Host], "{name}");
            assert_eq!(
                host.functions.iter().collect::<Vec<_>>(),
                parts.flat_map(|part| part.functions()).collect::<Vec<_>>(),
                "{name}"
            );
            hosts += 1;
        }
        assert_eq!(opened.len(), by_hand.len(), "{name}");
        for (library, (unit, partial)) in opened.iter().zip(&by_hand) {
            assert_eq!(library.blob.as_ref(), Some(&partial.blob), "{name}");
            let others = partial.findings.as_slice().iter();
            assert_eq!(
                library.findings.as_slice().iter().collect::<Vec<_>>(),
                others
                    .filter(|finding| !is_noted(finding))
                    .collect::<Vec<_>>(),
                "{name}"
            );
            let part = &subject.file.parts[unit.part];
            assert_eq!(
                library.functions.iter().collect::<Vec<_>>(),
                part.functions().collect::<Vec<_>>(),
                "{name}"
            );
            assert_eq!(library.offset, unit.offset, "{name}");
            members += usize::from(!library.member.is_empty());
            owned += usize::from(unit.offset.is_none());
            read += 1;
        }
    }
    println!(
        "{read} read, {members} of them in archives, {owned} not in the file as they are; {broken} files broken"
    );
    assert!(
        read > 100 && broken > 50 && members > 3 && owned > 5 && hosts > 5,
        "{read} {broken} {members} {owned} {hosts}"
    );
}

#[test]
fn what_opens_says_where_it_was_found() {
    let file = golden("containers/tree3-0.8.so");
    let libraries: Vec<StoredLibrary<'_>> = blob::open(&file).unwrap();
    let [library] = libraries.as_slice() else {
        panic!("{} libraries", libraries.len());
    };
    let blob = library.blob.as_ref().unwrap();
    let found = container::open(&file).unwrap();
    let embedded: Vec<&EmbeddedBlob<'_>> = found.blobs().map(|(_, embedded)| embedded).collect();
    assert_eq!(embedded[0].bytes, blob.write().unwrap());
    assert_eq!(embedded.len(), 1);
    assert_eq!(
        (&*library.symbol, &*library.member, &*library.prefix),
        ("__tvm_dev_mblob", "", "")
    );
    assert_eq!(blob.imports(0), [1, 2]);
    assert_eq!(library.entry.as_deref(), Some("__tvm_main__"));
    assert!(!library.functions.is_empty());
    assert!(blob::open(b"no file of TVM").unwrap().is_empty());
}

#[test]
fn every_prefix_of_a_real_blob_is_rejected_if_its_header_counts_it() {
    for (name, layout) in REAL {
        let bytes = golden(name);
        assert_eq!(detect(&bytes, None), layout, "{name}");
        for end in 8..bytes.len() {
            let mut cut = bytes[..end].to_vec();
            cut[..8].copy_from_slice(&(end as u64 - 8).to_le_bytes());
            assert!(Blob::read(&cut, layout).is_err(), "{name} cut at {end}");
        }
    }
}

#[test]
fn a_converted_payload_has_its_place_where_its_bytes_are_the_same() {
    let bytes = golden("opencl-0.8.bin");
    let blob = Blob::read(&bytes, Layout::V0_7).unwrap().value;
    let place = |blob: &Blob<'_>, index: usize| {
        let module = blob.modules[index].stored().unwrap();
        (module.payload.to_vec(), module.offset)
    };
    let (payload, offset) = place(&blob, 1);
    assert!(offset > 0);
    // PAY-03: 0.21 adds a field to the function, so that these bytes were never in the file.
    let newer = blob.convert(Layout::V0_21).unwrap();
    assert_ne!(place(&newer, 1).0, payload);
    assert_eq!(place(&newer, 1).1, 0);
    // 0.2 and 0.7 store the same bytes.
    let older = blob.convert(Layout::V0_2).unwrap();
    assert_eq!(place(&older, 0), (payload, offset));
}

/// Returns the walk as text: the depth, the index and the kind of each module, and `*` for one that was met before.
fn walked(blob: &Blob<'_>) -> String {
    let places = blob.walk().map(|place| {
        let index = place
            .index
            .map_or("-".to_owned(), |index| index.to_string());
        let again = if place.is_repeated { "*" } else { "" };
        format!("{}:{index}:{}{again}", place.depth, place.module.kind())
    });
    places.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_walk_begins_at_the_host_library_in_every_layout() {
    let read = |name: &str, layout| {
        let bytes = golden(name);
        Blob::read(&bytes, layout).unwrap().value.into_owned()
    };
    let tree = read("tree3.bin", Layout::V0_7);
    assert_eq!(
        (walked(&tree).as_str(), tree.roots()),
        ("0:0:_lib 1:1:metal 1:2:opencl", vec![0])
    );
    // BLOB-14: layout 0.2 stores neither the host library nor a tree.
    let old = read("two-imports-0.6.bin", Layout::V0_2);
    assert_eq!(old.roots(), [0, 1]);
    assert!(
        walked(&old).starts_with("0:-:_lib 1:0:"),
        "{}",
        walked(&old)
    );
    assert_eq!(old.walk().count(), 3);
    // A module with two parents is walked once. Nothing reaches the last one.
    let stored =
        |kind: &'static str| StoredModule::new(kind, b"x".as_slice(), Layout::V0_22).into();
    let tree = ImportTree::new(&[0, 2, 3, 3, 3], &[1, 2, 2], &mut Findings::default());
    let diamond = Blob {
        layout: Layout::V0_22,
        modules: vec![LibraryModule::Host, stored("a"), stored("b"), stored("c")],
        tree: Some(tree.unwrap()),
    };
    assert_eq!(walked(&diamond), "0:0:_lib 1:1:a 2:2:b 1:2:b*");
}

#[test]
fn a_payload_of_another_layout_is_not_written() {
    let bytes = golden("opencl-0.8.bin");
    let mut blob = Blob::read(&bytes, Layout::V0_7).unwrap().value;
    blob.layout = Layout::V0_22;
    assert_eq!(blob.write().unwrap_err().rule().id(), "BLOB-17");
}

#[test]
fn a_part_is_compiled_code_where_only_compiled_code_has_its_symbols() {
    let compiled = |name: &str| {
        let bytes = golden(&format!("containers/{name}"));
        let file = container::open(&bytes).unwrap();
        file.parts.iter().any(|part| part.is_compiled())
    };
    // Recognised by its blob; by its symbols alone; as a host library that imports nothing.
    assert!(compiled("elf-x86_64.o"));
    assert!(compiled("c_only-0.8.so"));
    assert!(compiled("cpu_llvm-0.27.so"));
    // Functions alone are no sign, because any program has them.
    let with = |name: &str| {
        let mut part = {
            let bytes = golden("containers/c_only-0.8.so");
            container::open(&bytes)
                .unwrap()
                .parts
                .remove(0)
                .into_owned()
        };
        part.blobs.clear();
        part.symbols.retain(|symbol| &*symbol.name == name);
        part.symbols.len() == 1 && part.is_compiled()
    };
    let names: Vec<String> = {
        let bytes = golden("containers/c_only-0.8.so");
        let file = container::open(&bytes).unwrap();
        let symbols = file.parts[0].symbols.iter();
        symbols.map(|symbol| symbol.name.to_string()).collect()
    };
    let telling: Vec<&String> = names.iter().filter(|name| with(name)).collect();
    assert!(
        telling.iter().all(|name| name.starts_with("__")),
        "{telling:?}"
    );
    assert!(
        !telling.is_empty() && telling.len() < names.len(),
        "{names:?}"
    );
}

#[test]
fn a_text_has_functions_and_neither_addresses_nor_sizes() {
    let bytes = golden("containers/c-names.c");
    let file = container::open(&bytes).unwrap();
    let part = &file.parts[0];
    assert!(!part.symbols.is_empty());
    for symbol in &part.symbols {
        assert_eq!((symbol.address, symbol.size), (None, 0), "{}", symbol.name);
    }
    let functions: Vec<&str> = part.functions().collect();
    // BLOB-63: other definitions are not packed functions.
    assert_eq!(functions, ["add", "inits", "older"]);
}

fn blobs() -> impl Strategy<Value = Blob<'static>> {
    let payloads = prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8);
    (payloads, any::<u64>()).prop_map(|(payloads, edges)| {
        let mut modules = vec![LibraryModule::Host];
        for (index, payload) in payloads.into_iter().enumerate() {
            let kind = format!("acme{index}");
            modules.push(StoredModule::new(kind, payload, Layout::V0_22).into());
        }
        let (mut indptr, mut indices) = (vec![0], Vec::new());
        for row in 0..modules.len() {
            let children = row + 1..modules.len();
            let chosen =
                |child: &usize| *child == row + 1 || (edges >> ((row * 8 + child) % 64)) & 1 == 1;
            indices.extend(children.filter(chosen).map(|child| child as u64));
            indptr.push(indices.len() as u64);
        }
        let tree = ImportTree::new(&indptr, &indices, &mut Findings::default()).unwrap();
        Blob {
            layout: Layout::V0_22,
            modules,
            tree: Some(tree),
        }
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(blob in blobs()) {
        let bytes = blob.write().unwrap();
        let read = Blob::read(&bytes, Layout::V0_22).unwrap().strict().unwrap();
        prop_assert_eq!(read.to_json(), blob.to_json());
        prop_assert!(Blob::from_json(&read.to_json()).unwrap().write().unwrap() == bytes);
    }

    #[test]
    fn one_changed_byte_never_panics(which in 0..REAL.len(), at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let (name, _) = REAL[which];
        let mut bytes = golden(name);
        let at = at.index(bytes.len());
        bytes[at] = value;
        for layout in Layout::ALL {
            let _ = Blob::read(&bytes, layout);
        }
        let _ = detect(&bytes, None);
    }
}

/// BLOB-11: a payload with a length is still checked by the rules of its kind (PAY-05), at the right offset in the file.
#[test]
fn a_broken_payload_is_found_inside_its_library() {
    for (name, offset) in [
        ("streams-framed-payload-broken.bin", 163),
        ("streams-framed-payload-of-two-forms-broken.bin", 166),
    ] {
        let bytes = golden(name);
        let broken = Blob::read(&bytes, Layout::V0_22);
        let broken = broken.unwrap_err();
        assert_eq!(broken.rule().id(), "PAY-05", "{name}: {broken}");
        assert_eq!(broken.offset(), Some(offset), "{name}: {broken}");
        let field = "module[1].functions[0].launch_param_tags[1]";
        assert_eq!(broken.field(), field, "{name}: {broken}");
    }
}

#[test]
fn functions_of_webgpu_get_no_tags_when_they_come_from_an_older_layout() {
    let newest = golden("webgpu.bin");
    let blob = Blob::read(&newest, Layout::V0_22).unwrap().value;
    let first = blob.convert(Layout::V0_21).unwrap().write().unwrap();
    let read = |bytes: &[u8], layout| {
        let blob = Blob::read(bytes, layout).unwrap().value;
        blob.into_owned()
    };
    let older = read(&first, Layout::V0_21).convert(Layout::V0_7).unwrap();
    let older = older.write().unwrap();
    let again = read(&older, Layout::V0_7).convert(Layout::V0_21).unwrap();
    assert_eq!(again.write().unwrap(), first);
}
