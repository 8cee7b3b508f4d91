//! The readable form: one line for each constant and instruction.
//!
//! ```text
//! constants
//!   c0 = float32
//!   c1 = tensor float32 [8, 16], 512 bytes
//! function main(x), 3 registers
//!    0  vm.builtin.check_tensor_info(%0, 2, c0)
//!    1  %2 = add(%0, c1)
//!    2  return %2
//! packed add
//! ```
//!
//! `%n` is a register, `%vm` the machine, `%void` nothing, `cN` a constant, `@name` a function as a value. Numbers of
//! instructions are those of the table; jumps name their target.

use super::Executable;
use super::executable::range;
use crate::payload::relax_vm::{
    Constant, FunctionKind, Instruction, Operand, VM_REGISTER, VOID_REGISTER,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;

impl Executable<'_> {
    /// The whole executable as text.
    pub fn disassemble(&self) -> String {
        let mut text = String::new();
        let scopes = self.scopes();
        if !self.code().constants.is_empty() {
            text.push_str("constants\n");
        }
        for index in 0..self.code().constants.len() {
            let _ = writeln!(text, "  c{index} = {}", self.constant_text(index, &scopes));
        }
        for function in &self.code().functions {
            if function.kind == FunctionKind::Packed {
                continue;
            }
            let word = match function.kind {
                FunctionKind::Vm => "function",
                _ => "compiled",
            };
            let params: Vec<&str> = function.params.iter().map(|name| &**name).collect();
            let _ = writeln!(
                text,
                "{word} {}({}), {} registers",
                function.name,
                params.join(", "),
                function.registers
            );
            for index in range(function) {
                let _ = writeln!(text, "{index:>5}  {}", self.instruction_text(index));
            }
        }
        for name in self.packed_names() {
            let _ = writeln!(text, "packed {name}");
        }
        text
    }

    /// Counts, in a sentence each.
    pub(crate) fn stats(&self) -> String {
        let counts = self.counts();
        let mut text = String::from("Relax VM executable\n");
        for (name, count) in &counts {
            let _ = writeln!(text, "  {name}: {count}");
        }
        text
    }

    /// Functions with their code, constants, and counts; the JSON form of this chapter.
    pub fn to_json(&self) -> Value {
        let scopes = self.scopes();
        let functions = self.code().functions.iter().map(|function| {
            let params: Vec<&str> = function.params.iter().map(|name| &**name).collect();
            let lines: Vec<String> = match function.kind {
                FunctionKind::Vm => range(function)
                    .map(|index| self.instruction_text(index))
                    .collect(),
                _ => Vec::new(),
            };
            json!({
                "name": &*function.name,
                "kind": function.kind.name(),
                "params": params,
                "registers": function.registers,
                "code": lines,
            })
        });
        let functions: Vec<Value> = functions.collect();
        let constants: Vec<String> = (0..self.code().constants.len())
            .map(|index| self.constant_text(index, &scopes))
            .collect();
        let counts: serde_json::Map<String, Value> = self
            .counts()
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count.into()))
            .collect();
        json!({"functions": functions, "constants": constants, "counts": counts})
    }

    /// The memory scope of each constant that has one; none is listed twice (PAY-87).
    fn scopes(&self) -> HashMap<i64, &str> {
        let listed = self.code().memory_scopes.as_deref().unwrap_or_default();
        listed
            .iter()
            .map(|(constant, scope)| (*constant, &**scope))
            .collect()
    }

    fn counts(&self) -> [(&'static str, u64); 6] {
        let code = self.code();
        let of = |kind| {
            code.functions
                .iter()
                .filter(|function| function.kind == kind)
                .count() as u64
        };
        let bytes = code.constants.iter().map(|constant| match constant {
            Constant::Tensor(record) => record.data().len() as u64,
            _ => 0,
        });
        [
            ("functions", of(FunctionKind::Vm)),
            ("compiled", of(FunctionKind::VmTir)),
            ("packed", of(FunctionKind::Packed)),
            ("constants", code.constants.len() as u64),
            ("constant bytes", bytes.fold(0, u64::saturating_add)),
            ("instructions", code.offsets.len() as u64),
        ]
    }

    /// Instruction `index` as text; empty when there is none.
    pub(crate) fn instruction_text(&self, index: usize) -> String {
        let target = |offset: i64| i64::try_from(index).unwrap_or(0).saturating_add(offset);
        match self.code().instruction(index) {
            Ok(Instruction::Call {
                destination,
                function,
                operands,
            }) => {
                let operands: Vec<String> = operands
                    .iter()
                    .map(|operand| self.operand_text(*operand))
                    .collect();
                let call = format!("{}({})", self.name_of(function), operands.join(", "));
                match destination {
                    VOID_REGISTER => call,
                    destination => format!("%{destination} = {call}"),
                }
            }
            Ok(Instruction::Ret { register }) => format!("return {}", register_text(register)),
            Ok(Instruction::Goto { offset }) => format!("goto {}", target(offset)),
            Ok(Instruction::If {
                condition,
                false_offset,
            }) => format!(
                "if {} else goto {}",
                register_text(condition),
                target(false_offset)
            ),
            Err(_) => String::new(),
        }
    }

    /// The name of a function for a line of code. A long name is cut: it may be in every line.
    fn name_of(&self, function: i64) -> &str {
        let function = usize::try_from(function)
            .ok()
            .and_then(|at| self.code().functions.get(at));
        let name = function.map_or("?", |function| &*function.name);
        match name.char_indices().nth(LONGEST_NAME) {
            Some((end, _)) => name.get(..end).unwrap_or(name),
            None => name,
        }
    }

    fn operand_text(&self, operand: Operand) -> String {
        match operand {
            Operand::Register(register) => register_text(register),
            Operand::Immediate(value) => value.to_string(),
            Operand::Constant(index) => format!("c{index}"),
            Operand::Function(index) => format!("@{}", self.name_of(index)),
        }
    }

    fn constant_text(&self, index: usize, scopes: &HashMap<i64, &str>) -> String {
        let number = i64::try_from(index).unwrap_or(i64::MAX);
        let scope = scopes.get(&number).copied();
        let scope = scope.filter(|scope| *scope != "global");
        match self.code().constants.get(index) {
            Some(Constant::Tensor(record)) => {
                let mut text = format!(
                    "tensor {} {:?}, {} bytes",
                    record.dtype(),
                    record.shape(),
                    record.data().len()
                );
                if let Some(scope) = scope {
                    let _ = write!(text, " in `{scope}`");
                }
                text
            }
            Some(Constant::Shape(extents)) => format!("shape {extents:?}"),
            Some(Constant::Text(text)) => format!("\"{}\"", text.escape_debug()),
            Some(Constant::Int(value)) => value.to_string(),
            Some(Constant::Float(value)) => format!("{value:?}"),
            Some(Constant::Dtype(dtype)) => dtype.to_string(),
            None => String::new(),
        }
    }
}

/// In characters.
const LONGEST_NAME: usize = 200;

fn register_text(register: i64) -> String {
    match register {
        VM_REGISTER => "%vm".to_owned(),
        VOID_REGISTER => "%void".to_owned(),
        register => format!("%{register}"),
    }
}
