//! Containers: packed binaries are found by this crate and by the installed linkers; damaged files never cause a panic.

#![cfg(feature = "frontend")]

mod linkers;

use proptest::prelude::*;
use std::path::{Path, PathBuf};
use tvmspec::blob::container::{self, MAX_DEPTH};
use tvmspec::blob::pack::{self, Arch, ObjectFormat, ObjectTarget, SymbolNaming};
use tvmspec::release::{Layout, Release};
use tvmspec::rule::{Kind, Strictness};

const TARGETS: [ObjectTarget; 16] = [
    ObjectTarget::new(ObjectFormat::Elf, Arch::X86_64),
    ObjectTarget::new(ObjectFormat::Elf, Arch::I386),
    ObjectTarget::new(ObjectFormat::Elf, Arch::Aarch64),
    ObjectTarget {
        format: ObjectFormat::Elf,
        arch: Arch::Aarch64,
        little_endian: false,
    },
    ObjectTarget::new(ObjectFormat::Elf, Arch::Arm),
    ObjectTarget::new(ObjectFormat::Elf, Arch::Riscv64),
    ObjectTarget::new(ObjectFormat::Elf, Arch::Riscv32),
    ObjectTarget::new(ObjectFormat::Elf, Arch::PowerPc64),
    ObjectTarget::new(ObjectFormat::Elf, Arch::S390x),
    ObjectTarget::new(ObjectFormat::MachO, Arch::Aarch64),
    ObjectTarget::new(ObjectFormat::MachO, Arch::X86_64),
    ObjectTarget::new(ObjectFormat::MachO, Arch::Arm),
    ObjectTarget::new(ObjectFormat::Coff, Arch::X86_64),
    ObjectTarget::new(ObjectFormat::Coff, Arch::I386),
    ObjectTarget::new(ObjectFormat::Coff, Arch::Aarch64),
    ObjectTarget::new(ObjectFormat::Coff, Arch::Arm),
];

fn golden(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/blob/containers");
    std::fs::read(path.join(name)).unwrap()
}

fn goldens() -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/blob/containers");
    let entries = std::fs::read_dir(path).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Creates a blob with a correct header and any body.
fn blob_of(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u64).to_le_bytes(), body].concat()
}

/// Asserts that `file` has exactly one blob: `blob` under `symbol`.
fn assert_holds(file: &[u8], symbol: &str, blob: &[u8], what: &str) {
    let file = container::open(file).unwrap_or_else(|broken| panic!("{what}: {broken}"));
    let found: Vec<_> = file.blobs().map(|(_, found)| found).collect();
    assert_eq!(found.len(), 1, "{what}: blobs");
    assert_eq!(found[0].symbol, symbol, "{what}: symbol");
    assert!(found[0].bytes.as_ref() == blob, "{what}: the bytes differ");
    assert!(file.findings.is_empty(), "{what}: {:?}", file.findings);
}

#[test]
fn an_object_returns_its_blob_on_every_machine() {
    let blob = golden("cuda-0.27.library_bin");
    for target in TARGETS {
        for release in Release::all() {
            let naming = SymbolNaming::library(release);
            let object = pack::object(&blob, &naming, target).unwrap();
            assert_holds(
                &object,
                naming.symbol(),
                &blob,
                &format!("{target}, {release}"),
            );
            let file = container::open(&object).unwrap();
            let machine = file.parts[0].machine.clone().unwrap();
            assert_eq!(machine.bits, target.arch.bits(), "{target}");
            assert_eq!(machine.little_endian, target.little_endian, "{target}");
            assert_eq!(
                file.parts[0].symbols.len(),
                1,
                "{target}: an object defines the blob and nothing else"
            );
        }
    }
}

#[test]
fn a_target_without_objects_is_rejected() {
    let naming = SymbolNaming::library(Release::of(27));
    for (format, arch) in [
        (ObjectFormat::Coff, Arch::S390x),
        (ObjectFormat::MachO, Arch::Riscv64),
    ] {
        let rejected =
            pack::object(&[0; 16], &naming, ObjectTarget::new(format, arch)).unwrap_err();
        assert_eq!(rejected.kind(), Kind::Unsupported);
        assert_eq!(rejected.rule().id(), "BLOB-66");
    }
    let system = SymbolNaming::system(Release::of(27), "").unwrap();
    let rejected = pack::object(
        &[0; 16],
        &system,
        ObjectTarget::new(ObjectFormat::Coff, Arch::X86_64),
    )
    .unwrap_err();
    assert_eq!(rejected.rule().id(), "BLOB-67");
    assert!(ObjectTarget::from_triple("vax-dec-ultrix").is_err());
}

#[test]
fn triples_name_their_targets() {
    let of = |triple| ObjectTarget::from_triple(triple).unwrap();
    assert_eq!(
        of("aarch64-apple-darwin"),
        ObjectTarget::new(ObjectFormat::MachO, Arch::Aarch64)
    );
    assert_eq!(
        of("x86_64-pc-windows-msvc"),
        ObjectTarget::new(ObjectFormat::Coff, Arch::X86_64)
    );
    assert_eq!(
        of("armv7a-linux-gnueabihf"),
        ObjectTarget::new(ObjectFormat::Elf, Arch::Arm)
    );
    assert!(of("powerpc64le-linux-gnu").little_endian);
    assert!(!of("s390x-linux-gnu").little_endian);
}

