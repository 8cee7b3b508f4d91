//! Code of the Relay VM in the readable form: one line for each instruction.
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
//! The registers that are written come first: of a primitive they are its outputs, the last of its registers. `%n` is a register, `cN` a
//! constant, `@name` a function; jumps name their target. A field without a name in front is what the opcode is about. How many fields
//! follow is not repeated, nor the size of storage for a shape, which no release looks at (PAY-75). Names are escaped, and those inside of
//! instructions are cut: a line is text only where it is written.

use super::line::{joined, short};
use super::relay_code::{RelayInstruction, RelayOperand};
use super::relay_vm::{RelayExecutable, RelayFunction, era_of};
use crate::release::Release;
use crate::tensor::Dtype;
use std::fmt::{self, Write as _};
use std::iter;

impl RelayExecutable<'_> {
    /// The code of all functions as text.
    /// The head of each function, its instructions with their index, and last the names of all primitives. A text for people:
    /// nothing reads it.
    pub fn disassemble(&self) -> String {
        let mut text = String::new();
        for line in self.lines() {
            // Writing into a string does not fail.
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// The lines of the code of all functions.
    pub(crate) fn lines(&self) -> impl Iterator<Item = RelayLine<'_>> {
        let functions = self.functions.iter().flat_map(|function| {
            let code = function.code.iter().enumerate();
            let code = code.map(|(index, instruction)| RelayPart::Instruction(index, instruction));
            iter::once(RelayPart::Function(function)).chain(code)
        });
        // Inside of instructions names are cut, so each is whole in a line of its own.
        let packed = self.primitives.iter().map(|name| RelayPart::Packed(name));
        functions.chain(packed).map(|part| RelayLine {
            executable: self,
            part,
        })
    }
}

/// A line, which is text only where it is written.
pub(crate) struct RelayLine<'c> {
    /// The executable, for the names that fields refer to and the release of the code.
    executable: &'c RelayExecutable<'c>,
    /// What the line is about.
    part: RelayPart<'c>,
}

/// What a line shows.
enum RelayPart<'c> {
    /// The head of a function.
    Function(&'c RelayFunction<'c>),
    /// An instruction, by its index in its function.
    Instruction(usize, &'c RelayInstruction),
    /// The whole name of a primitive, once, behind all functions.
    Packed(&'c str),
}

impl fmt::Display for RelayLine<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            RelayPart::Function(function) => {
                // Whole, as a line has one head; where it is used inside a line it is cut.
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
    /// Opcode and fields, each as its meaning shows it; an opcode that the release lacks by its number.
    fn instruction(
        &self,
        index: usize,
        instruction: &RelayInstruction,
        out: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        // An executable that was read is of a known release.
        let era = era_of(&self.executable.version).unwrap_or(Release::LAST.minor());
        let fields = instruction.fields.as_slice();
        let Some(opcode) = instruction.opcode_in(era) else {
            write!(out, "opcode {}", instruction.opcode)?;
            if !fields.is_empty() {
                out.write_str(" ")?;
            }
            return joined(out, fields);
        };
        // PAY-73: behind the fixed fields come as many as the count states, all of one meaning.
        let fixed = opcode.fields.len();
        let (fixed, tail) = fields.split_at_checked(fixed).unwrap_or((fields, &[]));
        let named = |wanted: &str| {
            let position = opcode.names.iter().position(|name| *name == wanted)?;
            fixed.get(position).copied()
        };
        let count = named("n");
        let shaped = count.is_some_and(|count| count > 0);
        // PAY-73: the outputs are the last of them. A number that is no part of them is shown as it is.
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
                // The type is shown at its code, and what is counted is there.
                "n" | "to" | "bits" | "lanes" => true,
                "outputs" => inputs.is_some(),
                // PAY-75: it counts only where there are no dimensions.
                "size" => shaped,
                _ => false,
            };
            if hidden {
                continue;
            }
            out.write_str(gap)?;
            gap = ", ";
            match *name {
                "code" => dtype(*value, [named("bits"), named("lanes")], out)?,
                "storage" | "offset" | "shape" | "tag" | "index" | "device" | "size"
                | "alignment" | "outputs" | "equal" | "else" | "from device" | "to device" => {
                    write!(out, "{name} ")?;
                    self.field(*value, *kind, index, out)?;
                }
                _ => self.field(*value, *kind, index, out)?,
            }
        }
        match opcode.tail {
            // PAY-75: storage without dimensions has a size; a tensor without any is a scalar.
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

    /// One field: `%3`, `c0`, `@main`, `-> 5`, a name, a number.
    fn field(
        &self,
        value: i64,
        kind: RelayOperand,
        index: usize,
        out: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        // A negative index names nothing, and is shown as the number that it is.
        let at = usize::try_from(value).ok();
        let function = || self.executable.functions.get(at?);
        let primitive = || self.executable.primitives.get(at?);
        // PAY-76: from the jump itself.
        let target = || i64::try_from(index).ok()?.checked_add(value);
        match kind {
            RelayOperand::Register | RelayOperand::RegisterUnlessShaped => write!(out, "%{value}"),
            RelayOperand::Constant => write!(out, "c{value}"),
            RelayOperand::Function => match function() {
                Some(function) => write!(out, "@{}", short(&function.name)),
                // PAY-77: code that was built and not read may name what is not there.
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

/// A type by its three numbers, which are any of 64 bits: `float32`, or the numbers where they are none of a type.
fn dtype(code: i64, others: [Option<i64>; 2], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let [Some(bits), Some(lanes)] = others else {
        // An instruction that was built and not read may end before them.
        return write!(out, "code {code}");
    };
    match (u8::try_from(code), u8::try_from(bits), u16::try_from(lanes)) {
        (Ok(code), Ok(bits), Ok(lanes)) => write!(out, "{}", Dtype { code, bits, lanes }),
        _ => write!(out, "code {code}, bits {bits}, lanes {lanes}"),
    }
}
