//! Memory for a small compressed archive and for a JSON graph of many small values: both must stay in proportion to the file size.

use super::peak_of;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use tvmspec::blob::container::{self, FileForm};
use tvmspec::object::json_graph::ffi;
use tvmspec::rule::{Findings, Kind};

/// Creates a gzip-compressed tar. Each member consists of its first bytes and a number of zeros.
fn archive(members: &[(&str, &[u8], usize)]) -> Vec<u8> {
    let mut tar = GzEncoder::new(Vec::new(), Compression::best());
    for (name, head, zeros) in members {
        let size = head.len() + zeros;
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        header[124..136].copy_from_slice(format!("{size:011o} ").as_bytes());
        header[148..156].fill(b' ');
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.write_all(&header).unwrap();
        tar.write_all(head).unwrap();
        let padded = size.next_multiple_of(512) - head.len();
        tar.write_all(&vec![0; padded]).unwrap();
    }
    tar.write_all(&[0; 1024]).unwrap();
    tar.finish().unwrap()
}

/// Returns incompressible noise. A larger compressed file is allowed to inflate further.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1u64;
    let next = |_| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..count).map(next).collect()
}

fn opened(bytes: &[u8]) -> (usize, Result<Vec<(String, FileForm)>, Kind>) {
    let (most, file) = peak_of(|| container::open(bytes));
    let parts = file.map(|file| {
        let parts = file.parts.iter();
        parts.map(|part| (part.member.clone(), part.form)).collect()
    });
    (most, parts.map_err(|broken| broken.kind()))
}

/// Returns the peak memory of the check of a JSON graph with a member of such items, in bytes per byte of text.
fn checked(item: &str) -> usize {
    const SIZE: usize = 2 << 20;
    let items = item.repeat(SIZE / item.len());
    let text = format!(r#"{{"root_index":0,"nodes":[{{"type":"None"}}],"x":[{items}0]}}"#);
    let (most, checked) = peak_of(|| ffi::check(text.as_bytes(), &mut Findings::default()));
    assert!(checked.is_ok());
    most / text.len()
}

#[test]
fn memory_is_what_the_input_justifies() {
    const MIB: usize = 1 << 20;
    let random = noise(MIB / 4);
    let object = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0";

    // The reader skips 30 MB that cannot hold a blob, and finds the members after them.
    let bytes = archive(&[
        ("noise", &random, 30 * MIB),
        ("empty.c", b"#include <x.h>", 0),
    ]);
    let (most, parts) = opened(&bytes);
    let wanted = [
        ("noise".to_owned(), FileForm::Unknown),
        ("empty.c".to_owned(), FileForm::CText),
    ];
    assert_eq!(parts, Ok(wanted.into()));
    assert!(most < MIB, "{most} bytes for {}", bytes.len());

    // A member that may hold a blob is kept, but only up to the limit that the file size justifies.
    let bytes = archive(&[("noise", &random, 0), ("lib.so", object, 30 * MIB)]);
    let (most, parts) = opened(&bytes);
    assert_eq!(parts, Err(Kind::Limit));
    assert!(most < MIB, "{most} bytes for {}", bytes.len());

    // Many small members reach the limit as well. Their data is freed, but the record of each member counts.
    let many = vec![("x", &b"\0"[..], 0); 30_000];
    let (most, parts) = opened(&archive(&many));
    assert_eq!(parts, Err(Kind::Limit));
    assert!(most < 10 * MIB, "{most} bytes");

    let bytes = archive(&[("a.txt", b"", 0), ("lib.so", object, 10 * MIB)]);
    assert_eq!(
        opened(&bytes).1,
        Err(Kind::Limit),
        "10 KiB do not justify 10 MiB"
    );

    // The check takes one word per value, in one vector, however the values are nested.
    let (deep, within) = ("[".repeat(5_000), "]".repeat(5_000));
    let shapes = [
        ("numbers", "0,".to_owned()),
        ("arrays", "[0],".to_owned()),
        ("objects", "{\"\":0},".to_owned()),
        ("deep arrays", format!("{deep}0{within},")),
        (
            "deep objects",
            format!("{}0{},", "{\"\":".repeat(5_000), "}".repeat(5_000)),
        ),
        ("names", format!("{{{}\"\":0}},", "\"\":0,".repeat(200_000))),
    ];
    for (what, item) in shapes {
        let most = checked(&item);
        assert!(most < 16, "{what}: {most} bytes for each of the text");
    }
}
