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
//! `%n` is a register, `%vm` the machine, `%void` the void register, `cN` a constant, and `@name` a function as a value. The
//! numbers of instructions are those of the table; jumps name their target.

use super::checks::range;
use super::executable::{Executable, packed_names};
use crate::payload::disassembly_line::{joined, short};
use crate::payload::relax_vm::{
    self, FunctionKind, RelaxConstant, RelaxFunction, RelaxInstruction, RelaxOperand, VM_REGISTER,
    VOID_REGISTER,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::iter;

impl Executable<'_> {
    /// Returns the whole executable as text.
    ///
    /// There is one line for each constant and instruction, and each ends with a newline. The form belongs to this crate. Upstream
    /// has another form, without numbers.
    pub fn disassemble(&self) -> String {
        let mut text = String::new();
        for line in Listing::new(self.code()).lines() {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Returns functions with their code, constants, and counts: the JSON form of this chapter.
    ///
    /// The members are `functions`, `constants` and `counts`; `spec/schema/vm.json` is the schema.
    pub fn to_json(&self) -> Value {
        let listing = Listing::new(self.code());
        let functions = self.code().functions.iter().map(|function| {
            let params: Vec<&str> = function.params.iter().map(|name| &**name).collect();
            let lines: Vec<String> = instructions(function)
                .map(|index| InstructionText::new(self.code(), index).to_string())
                .collect();
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
            .map(|index| listing.line(ListingPart::Constant(index)).to_string())
            .collect();
        let counts: serde_json::Map<String, Value> = self
            .counts()
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count.into()))
            .collect();
        json!({"functions": functions, "constants": constants, "counts": counts})
    }

    /// Returns the number of functions of each kind, of constants and of instructions, and the bytes of the tensors among the
    /// constants.
    fn counts(&self) -> [(&'static str, u64); 6] {
        let code = self.code();
        let of = |kind| {
            code.functions
                .iter()
                .filter(|function| function.kind == kind)
                .count() as u64
        };
        let bytes = code.constants.iter().map(|constant| match constant {
            // TEN-35: the stored bytes, which may be fewer than the tensor takes. Only the machine rejects that.
            RelaxConstant::Tensor(record) => record.data().len() as u64,
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
}

/// The functions that the machine uses: its modules print counts, and its errors an instruction.
#[cfg(feature = "vm")]
impl Executable<'_> {
    /// Returns the counts, one per line.
    pub(crate) fn stats(&self) -> String {
        let counts = self.counts();
        let mut text = String::from("Relax VM executable\n");
        for (name, count) in &counts {
            let _ = writeln!(text, "  {name}: {count}");
        }
        text
    }

    /// Returns instruction `index` as text that is short enough for a message, or an empty text.
    pub(crate) fn instruction_text(&self, index: usize) -> String {
        // PAY-88: a call may have as many operands as the file has words, so the text is cut.
        const LONGEST: usize = 4096;
        let (mut text, whole) = crate::payload::disassembly_line::bounded(
            &InstructionText::new(self.code(), index),
            LONGEST,
        );
        if !whole {
            text.push_str("..");
        }
        text
    }
}

/// Returns the instructions of a function. A compiled one has none. Its range is ignored, because no rule keeps it apart from
/// others (PAY-90).
fn instructions(function: &RelaxFunction<'_>) -> std::ops::Range<usize> {
    match function.kind {
        FunctionKind::Vm => range(function),
        FunctionKind::VmTir | FunctionKind::Packed => 0..0,
    }
}

/// The code of an executable as lines, each of which is formatted when it is read. The code obeys the rules of its format (chapter
/// payload), but may break those of this chapter.
pub(crate) struct Listing<'c> {
    code: &'c relax_vm::RelaxExecutable<'c>,
    /// The memory scope of each constant that has one. No constant is listed twice (PAY-87).
    scopes: HashMap<i64, &'c str>,
}

impl<'c> Listing<'c> {
    /// Creates the listing of `code`.
    pub(crate) fn new(code: &'c relax_vm::RelaxExecutable<'c>) -> Listing<'c> {
        // PAY-85: code with the older magic has no list of scopes.
        let listed = code.memory_scopes.as_deref().unwrap_or_default();
        let scopes = listed.iter().map(|(constant, scope)| (*constant, &**scope));
        Listing {
            code,
            scopes: scopes.collect(),
        }
    }

    /// Returns every line, in order.
    pub(crate) fn lines(&self) -> impl Iterator<Item = ListingLine<'_>> {
        let constants = 0..self.code.constants.len();
        let title = (!constants.is_empty()).then_some(ListingPart::Constants);
        let own = self.code.functions.iter();
        // Packed functions are names without code. They come last, because a table may have one for each kernel.
        let own = own.filter(|function| function.kind != FunctionKind::Packed);
        let functions = own.flat_map(|function| {
            let code = instructions(function).map(ListingPart::Instruction);
            iter::once(ListingPart::Function(function)).chain(code)
        });
        let packed = packed_names(self.code).into_iter().map(ListingPart::Packed);
        title
            .into_iter()
            .chain(constants.map(ListingPart::ConstantRow))
            .chain(functions)
            .chain(packed)
            .map(|part| self.line(part))
    }

    /// Returns one part as a line.
    fn line<'l>(&'l self, part: ListingPart<'l>) -> ListingLine<'l> {
        ListingLine {
            listing: self,
            part,
        }
    }
}

/// A line, which is formatted when it is written.
pub(crate) struct ListingLine<'l> {
    listing: &'l Listing<'l>,
    part: ListingPart<'l>,
}

/// The content of a line.
enum ListingPart<'l> {
    /// The title of the constants.
    Constants,
    /// A constant, after its number.
    ConstantRow(usize),
    /// A constant without its number.
    Constant(usize),
    /// The head of a function with code, or of a compiled one: name, parameters, registers.
    Function(&'l RelaxFunction<'l>),
    /// An instruction, after its number in the table.
    Instruction(usize),
    /// The name of one or more packed functions.
    Packed(&'l str),
}

impl fmt::Display for ListingLine<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.listing.code;
        match self.part {
            ListingPart::Constants => out.write_str("constants"),
            ListingPart::ConstantRow(index) => {
                write!(out, "  c{index} = ")?;
                self.constant(index, out)
            }
            ListingPart::Constant(index) => self.constant(index, out),
            ListingPart::Function(function) => {
                let word = match function.kind {
                    FunctionKind::Vm => "function",
                    // Packed functions have their own kind of line, and do not come here.
                    FunctionKind::VmTir | FunctionKind::Packed => "compiled",
                };
                // A name may be any text of the file. Escaping keeps it from starting a new line.
                write!(out, "{word} {}(", function.name.escape_debug())?;
                joined(out, function.params.iter().map(|name| name.escape_debug()))?;
                write!(out, "), {} registers", function.registers)
            }
            ListingPart::Instruction(index) => {
                write!(out, "{index:>5}  {}", InstructionText::new(code, index))
            }
            ListingPart::Packed(name) => write!(out, "packed {}", name.escape_debug()),
        }
    }
}

