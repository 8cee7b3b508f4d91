//! Decodes a parameter file of 1 GiB from a map, against a copy of the same bytes in the same run.
//!
//! Run: `cargo bench --no-default-features --bench tensor`. The file lies in the temporary directory, and is removed at the end.

use divan::{Bencher, black_box, counter::BytesCount};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::LazyLock;
use tvmspec::rule::Findings;
use tvmspec::tensor::{Dtype, Params, Sizing, TensorRecord};
use tvmspec::wire::{Cursor, Writer};

fn main() {
    divan::main();
}

const TENSORS: usize = 256;
const BYTES_EACH: usize = 4 << 20;

static MAP: LazyLock<memmap2::Mmap> = LazyLock::new(|| {
    let file = tempfile::tempfile().expect("a temporary file");
    write(&file).expect("1 GB of temporary space");
    // SAFETY: the file has no name, so nothing can change it under the map.
    unsafe { memmap2::Mmap::map(&file) }.expect("a map")
});

fn write(file: &File) -> std::io::Result<()> {
    let data: Vec<u8> = (0..BYTES_EACH).map(|index| (index % 251) as u8).collect();
    let float = Dtype::scalar(Dtype::FLOAT, 32);
    let shape = [1024, (BYTES_EACH / 4096) as i64];
    let record = TensorRecord::new(float, &shape, &data, Sizing::V0_7).expect("a tensor");
    let mut head = Writer::new();
    head.u64(Params::MAGIC);
    head.u64(0);
    let names: Vec<String> = (0..TENSORS)
        .map(|index| format!("weight_{index}"))
        .collect();
    head.vector(&names, |out, name| out.str(name));
    head.count(TENSORS);
    let mut out = BufWriter::new(file);
    out.write_all(&head.into_bytes())?;
    let mut one = Writer::new();
    record.write(&mut one);
    let one = one.into_bytes();
    for _ in 0..TENSORS {
        out.write_all(&one)?;
    }
    out.flush()
}

#[divan::bench(sample_count = 20)]
fn decode(bencher: Bencher<'_, '_>) {
    let bytes: &[u8] = &MAP;
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench_local(|| {
            let mut findings = Findings::default();
            let params = Params::read(
                &mut Cursor::new(black_box(bytes)),
                Sizing::V0_7,
                &mut findings,
            );
            black_box(params.unwrap().len())
        });
}

#[divan::bench(sample_count = 20)]
fn detect_and_decode(bencher: Bencher<'_, '_>) {
    let bytes: &[u8] = &MAP;
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench_local(|| {
            let mut findings = Findings::default();
            let params = Params::detect(&mut Cursor::new(black_box(bytes)), &mut findings);
            black_box(params.unwrap().0.len())
        });
}

#[divan::bench(sample_count = 5)]
fn memcpy(bencher: Bencher<'_, '_>) {
    let bytes: &[u8] = &MAP;
    let mut copy = vec![0_u8; bytes.len()];
    copy.copy_from_slice(bytes);
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench_local(|| {
            copy.copy_from_slice(black_box(bytes));
            black_box(copy[0])
        });
}
