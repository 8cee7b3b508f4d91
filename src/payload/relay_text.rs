//! Code of the Relay VM in the readable form: one line for each instruction.
//!
//! ```text
//! function main(x), 5 registers
//!    0  LoadConst c0, 0, %1
//!    1  InvokePacked add, 1, %0, %1, %2
//!    2  If %2, %3, -> 3, -> 5
//!    3  Ret %2
//! ```
//!
//! `%n` is a register, `_` one that is not used, `cN` a constant, `@name` a function; jumps name their target. How many fields
//! follow is not repeated. Names are escaped, and those inside of instructions are cut: a line is text only where it is written.

use super::line::{joined, short};
use super::relay_code::{RelayInstruction, RelayOperand};
use super::relay_vm::{RelayExecutable, RelayFunction, era_of};
use crate::release::Release;
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
        let fields = &instruction.fields;
        let Some(opcode) = instruction.opcode_in(era) else {
            write!(out, "opcode {}", instruction.opcode)?;
            if !fields.is_empty() {
                out.write_str(" ")?;
            }
            return joined(out, fields);
        };
        // PAY-73: behind the fixed fields come as many as the count states, all of one meaning.
        let kinds = || opcode.fields.iter().chain(iter::repeat(&opcode.tail));
        let counts = |field: &(&i64, &RelayOperand)| *field.1 == RelayOperand::Count;
        // PAY-75: known by the count, which may be behind the register that it is about.
        let shaped = fields
            .iter()
            .zip(kinds())
            .find(counts)
            .is_some_and(|(count, _)| *count > 0);
        out.write_str(opcode.name)?;
        // The count is left out: the fields behind it show how many there are.
        let shown = fields.iter().zip(kinds()).filter(|field| !counts(field));
        for (position, (value, kind)) in shown.enumerate() {
            out.write_str(if position == 0 { " " } else { ", " })?;
            self.field(*value, *kind, shaped, index, out)?;
        }
        Ok(())
    }

    /// One field: `%3`, `c0`, `@main`, `-> 5`, a name, a number.
    fn field(
        &self,
        value: i64,
        kind: RelayOperand,
        shaped: bool,
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
            // PAY-75: the size register counts only where there are no dimensions; it may be any number where there are.
            RelayOperand::RegisterUnlessShaped if shaped => out.write_str("_"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Findings;
    use crate::wire::{Cursor, Writer};

    /// One function of these instructions, which calls one primitive.
    fn executable(
        version: &str,
        names: [&str; 3],
        code: &[(i64, &[i64])],
    ) -> RelayExecutable<'static> {
        let [function, param, primitive] = names.map(str::to_owned);
        let code = code.iter().map(|(opcode, fields)| RelayInstruction {
            opcode: *opcode,
            fields: fields.to_vec(),
        });
        RelayExecutable {
            version: version.to_owned().into(),
            virtual_devices: vec![crate::payload::relay_vm::VirtualDevice {
                device: crate::tensor::Device { kind: 1, id: 0 },
                scope: "".into(),
            }],
            host_device: 0,
            globals: vec![function.clone().into()],
            constants: Vec::new(),
            constant_devices: Vec::new(),
            primitives: vec![primitive.into()],
            primitive_attrs: Vec::new(),
            functions: vec![RelayFunction {
                name: function.into(),
                registers: 9,
                params: vec![param.into()],
                param_devices: vec![0],
                code: code.collect(),
            }],
        }
    }

    #[test]
    fn the_size_of_a_storage_is_a_register_where_no_shape_is() {
        let plain: &[i64] = &[3, 64, 2, 32, 1, 0, 0, 4];
        let shaped: &[i64] = &[77, 64, 2, 32, 1, 0, 2, 4, 8, 16];
        let made = executable(
            "0.14.0",
            ["main", "x", "add"],
            &[(16, plain), (16, shaped), (15, &[]), (1, &[4])],
        );
        // PAY-75 accepts both.
        let mut out = Writer::new();
        assert_eq!(made.write_code(&mut out), Ok(()));
        let bytes = out.into_bytes();
        let mut findings = Findings::default();
        let read = RelayExecutable::read_code(&mut Cursor::new(&bytes), &mut findings);
        assert_eq!(
            read.map(|read| read.disassemble()).as_deref(),
            Ok(
                "function main(x), 9 registers\n    0  AllocStorage %3, 64, 2, 32, 1, 0, %4\n    1  AllocStorage _, 64, 2, 32, 1, 0, %4, 8, 16\n    2  Fatal\n    3  Ret %4\npacked add\n"
            )
        );
    }

    #[test]
    fn no_name_makes_a_line_of_its_own() {
        let names = ["ma\nin", "x\r", "f\n    6  Ret %0"];
        let call: &[i64] = &[0, 1, 0, 0];
        let made = executable("0.6.0", names, &[(4, call), (2, &[0, 0, 1]), (1, &[1])]);
        assert_eq!(
            made.disassemble(),
            "function ma\\nin(x\\r), 9 registers\n    0  InvokePacked f\\n    6  Ret %0, 0, %0\n    1  Invoke @ma\\nin, %1\n    2  Ret %1\npacked f\\n    6  Ret %0\n"
        );
    }

    #[test]
    fn a_name_is_whole_once() {
        let name = "f".repeat(1000);
        let call: &[i64] = &[0, 1, 0, 0];
        let made = executable("0.6.0", ["main", "x", &name], &[(4, call); 3]);
        let lines: Vec<usize> = made.lines().map(|line| line.to_string().len()).collect();
        assert_eq!(lines, [29, 227, 227, 227, 1007]);
    }
}