impl ListingLine<'_> {
    /// Writes the constant at `index`, in the form of the table in `spec/vm.md`.
    fn constant(&self, index: usize, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.listing.code.constants.get(index) {
            Some(RelaxConstant::Tensor(record)) => {
                // The number of stored bytes, which may be less than the shape requires (TEN-35).
                let (dtype, bytes) = (record.dtype(), record.data().len());
                write!(out, "tensor {dtype} {:?}, {bytes} bytes", record.shape())?;
                let scope = i64::try_from(index)
                    .ok()
                    .and_then(|index| self.listing.scopes.get(&index));
                match scope {
                    // VM-13: `global` is the default scope, which constants without a scope also have.
                    Some(scope) if *scope != "global" => {
                        write!(out, " in `{}`", scope.escape_debug())
                    }
                    _ => Ok(()),
                }
            }
            Some(RelaxConstant::Shape(extents)) => write!(out, "shape {extents:?}"),
            // `escape_debug` keeps printable characters, and escapes those that would end the line.
            Some(RelaxConstant::Text(text)) => write!(out, "\"{}\"", text.escape_debug()),
            Some(RelaxConstant::Int(value)) => write!(out, "{value}"),
            // `Debug` always writes a point or an exponent. With `Display`, 7.0 would read back as an integer.
            Some(RelaxConstant::Float(value)) => write!(out, "{value:?}"),
            Some(RelaxConstant::Dtype(dtype)) => write!(out, "{dtype}"),
            None => Ok(()),
        }
    }
}

/// An instruction, without its number.
struct InstructionText<'c> {
    code: &'c relax_vm::RelaxExecutable<'c>,
    /// The number in the instructions of the whole table, from 0.
    index: usize,
}

impl<'c> InstructionText<'c> {
    /// Creates the text for instruction `index` of the whole table.
    fn new(code: &'c relax_vm::RelaxExecutable<'c>, index: usize) -> InstructionText<'c> {
        InstructionText { code, index }
    }

    /// Returns the name of a function for a line of code. A long name is cut, because it may occur in every line. The name of an
    /// invalid number is `?`, which a valid executable does not contain (PAY-93).
    fn name(&self, function: i64) -> std::str::EscapeDebug<'c> {
        let function = usize::try_from(function)
            .ok()
            .and_then(|at| self.code.functions.get(at));
        short(function.map_or("?", |function| &*function.name))
    }
}

impl fmt::Display for InstructionText<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // VM-22: lines name the target itself, so that a reader need not compute it.
        let target = |offset: i64| i128::from(offset).saturating_add(self.index as i128);
        match self.code.instruction(self.index) {
            Ok(RelaxInstruction::Call {
                destination,
                function,
                operands,
            }) => {
                if destination != VOID_REGISTER {
                    write!(out, "%{destination} = ")?;
                }
                write!(out, "{}(", self.name(function))?;
                joined(
                    out,
                    operands.iter().map(|operand| OperandText(self, *operand)),
                )?;
                out.write_str(")")
            }
            Ok(RelaxInstruction::Ret { register }) => {
                write!(out, "return {}", RegisterText(register))
            }
            Ok(RelaxInstruction::Goto { offset }) => write!(out, "goto {}", target(offset)),
            Ok(RelaxInstruction::If {
                condition,
                false_offset,
            }) => {
                let condition = RegisterText(condition);
                write!(out, "if {condition} else goto {}", target(false_offset))
            }
            // All instructions in the table were decoded before (PAY-88, PAY-89), so there is no instruction of this number.
            Err(_) => Ok(()),
        }
    }
}

/// An operand of a call: a register, an immediate, `cN` or `@name`.
struct OperandText<'r>(&'r InstructionText<'r>, RelaxOperand);

impl fmt::Display for OperandText<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            RelaxOperand::Register(register) => write!(out, "{}", RegisterText(register)),
            RelaxOperand::Immediate(value) => write!(out, "{value}"),
            RelaxOperand::Constant(index) => write!(out, "c{index}"),
            RelaxOperand::Function(index) => write!(out, "@{}", self.0.name(index)),
        }
    }
}

/// A register by its number, or one of the two special registers (PAY-92).
struct RegisterText(i64);

impl fmt::Display for RegisterText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            VM_REGISTER => out.write_str("%vm"),
            VOID_REGISTER => out.write_str("%void"),
            register => write!(out, "%{register}"),
        }
    }
}
