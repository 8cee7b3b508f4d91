//! Code of the Relay VM in readable form: one line for each instruction.
//!
//! ```text
//! function main(x), 7 registers
//!    0  %1 = LoadConst c0
//!    1  %2 = AllocStorage size %6, alignment 64, float32, device 1
//!    2  %3 = AllocTensor storage %2, offset %5, float32, shape [4, 8]
//!    3  %3 = InvokePacked add, %0, %1
//!    4  If %3, %4, equal -> 5, else -> 6
//!    5  Ret %3
//!    6  Fatal
//! packed add
//! ```
//!
//! Destination registers come first. The destination registers of a primitive are its outputs, which are its last registers. `%n` is a
//! register, `cN` a constant, and `@name` a function. A jump shows its target. A field without a name before it is the main operand of
//! the opcode. The number of fields at the end is left out. The storage size is left out if a shape follows, because no release reads
//! it then (PAY-75). Names are escaped, and inside instructions they are shortened.

use super::disassembly_line::{joined, short};
use super::relay_code::{RelayInstruction, RelayOperand};
use super::relay_vm::{RelayExecutable, RelayFunction, era_of};
use crate::release::{Release, Releases};
use crate::tensor::Dtype;
use std::fmt::{self, Write as _};
use std::iter;

impl RelayExecutable<'_> {
    /// Returns the code of all functions as text for people. It has the head of each function, its instructions with their indices, and
    /// finally the names of all primitives. No code parses it.
    pub fn disassemble(&self) -> String {
        let mut text = String::new();
        for line in self.lines() {
            // Writing into a string does not fail.
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Returns the lines of the code of all functions.
    pub(crate) fn lines(&self) -> impl Iterator<Item = RelayLine<'_>> {
        let functions = self.functions.iter().flat_map(|function| {
            let code = function.code.iter().enumerate();
            let code = code.map(|(index, instruction)| RelayPart::Instruction(index, instruction));
            iter::once(RelayPart::Function(function)).chain(code)
        });
        // Names inside instructions are shortened, so each primitive also has a line with its full name.
        let packed = self.primitives.iter().map(|name| RelayPart::Packed(name));
        functions.chain(packed).map(|part| RelayLine {
            executable: self,
            part,
        })
    }
}

/// A line, which is formatted only when it is written.
pub(crate) struct RelayLine<'c> {
    /// The executable, which has the names that fields refer to, and the release of the code.
    executable: &'c RelayExecutable<'c>,
    /// The content of the line.
    part: RelayPart<'c>,
}

/// The content of a line.
enum RelayPart<'c> {
    /// The head of a function.
    Function(&'c RelayFunction<'c>),
    /// An instruction, with its index in its function.
    Instruction(usize, &'c RelayInstruction),
    /// The full name of a primitive, after all functions.
    Packed(&'c str),
}

impl fmt::Display for RelayLine<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            RelayPart::Function(function) => {
                // The name is not shortened here, because a function has only one head.
                write!(out, "function {}(", function.name.escape_debug())?;
                joined(out, function.params.iter().map(|name| name.escape_debug()))?;
                write!(out, "), {} registers", function.registers)
            }
            RelayPart::Instruction(index, instruction) => {
                write!(out, "{index:>5}  ")?;
                self.instruction(index, instruction, out)
            }
            RelayPart::Packed(name) => write!(out, "packed {}", name.escape_debug()),
        }
    }
}

