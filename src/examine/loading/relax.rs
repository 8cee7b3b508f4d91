//! Relax VM code as its loader reads it. Tables are read, but instructions are not examined.

use super::Stop;
use super::stream::{LoaderStream, Manner, text};
use super::tensor::tensor;
use crate::payload::relax_vm::{MAGIC, MAGIC_WITH_SCOPES};
use crate::release::{Layout, Release};

/// Walks the code, which starts with its length before 0.22 (PAY-81).
pub(super) fn walk(release: Release, stream: &mut LoaderStream<'_>) -> Result<(), Stop> {
    if Layout::of(release) >= Layout::V0_22 {
        return code(release, stream);
    }
    let inside = stream.string("VM code")?;
    // The code is a string, and is read through a second stream over that string.
    code(release, &mut LoaderStream::new(inside, Manner::Reports))
}

/// Walks the code: magic, version, functions, memory scopes under the newer magic, constants, instructions (PAY-82 to PAY-88).
fn code(release: Release, stream: &mut LoaderStream<'_>) -> Result<(), Stop> {
    let magic = stream.u64("magic")?;
    // PAY-82: the newer magic was introduced within layout 0.22, so that the layout alone does not decide.
    let scopes = magic == MAGIC_WITH_SCOPES && release >= Release::of(23);
    if magic != MAGIC && !scopes {
        return Err(Stop::Rejects(format!(
            "VM code does not start with {magic:#x}"
        )));
    }
    let version = stream.string("version of the VM code")?;
    // PAY-83: every release writes the same text, although the format changed.
    if version != b"0.14" {
        return Err(Stop::Rejects(format!(
            "VM code of version `{}`",
            text(version)
        )));
    }
    // PAY-84: a kind of 4 bytes, the length of a name, four numbers of 8 bytes and a count of parameters.
    for _ in 0..stream.count(52, "VM functions")? {
        // PAY-84: readers accept any kind.
        stream.i32("kind of a VM function")?;
        stream.string("name of a VM function")?;
        stream.take(32, "VM function")?;
        stream.strings("parameters of a VM function")?;
    }
    if scopes {
        // PAY-87: readers accept any index. If a constant has two scopes, they use the last one.
        for _ in 0..stream.count(16, "memory scopes")? {
            stream.i64("memory scope")?;
            stream.string("memory scope")?;
        }
    }
    // Every constant has at least a tag of 4 bytes.
    for _ in 0..stream.count(4, "constants")? {
        constant(release, stream)?;
    }
    // PAY-88: no loader checks the offsets of instructions or their content.
    stream.words("instruction offsets")?;
    stream.words("instructions")?;
    Ok(())
}

/// Walks a constant. A loader may not notice a truncated constant, but then notices that no bytes are left for the instructions.
fn constant(release: Release, stream: &mut LoaderStream<'_>) -> Result<(), Stop> {
    let tag = stream.i32("tag of a constant")?;
    // PAY-86: consecutive numbers up to 0.20. From 0.21 on, type indices of values, which changed in 0.22.
    let [stored, dtype, shape, string, int, float] = match Layout::of(release) {
        Layout::V0_2 | Layout::V0_7 => [0, 1, 2, 3, 4, 5],
        Layout::V0_21 => [72, 5, 71, 65, 1, 3],
        Layout::V0_22 => [70, 5, 69, 65, 1, 3],
    };
    match tag {
        _ if tag == stored => tensor(release, stream),
        _ if tag == shape => stream.elements(8, "shape constant").map(drop),
        _ if tag == dtype => stream.take(4, "type constant").map(drop),
        _ if tag == string => stream.string("string constant").map(drop),
        _ if tag == int || tag == float => stream.take(8, "number constant").map(drop),
        _ => Err(Stop::Rejects(format!(
            "a VM constant has the unknown tag {tag}"
        ))),
    }
}