#[test]
fn a_bomb_in_a_bomb_is_one_bomb() {
    // The limit applies to the file as a whole and not to each level: 12 KiB in the middle do not allow 2 MiB more.
    let squeeze = |data: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut encoder, data).unwrap();
        encoder.finish().unwrap()
    };
    let tar = |data: &[u8]| {
        let mut header = [0u8; 512];
        header[0] = b'm';
        header[124..135].copy_from_slice(format!("{:011o}", data.len()).as_bytes());
        header[156] = b'0';
        header[257..263].copy_from_slice(b"ustar\0");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let padding = vec![0; data.len().next_multiple_of(512) - data.len() + 1024];
        [&header[..], data, &padding].concat()
    };
    let inner = squeeze(&tar(&vec![0; 12 << 20]));
    let mut whole = inner.clone();
    for _ in 0..2 {
        whole = squeeze(&tar(&whole));
    }
    let rejected = container::open(&whole).unwrap_err();
    assert_eq!(rejected.kind(), Kind::Limit);
    assert_eq!(rejected.rule().id(), "BLOB-57");
}

#[test]
fn archives_lie_in_archives_as_deep_as_the_limit() {
    let archive = |data: &[u8]| {
        let header = format!(
            "{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            "m.a/",
            0,
            0,
            0,
            644,
            data.len()
        );
        let padding: &[u8] = if data.len() % 2 == 1 { b"\n" } else { b"" };
        [b"!<arch>\n", header.as_bytes(), data, padding].concat()
    };
    let nested = |levels: u8| (0..levels).fold(golden("elf-aarch64.o"), |inner, _| archive(&inner));
    let deepest = nested(MAX_DEPTH);
    let file = container::open(&deepest).unwrap();
    let (part, _) = file.blobs().next().unwrap();
    assert_eq!(part.member.matches('/').count() + 1, usize::from(MAX_DEPTH));
    let machine = part.machine.as_ref().unwrap();
    assert_eq!(machine.architecture, "aarch64");
    assert!(machine.bits == 64 && machine.little_endian);
    let rejected = container::open(&nested(MAX_DEPTH + 1)).unwrap_err();
    assert_eq!(
        (rejected.rule().id(), rejected.kind()),
        ("BLOB-57", Kind::Limit)
    );
}

#[test]
fn strict_mode_rejects_tolerated_input() {
    let mut rejected = 0;
    for path in goldens() {
        let bytes = std::fs::read(&path).unwrap();
        let Ok(file) = container::open(&bytes) else {
            continue;
        };
        let strict = container::open_with(&bytes, Strictness::Strict);
        match (file.findings.as_slice().first(), strict) {
            (None, Ok(_)) => {}
            (Some(finding), Err(broken)) => {
                rejected += 1;
                assert_eq!(broken.rule(), finding.rule, "{}", path.display());
            }
            (finding, strict) => panic!("{}: {finding:?}, {:?}", path.display(), strict.err()),
        }
    }
    assert!(rejected > 0, "no golden has a finding");
}

#[test]
fn every_prefix_of_every_container_is_answered() {
    for path in goldens() {
        let whole = std::fs::read(&path).unwrap();
        // Every length of small files; for large ones, the headers and a sample.
        let step = (whole.len() / 400).max(1);
        let lengths = (0..whole.len().min(700)).chain((700..whole.len()).step_by(step));
        for length in lengths {
            let _ = container::open(&whole[..length]);
        }
    }
}

#[test]
fn a_cut_library_is_never_taken_for_one_without_device_code() {
    let whole = golden("cuda-0.27.so");
    for length in (64..whole.len()).step_by(97) {
        assert!(
            container::open(&whole[..length]).is_err(),
            "cut to {length} bytes"
        );
    }
}

#[test]
fn a_blob_in_a_mapped_file_is_borrowed() {
    let library = golden("cuda-0.27.so");
    let file = container::open(&library).unwrap();
    let (_, blob) = file.blobs().next().unwrap();
    let range = library.as_ptr_range();
    assert!(range.contains(&blob.bytes.as_ptr()));
    assert_eq!(blob.layout, Some(Layout::V0_22));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_returns_any_blob(
        body in prop::collection::vec(any::<u8>(), 0..200),
        minor in 2u8..=27,
        system_lib: bool,
        prefix in "([a-z][A-Za-z0-9_]{0,8})?",
    ) {
        let release = Release::of(minor);
        let blob = blob_of(&body);
        let Ok(naming) = SymbolNaming::of(release, system_lib, &prefix) else {
            prop_assert!(!prefix.is_empty() && (!system_lib || minor < 13));
            return Ok(());
        };
        let text = pack::c_text(&blob, &naming);
        assert_holds(text.as_bytes(), naming.symbol(), &blob, "text");
    }

    #[test]
    fn damage_is_answered(index in any::<prop::sample::Index>(), places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let paths = goldens();
        let mut data = std::fs::read(index.get(&paths)).unwrap();
        prop_assume!(!data.is_empty());
        for (place, value) in places {
            let at = place.index(data.len());
            data[at] = value;
        }
        let _ = container::open(&data);
    }

    #[test]
    fn damaged_headers_are_answered(index in any::<prop::sample::Index>(), at in 0usize..600, value in prop::sample::select(vec![0u8, 1, 0x7f, 0x80, 0xff])) {
        let paths = goldens();
        let mut data = std::fs::read(index.get(&paths)).unwrap();
        prop_assume!(at < data.len());
        data[at] = value;
        let _ = container::open(&data);
    }
}
