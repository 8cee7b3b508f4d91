//! Reads any bytes as a container of library binaries. Also reads containers generated here, either correct or with one error.
//!
//! Checks:
//! * Nothing panics.
//! * A library binary has the offset that the report states, and the length that its header states.
//! * In a generated file, the library binary is found, and an inserted error breaks the expected rule.
#![no_main]

#[path = "made/mod.rs"]
mod made;

use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use made::{Found, Made, Verdict};
use tvmspec::blob::container::{self, ContainerFile, FileForm, Size};
use tvmspec::rule::Strictness;

fuzz_target!(|data: &[u8]| {
    let Some((selector, bytes)) = data.split_first() else { return };
    if selector & 1 == 0 {
        any(bytes);
    } else if let Ok(made) = made::make(&mut Unstructured::new(bytes)) {
        check(&made);
        any(&made.bytes);
    }
});

fn any(bytes: &[u8]) {
    let _ = container::incompatibility(bytes);
    let _ = container::linkage(FileForm::detect(bytes), bytes);
    let read = container::open(bytes);
    let strict = container::open_with(bytes, Strictness::Strict);
    let Ok(file) = read else {
        assert!(strict.is_err(), "who is strict accepts no more");
        return;
    };
    assert_eq!(strict.is_ok(), file.findings.is_empty(), "strict is without findings");
    let mut named = 0;
    for (part, blob) in file.blobs() {
        if let Some(offset) = blob.offset {
            let start = usize::try_from(offset).expect("an offset in the file");
            assert_eq!(bytes.get(start..start + blob.bytes.len()), Some(&*blob.bytes), "{}", blob.symbol);
        }
        if !part.form.is_object() {
            continue;
        }
        named += blob.bytes.len();
        let counted = blob.bytes.first_chunk().map(|header| u64::from_le_bytes(*header));
        let length = blob.bytes.len() as u64;
        assert_eq!(counted.map(|counted| counted + 8), Some(length), "BLOB-53: {}", blob.symbol);
        let (Size::Known(granted) | Size::Derived { room: granted }) = blob.size;
        assert!(granted >= length, "{}", blob.symbol);
    }
    // BLOB-68, for the library binaries. BLOB-57 bounds those inside gzip data.
    assert!(named <= 28 * bytes.len() + (2 << 20));
    for part in file.parts {
        let (functions, releases) = (part.functions().count(), part.releases());
        let own = part.into_owned();
        assert_eq!((own.functions().count(), own.releases()), (functions, releases));
    }
}

fn check(made: &Made) {
    let read = container::open(&made.bytes);
    match (&made.verdict, &read) {
        (Verdict::Broken(rule, kind), Err(broken)) => assert_eq!((broken.rule().id(), broken.kind()), (*rule, *kind), "{broken}"),
        (Verdict::Broken(rule, _), Ok(_)) => panic!("what breaks {rule} is read"),
        (_, Err(broken)) => panic!("what keeps every rule is read: {broken}"),
        (_, Ok(file)) => found(made, file),
    }
}

fn found(made: &Made, file: &ContainerFile<'_>) {
    let odd: Vec<&str> = file.findings.as_slice().iter().map(|finding| finding.rule.id()).collect();
    match made.verdict {
        Verdict::Odd(rule) => assert_eq!(odd, [rule]),
        _ => assert_eq!(odd, [""; 0]),
    }
    let [part] = &*file.parts else { panic!("{} parts", file.parts.len()) };
    assert_eq!(part.member, made.member);
    let symbols = part.symbols.iter().map(|symbol| (&*symbol.name, &*symbol.prefix, symbol.role.clone()));
    let expected = made.symbols.iter().map(|(name, prefix, role)| (name.as_str(), prefix.as_str(), role.clone()));
    assert_eq!(symbols.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let blobs: Vec<Found> = part
        .blobs
        .iter()
        .map(|blob| Found {
            symbol: blob.symbol.clone(),
            prefix: blob.prefix.clone(),
            layout: blob.layout,
            address: blob.address,
            offset: blob.offset,
            bytes: blob.bytes.to_vec(),
        })
        .collect();
    assert_eq!(blobs, [made.blob.clone()]);
}
