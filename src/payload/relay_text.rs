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
//! `%n` is a register, `cN` a constant, `@name` a function; jumps name their target. How many fields follow is not repeated.

use super::relay_code::{Instruction, Operand};
use super::relay_vm::{Executable, Function, era_of};
use crate::release::Release;
use std::fmt::Write as _;

impl Executable<'_> {
    /// The code of all functions as text.
    pub fn disassemble(&self) -> String {
        let mut text = String::new();
        for function in &self.functions {
            let params: Vec<&str> = function.params.iter().map(|name| &**name).collect();
            let _ = writeln!(
                text,
                "function {}({}), {} registers",
                function.name,
                params.join(", "),
                function.registers
            );
            self.function_text(function, &mut text);
        }
        for name in &self.primitives {
            let _ = writeln!(text, "packed {name}");
        }
        text
    }

    fn function_text(&self, function: &Function<'_>, text: &mut String) {
        // An executable that was read is of a known release.
        let era = era_of(&self.version).unwrap_or(Release::LAST.minor());
        for (index, instruction) in function.code.iter().enumerate() {
            let fields = self.fields_text(instruction, era, index);
            let (name, fields) = fields.unwrap_or_else(|| {
                let fields = instruction.fields.iter().map(i64::to_string).collect();
                (format!("opcode {}", instruction.opcode), fields)
            });
            let line = format!("{index:>5}  {name} {}", fields.join(", "));
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }

    fn fields_text(
        &self,
        instruction: &Instruction,
        era: u8,
        index: usize,
    ) -> Option<(String, Vec<String>)> {
        let opcode = instruction.opcode_in(era)?;
        let kinds = opcode.fields.iter().chain(std::iter::repeat(&opcode.tail));
        let fields = instruction.fields.iter().zip(kinds);
        let shown = fields.filter(|(_, kind)| **kind != Operand::Count);
        let text = |(value, kind): (&i64, &Operand)| self.field_text(*value, *kind, index);
        Some((opcode.name.to_owned(), shown.map(text).collect()))
    }

    fn field_text(&self, value: i64, kind: Operand, index: usize) -> String {
        let at = usize::try_from(value).ok();
        let named = match kind {
            Operand::Register => Some(format!("%{value}")),
            Operand::Constant => Some(format!("c{value}")),
            Operand::Function => at
                .and_then(|at| self.functions.get(at))
                .map(|function| format!("@{}", function.name)),
            Operand::Primitive => at
                .and_then(|at| self.primitives.get(at))
                .map(|name| name.to_string()),
            Operand::Jump => {
                let from = i64::try_from(index).ok();
                let to = from.and_then(|from| from.checked_add(value));
                to.map(|to| format!("-> {to}"))
            }
            Operand::Number | Operand::Count | Operand::RegisterUnlessShaped => None,
        };
        named.unwrap_or_else(|| value.to_string())
    }
}