impl RelayLine<'_> {
    /// Writes the opcode and its fields by their meanings. An opcode that the release lacks is shown as its number.
    fn instruction(
        &self,
        index: usize,
        instruction: &RelayInstruction,
        out: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        // The default is only needed for an executable that was not read from a file.
        let era = era_of(&self.executable.version).unwrap_or(Release::LAST.minor());
        let fields = instruction.fields.as_slice();
        let Some(opcode) = instruction.opcode_in(era) else {
            write!(out, "opcode {}", instruction.opcode)?;
            if !fields.is_empty() {
                out.write_str(" ")?;
            }
            return joined(out, fields);
        };
        // PAY-73: the fixed fields are followed by as many further fields as the count states, all with the same meaning.
        let fixed = opcode.fields.len();
        let (fixed, tail) = fields.split_at_checked(fixed).unwrap_or((fields, &[]));
        let named = |wanted: &str| {
            let position = opcode.names.iter().position(|name| *name == wanted)?;
            fixed.get(position).copied()
        };
        let count = named("n");
        let shaped = count.is_some_and(|count| count > 0);
        // PAY-73: the outputs are the last fields. If their number does not fit, it is shown as a number.
        let inputs = named("outputs").and_then(|outputs| usize::try_from(outputs).ok());
        let inputs = inputs.and_then(|outputs| tail.len().checked_sub(outputs));
        let (tail, outputs) = inputs
            .and_then(|inputs| tail.split_at_checked(inputs))
            .unwrap_or((tail, &[]));
        let mut written = named("to").into_iter().chain(outputs.iter().copied());
        if let Some(first) = written.next() {
            write!(out, "%{first}")?;
            for register in written {
                write!(out, ", %{register}")?;
            }
            out.write_str(" = ")?;
        }
        out.write_str(opcode.name)?;
        let mut gap = " ";
        let kinds = opcode.fields.iter().zip(opcode.names);
        for (value, (kind, name)) in fixed.iter().zip(kinds) {
            let hidden = match *name {
                // The type is shown at its code, and the counted fields are shown themselves.
                "n" | "to" | "bits" | "lanes" => true,
                "outputs" => inputs.is_some(),
                // PAY-75: the size is used only without dimensions.
                "size" => shaped,
                _ => false,
            };
            if hidden {
                continue;
            }
            out.write_str(gap)?;
            gap = ", ";
            match *name {
                "code" => dtype(*value, [named("bits"), named("lanes")], era, out)?,
                "storage" | "offset" | "shape" | "tag" | "index" | "device" | "size"
                | "alignment" | "outputs" | "equal" | "else" | "from device" | "to device" => {
                    write!(out, "{name} ")?;
                    self.field(*value, *kind, index, out)?;
                }
                _ => self.field(*value, *kind, index, out)?,
            }
        }
        match opcode.tail {
            // PAY-75: storage without dimensions has a size; a tensor without dimensions is a scalar.
            RelayOperand::Number if count.is_some() && (shaped || named("size").is_none()) => {
                write!(out, "{gap}shape {tail:?}")
            }
            _ => tail.iter().try_for_each(|value| {
                out.write_str(gap)?;
                gap = ", ";
                self.field(*value, opcode.tail, index, out)
            }),
        }
    }

    /// Writes one field: `%3`, `c0`, `@main`, `-> 5`, a name, a number.
    fn field(
        &self,
        value: i64,
        kind: RelayOperand,
        index: usize,
        out: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        // A negative index is invalid and is shown as a number.
        let at = usize::try_from(value).ok();
        let function = || self.executable.functions.get(at?);
        let primitive = || self.executable.primitives.get(at?);
        // PAY-76: the distance starts at the jump itself.
        let target = || i64::try_from(index).ok()?.checked_add(value);
        match kind {
            RelayOperand::Register | RelayOperand::RegisterUnlessShaped => write!(out, "%{value}"),
            RelayOperand::Constant => write!(out, "c{value}"),
            RelayOperand::Function => match function() {
                Some(function) => write!(out, "@{}", short(&function.name)),
                // PAY-77: code that was not read from a file may refer to a function that does not exist.
                None => write!(out, "{value}"),
            },
            RelayOperand::Primitive => match primitive() {
                Some(name) => write!(out, "{}", short(name)),
                None => write!(out, "{value}"),
            },
            RelayOperand::Jump => match target() {
                Some(target) => write!(out, "-> {target}"),
                None => write!(out, "{value}"),
            },
            RelayOperand::Number | RelayOperand::Count => write!(out, "{value}"),
        }
    }
}

/// Writes a type, given as three 64-bit numbers, with its name in the release of the code: `float32`. Numbers that are not a type are shown
/// as numbers.
fn dtype(
    code: i64,
    others: [Option<i64>; 2],
    era: u8,
    out: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let [Some(bits), Some(lanes)] = others else {
        // An instruction that was not read from a file may end before these fields.
        return write!(out, "code {code}");
    };
    match (u8::try_from(code), u8::try_from(bits), u16::try_from(lanes)) {
        (Ok(code), Ok(bits), Ok(lanes)) => {
            let dtype = Dtype { code, bits, lanes };
            match dtype.name_in(Releases::between(era, era)) {
                Some(name) => out.write_str(&name),
                None => write!(out, "{dtype}"),
            }
        }
        _ => write!(out, "code {code}, bits {bits}, lanes {lanes}"),
    }
}
