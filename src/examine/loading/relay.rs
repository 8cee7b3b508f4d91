//! Relay VM code as its loader reads it. Tables and instructions are decoded, but the names and numbers in them are not resolved.

use super::Stop;
use super::module_form::{foreign_version, is_of};
use super::stream::{LoaderStream, text};
use super::tensor::tensor;
use crate::payload::relay_vm::{MAGIC, RelayInstruction, RelayOperand};
use crate::release::Release;
use std::collections::HashSet;

/// Walks the code, from its magic to the last function (PAY-61 to PAY-77).
pub(super) fn walk(release: Release, stream: &mut LoaderStream<'_>) -> Result<(), Stop> {
    let since = release.minor();
    let magic = stream.u64("magic of the VM code")?;
    if magic != MAGIC {
        return rejects(format!("VM code does not start with {magic:#x}"));
    }
    let version = text(stream.string("version of the VM code")?);
    if !is_of(release, &version) {
        return Err(Stop::Rejects(foreign_version(&version)));
    }
    if since >= 9 {
        // PAY-64: from 0.14 on, the memory scope of a device follows it.
        let smallest = if since >= 14 { 16 } else { 8 };
        let devices = stream.count(smallest, "virtual devices")?;
        for _ in 0..devices {
            stream.take(8, "virtual device")?;
            if since >= 14 {
                stream.string("memory scope of a virtual device")?;
            }
        }
        let host = stream.i32("host device")?;
        // PAY-65.
        if u64::try_from(host).ok().is_none_or(|host| host >= devices) {
            return rejects(format!("the host is device {host} of {devices}"));
        }
    }
    let globals: HashSet<&[u8]> = stream.strings("globals")?.into_iter().collect();
    let constants = stream.count(4, "constants")?;
    for _ in 0..constants {
        constant(release, stream)?;
    }
    // PAY-67.
    if since >= 7 {
        let devices = stream.elements(8, "devices of constants")?.len() as u64;
        if constants.checked_mul(8) != Some(devices) {
            return rejects(format!(
                "there are not as many devices as the {constants} constants"
            ));
        }
    }
    stream.strings("primitives")?;
    if since >= 8 {
        for _ in 0..stream.count(16, "attributes of primitives")? {
            stream.u64("primitive")?;
            for _ in 0..stream.count(16, "attributes of a primitive")? {
                stream.string("attribute")?;
                stream.string("value of an attribute")?;
            }
        }
    }
    for _ in 0..stream.count(8, "functions")? {
        function(release, &globals, stream)?;
    }
    Ok(())
}

/// Creates the outcome for code that is rejected here.
fn rejects(why: String) -> Result<(), Stop> {
    Err(Stop::Rejects(why))
}

/// Walks a constant, which has a tag from 0.9 on (PAY-66).
fn constant(release: Release, stream: &mut LoaderStream<'_>) -> Result<(), Stop> {
    let tag = match release.minor() {
        ..=8 => 0,
        _ => stream.i32("tag of a constant")?,
    };
    match tag {
        0 => tensor(release, stream),
        1 => stream.string("name of a constant").map(drop),
        _ => rejects(format!("a constant has the unknown tag {tag}")),
    }
}

/// Walks a function: its table entry, and the number of instructions that the entry states.
fn function(
    release: Release,
    globals: &HashSet<&[u8]>,
    stream: &mut LoaderStream<'_>,
) -> Result<(), Stop> {
    let info = stream.strings("description of a function")?;
    // PAY-69.
    let &[name, registers, instructions] = info.as_slice() else {
        return rejects(format!("a function has {} texts, not 3", info.len()));
    };
    number(registers)?;
    let instructions = number(instructions)?;
    stream.strings("parameters of a function")?;
    // PAY-70: no loader compares their number.
    if release >= Release::of(7) {
        stream.elements(8, "devices of parameters")?;
    }
    // A negative number of instructions is treated as one that is too large for any file.
    for _ in 0..u64::try_from(instructions).unwrap_or(u64::MAX) {
        instruction(release, stream)?;
    }
    // PAY-74: looked up after the instructions.
    if !globals.contains(name) {
        return rejects(format!(
            "function `{}` is not one of the globals",
            text(name)
        ));
    }
    Ok(())
}

/// Parses the number at the start of a text, as `stoll` does (PAY-69).
fn number(bytes: &[u8]) -> Result<i64, Stop> {
    let text = text(bytes);
    let start = text.trim_ascii_start();
    let digits = start.strip_prefix(['-', '+']).unwrap_or(start);
    let end = digits.find(|next: char| !next.is_ascii_digit());
    let digits = digits
        .get(..end.unwrap_or(digits.len()))
        .unwrap_or_default();
    let number = digits.parse::<i64>();
    match number {
        Ok(number) if start.starts_with('-') => Ok(number.saturating_neg()),
        Ok(number) => Ok(number),
        Err(_) => Err(Stop::Rejects(format!("`{text}` is read as no number"))),
    }
}

/// Walks an instruction: compares its hash, looks up its opcode, and extracts its lists from its fields (PAY-71 to PAY-73).
fn instruction(release: Release, stream: &mut LoaderStream<'_>) -> Result<(), Stop> {
    let mut words = stream.words("instruction")?.into_iter();
    let (Some(hash), Some(opcode)) = (words.next(), words.next()) else {
        return rejects("an instruction has neither hash nor opcode".into());
    };
    let instruction = RelayInstruction {
        opcode: opcode.cast_signed(),
        fields: words.map(u64::cast_signed).collect(),
    };
    if hash != instruction.hash() {
        return rejects("an instruction has another hash than its fields".into());
    }
    let Some(row) = instruction.opcode_in(release.minor()) else {
        return rejects(format!("it has no opcode {}", instruction.opcode));
    };
    let counted = row
        .fields
        .iter()
        .position(|field| *field == RelayOperand::Count);
    // PAY-73: loaders do not count the fixed fields, and of a list check only that it is present.
    let Some(count) = counted.and_then(|at| instruction.fields.get(at)) else {
        return Ok(());
    };
    let end = i64::try_from(row.fields.len()).ok();
    let end = end.and_then(|fixed| fixed.checked_add(*count));
    let end = end.and_then(|end| usize::try_from(end).ok());
    if end.is_none_or(|end| end > instruction.fields.len()) {
        return rejects(format!("{} lists more than it has", row.name));
    }
    Ok(())
}
