//! Looks into a library of 1 GiB. Measures the time against a copy of its bytes, and the memory beyond the map.
//!
//! Run: `cargo bench --bench inspect`. The library is well-formed and has one payload of 1 GiB, so a reader that touches payloads is slow.

mod support;

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};
use support::rounds;
use tvmspec::blob::pack::{self, ObjectTarget, SymbolNaming};
use tvmspec::blob::{Blob, container};
use tvmspec::release::{Layout, Release};

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let raw = folder.path().join("large.bin");
    write_blob(&raw).expect("room for 1 GiB");
    let object = folder.path().join("large.o");
    {
        let blob = std::fs::read(&raw).expect("the blob");
        let naming = SymbolNaming::library(Release::LAST);
        let target =
            ObjectTarget::from_triple("x86_64-unknown-linux-gnu").expect("a known machine");
        std::fs::write(
            &object,
            pack::object(&blob, &naming, target).expect("an object file"),
        )
        .expect("room");
    }
    for path in [&raw, &object] {
        let file = File::open(path).expect("the file");
        // SAFETY: only this process writes to the temporary file.
        let map = unsafe { memmap2::Mmap::map(&file) }.expect("a map");
        let before = memory();
        let look = fastest(|| {
            let found = container::open(&map).expect("a container");
            let (_, blob) = found.blobs().next().expect("a blob in it");
            let read = Blob::read(&blob.bytes, Layout::V0_22).expect("a good blob");
            assert_eq!(read.value.modules.len(), 2);
        });
        let after = memory();
        let copy = fastest(|| drop(std::hint::black_box(map.to_vec())));
        println!(
            "{}: looked into in {look:?}, copied in {copy:?}, ratio {:.6}, {} KiB more memory",
            path.extension()
                .and_then(|end| end.to_str())
                .unwrap_or_default(),
            look.as_secs_f64() / copy.as_secs_f64(),
            after.saturating_sub(before),
        );
    }
}

/// Writes `_lib` and one module of an unknown kind with 1 GiB, or 1 MiB in a short round.
fn write_blob(path: &std::path::Path) -> std::io::Result<()> {
    let mebibytes = rounds(1 << 10);
    let payload = (mebibytes as u64) << 20;
    let mut body = Vec::new();
    let words: [u64; 6] = [3, 0, 1, 1, 1, 1];
    body.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    for kind in ["_lib", "acme"] {
        body.extend((kind.len() as u64).to_le_bytes());
        body.extend(kind.as_bytes());
    }
    body.extend(payload.to_le_bytes());
    let mut file = File::create(path)?;
    file.write_all(&(body.len() as u64 + payload).to_le_bytes())?;
    file.write_all(&body)?;
    // The payload is written and not left as a hole, because only then do touched pages count.
    let chunk = vec![0x5A; 1 << 20];
    (0..mebibytes).try_for_each(|_| file.write_all(&chunk))
}

fn fastest(mut body: impl FnMut()) -> Duration {
    let times = (0..rounds(5)).map(|_| {
        let start = Instant::now();
        body();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

/// Returns the resident memory of this process in KiB, with the touched pages of maps.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse().ok())
        .unwrap_or(0)
}
