//! A static archive or a tar with one member `m`, by BLOB-56.

use super::Verdict;
use arbitrary::{Result, Unstructured};
use tvmspec::rule::Kind;

pub struct Wrapped {
    pub bytes: Vec<u8>,
    /// The offset of the member.
    pub start: u64,
    pub verdict: Verdict,
}

pub fn wrap(member: &[u8], wrong: bool, from: &mut Unstructured<'_>) -> Result<Wrapped> {
    let longer = member.len() + 1 + from.int_in_range(0..=1 << 20)?;
    Ok(match (from.arbitrary()?, wrong) {
        (true, false) => Wrapped { bytes: archive(member, b"!<arch>\n", member.len()), start: 68, verdict: Verdict::Whole },
        (true, true) => {
            let thin: bool = from.arbitrary()?;
            let (magic, size) = if thin { (b"!<thin>\n", member.len()) } else { (b"!<arch>\n", longer + 1) };
            let kind = if thin { Kind::Unsupported } else { Kind::Truncated };
            Wrapped { bytes: archive(member, magic, size), start: 68, verdict: Verdict::Broken("BLOB-56", kind) }
        }
        (false, false) => Wrapped { bytes: tar(member, &format!("{:011o}", member.len()), 0), start: 512, verdict: Verdict::Whole },
        (false, true) => {
            let (size, sum, kind) = match from.int_in_range(0..=2)? {
                0 => (format!("{:011o}", longer + 2048), 0, Kind::Truncated),
                1 => ("no number".to_owned(), 0, Kind::Malformed),
                _ => (format!("{:011o}", member.len()), from.int_in_range(1..=100)?, Kind::Malformed),
            };
            Wrapped { bytes: tar(member, &size, sum), start: 512, verdict: Verdict::Broken("BLOB-56", kind) }
        }
    })
}

fn archive(member: &[u8], magic: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.extend(format!("{:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", "m/", 0, 0, 0, 644).bytes());
    bytes.extend(member);
    if member.len() % 2 == 1 {
        bytes.push(b'\n');
    }
    bytes
}

/// Makes a tar. `off` is added to the checksum.
fn tar(member: &[u8], size: &str, off: u32) -> Vec<u8> {
    let mut header = [0_u8; 512];
    let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
    put(0, b"m");
    put(100, b"0000644");
    put(124, size.as_bytes());
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{:06o}\0 ", sum + off).as_bytes());
    let mut bytes = header.to_vec();
    bytes.extend(member);
    bytes.resize(bytes.len().next_multiple_of(512) + 1024, 0);
    bytes
}
