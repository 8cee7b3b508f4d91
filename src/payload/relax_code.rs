//! The code of the Relax VM, and the checks that are needed before its instructions can be followed.

use super::relax_function::{FunctionKind, RelaxFunction};
use super::relax_instruction::{RelaxInstruction, RelaxOperand, VM_REGISTER, VOID_REGISTER};
use super::{PAY_88, PAY_89, PAY_90, PAY_91, PAY_92, PAY_93, PAY_94, PAY_96, PAY_97};
use crate::rule::{Kind, Violation};
use crate::wire::Words;

/// Number of registers that a function may always have, regardless of its code (PAY-97).
const FREE_REGISTERS: i64 = 1 << 16;

/// The code of an executable, and the tables that its operands refer to.
pub(super) struct RelaxCode<'c, 'a> {
    /// The function table.
    pub(super) functions: &'c [RelaxFunction<'a>],
    /// The number of constants.
    pub(super) constants: usize,
    /// The index of the first word of each instruction.
    pub(super) offsets: &'c Words<'a>,
    /// The words of all instructions.
    pub(super) words: &'c Words<'a>,
}

impl RelaxCode<'_, '_> {
    /// Decodes instruction `index` of the table.
    pub(super) fn instruction(&self, index: usize) -> Result<RelaxInstruction, Violation> {
        let (at, start) = self.start_of(index)?;
        // PAY-88: each word is looked up separately, because an instruction may be truncated anywhere.
        let word = |position: usize| {
            let word = at.checked_add(position).and_then(|at| self.words.get(at));
            word.map(u64::cast_signed).ok_or_else(|| {
                let message = format!(
                    "instruction {index} ends after the last of the {} words of code",
                    self.words.len()
                );
                PAY_88.broken(Kind::Truncated, start, message)
            })
        };
        Ok(match word(0)? {
            1 => RelaxInstruction::Call {
                destination: word(1)?,
                function: word(2)?,
                operands: self.operands(index, at, word(3)?)?,
            },
            2 => RelaxInstruction::Ret { register: word(1)? },
            3 => RelaxInstruction::Goto { offset: word(1)? },
            4 => RelaxInstruction::If {
                condition: word(1)?,
                false_offset: word(2)?,
            },
            opcode => {
                let message =
                    format!("instruction {index} has the unknown opcode {opcode}: expected 1 to 4");
                return Err(PAY_89.broken(Kind::UnknownKind, start, message));
            }
        })
    }

    /// Returns the field for a violation at `offset`: a word of either vector, or a function, whose offset is in `starts`.
    pub(super) fn field_at(&self, offset: u64, starts: &[u64]) -> String {
        if let Some(function) = starts.iter().position(|start| *start == offset) {
            return format!("functions[{function}]");
        }
        let vectors = [("instr_data", self.words), ("instr_offset", self.offsets)];
        let behind = vectors
            .into_iter()
            .find(|(_, words)| words.offset_of(0) <= offset);
        let Some((name, words)) = behind else {
            return String::new();
        };
        match offset.saturating_sub(words.offset_of(0)) / 8 {
            index if index < words.len() as u64 => format!("{name}[{index}]"),
            _ => name.to_owned(),
        }
    }

    /// Returns the index of the first word of instruction `index`, and the offset of that word in the file.
    fn start_of(&self, index: usize) -> Result<(usize, u64), Violation> {
        let listed = self.offsets.offset_of(index);
        let at = self
            .offsets
            .get(index)
            .and_then(|at| usize::try_from(at).ok());
        match at {
            // PAY-88 is checked before PAY-96, which would report the same offset as a gap.
            Some(at) if at < self.words.len() => Ok((at, self.words.offset_of(at))),
            _ => {
                let message = format!(
                    "instruction {index} starts outside the {} words of code",
                    self.words.len()
                );
                Err(PAY_88.broken(Kind::Malformed, listed, message))
            }
        }
    }

    /// Decodes the `count` operands after the first four words of the call at word `at` (PAY-88, PAY-89).
    fn operands(
        &self,
        index: usize,
        at: usize,
        count: i64,
    ) -> Result<Vec<RelaxOperand>, Violation> {
        let first = at.saturating_add(4);
        // PAY-88: no released reader checks this; an offset of 10^7 crashes 0.27. The count is checked before memory is reserved.
        let room = self.words.len().saturating_sub(first);
        let count = usize::try_from(count).ok().filter(|count| *count <= room);
        let Some(count) = count else {
            let message =
                format!("the arguments of instruction {index} end after the last word of code");
            let offset = self.words.offset_of(first.saturating_sub(1));
            return Err(PAY_88.broken(Kind::Truncated, offset, message));
        };
        let mut operands = Vec::with_capacity(count);
        for position in first..first.saturating_add(count) {
            let word = self.words.get(position).unwrap_or_default();
            let operand = RelaxOperand::decode(word).ok_or_else(|| {
                let message =
                    format!("operand {word:#018x} of instruction {index} is of an unknown kind");
                PAY_89.broken(Kind::UnknownKind, self.words.offset_of(position), message)
            })?;
            operands.push(operand);
        }
        Ok(operands)
    }

    /// Checks PAY-88 to PAY-97, which the VM relies on. `function_starts` has the offset of each row of the function table, for violations
    /// about functions.
    pub(super) fn check(&self, function_starts: &[u64]) -> Result<(), Violation> {
        self.check_tiling()?;
        self.check_bounds(function_starts)?;
        for (function, start) in self.functions.iter().zip(function_starts) {
            // PAY-91 to PAY-94 are about frames, which only functions of the VM have.
            if function.kind == FunctionKind::Vm {
                self.check_function(function, *start)?;
            }
        }
        Ok(())
    }

    /// Checks that instructions follow each other without gap or overlap (PAY-96). This also decodes each instruction once.
    fn check_tiling(&self) -> Result<(), Violation> {
        // PAY-96: the first instruction starts at word 0.
        let mut expected = 0_usize;
        for index in 0..self.offsets.len() {
            let instruction = self.instruction(index)?;
            // PAY-96: overlapping instructions would let a small file take very long to check. Every release writes them one after the
            // other.
            let listed = self.offsets.get(index).unwrap_or_default();
            PAY_96.require(listed == expected as u64, self.offsets.offset_of(index), || {
                format!("instruction {index} starts at word {listed}: expected word {expected}, where the one before ends")
            })?;
            let at = usize::try_from(listed).unwrap_or(usize::MAX);
            expected = at.saturating_add(instruction.length());
        }
        // PAY-96: words after the last instruction belong to no instruction.
        let end = self.words.offset_of(self.words.len().min(expected));
        PAY_96.require(expected == self.words.len(), end, || {
            format!(
                "the instructions end at word {expected}, but the code has {} words",
                self.words.len()
            )
        })
    }

    /// Checks that functions lie inside the table, and that functions of the VM do not overlap (PAY-90).
    fn check_bounds(&self, starts: &[u64]) -> Result<(), Violation> {
        let end_of_code = i64::try_from(self.offsets.len()).unwrap_or(i64::MAX);
        let mut ranges = Vec::new();
        for (function, at) in self.functions.iter().zip(starts) {
            // PAY-90: an empty range is allowed anywhere, also at the end.
            let inside = 0 <= function.start
                && function.start <= function.end
                && function.end <= end_of_code;
            PAY_90.require(inside, *at, || {
                format!(
                    "function `{}` takes the instructions from {} to {}: expected a range inside the {end_of_code} instructions",
                    function.name, function.start, function.end
                )
            })?;
            // PAY-90: packed functions have no instructions, and VMTIR runs compiled code, so their ranges are never executed.
            if function.kind == FunctionKind::Vm && function.start < function.end {
                ranges.push((function.start, function.end, &function.name, *at));
            }
        }
        // PAY-90: the table may be in any order; after sorting, only neighbors can overlap.
        ranges.sort_by_key(|range| range.0);
        // PAY-90: if any two ranges overlap, two neighbors overlap as well.
        for pair in ranges.windows(2) {
            if let [(_, end, before, _), (start, _, name, at)] = pair {
                PAY_90.require(end <= start, *at, || {
                    format!("functions `{before}` and `{name}` share instructions: expected separate ranges")
                })?;
            }
        }
        Ok(())
    }

    /// Checks a function of the VM, whose row is at `at`: PAY-91 and PAY-97, and for each of its instructions PAY-92 to PAY-94.
    fn check_function(&self, function: &RelaxFunction<'_>, at: u64) -> Result<(), Violation> {
        let fits = 0 <= function.num_args && function.num_args <= function.registers;
        PAY_91.require(fits, at, || {
            format!(
                "function `{}` takes {} arguments, but has {} registers",
                function.name, function.num_args, function.registers
            )
        })?;
        // Every register after the arguments is the destination of a call, which takes at least four words. PAY-97: the number
        // determines the size of the frame. 2^31 registers take 32 GiB before the first instruction.
        let words = i64::try_from(self.words.len()).unwrap_or(i64::MAX);
        let most = words.max(FREE_REGISTERS);
        PAY_97.require_as(Kind::Limit, function.registers <= most, at, || {
            format!(
                "function `{}` has {} registers: expected at most {most} for {words} words of code",
                function.name, function.registers
            )
        })?;
        let count = self.offsets.len();
        let start = usize::try_from(function.start).unwrap_or(count);
        let end = usize::try_from(function.end).unwrap_or(count).min(count);
        for index in start..end {
            let offset = self.start_of(index)?.1;
            self.check_instruction(function, index, offset)?;
        }
        Ok(())
    }

    /// Checks instruction `index`, whose first word is at `at`: PAY-92 (registers), PAY-93 (tables) and PAY-94 (jumps).
    fn check_instruction(
        &self,
        function: &RelaxFunction<'_>,
        index: usize,
        at: u64,
    ) -> Result<(), Violation> {
        let registers = function.registers;
        let register = |register: i64, specials: &[i64]| {
            let kept = (0..registers).contains(&register) || specials.contains(&register);
            PAY_92.require(kept, at, || {
                format!(
                    "instruction {index} of `{}` uses register {register}, but the number of registers is {registers}",
                    function.name
                )
            })
        };
        // PAY-92: the void register and the VM itself have numbers beyond every frame. An operand may use both, and a destination only the
        // void register.
        let source = |from| register(from, &[VOID_REGISTER, VM_REGISTER]);
        let jump = |offset: i64| {
            let target = i64::try_from(index)
                .ok()
                .and_then(|from| from.checked_add(offset));
            let kept =
                target.is_some_and(|target| (function.start..function.end).contains(&target));
            PAY_94.require(kept, at, || {
                format!(
                    "instruction {index} of `{}` jumps by {offset}: expected a target inside the function",
                    function.name
                )
            })
        };
        let listed = |position: i64, length: usize, what: &str| {
            let kept = usize::try_from(position).is_ok_and(|position| position < length);
            PAY_93.require(kept, at, || {
                format!(
                    "instruction {index} of `{}` uses {what} {position}, but the number of {what}s is {length}",
                    function.name
                )
            })
        };
        match self.instruction(index)? {
            RelaxInstruction::Ret { register: from } => source(from),
            RelaxInstruction::Goto { offset } => jump(offset),
            RelaxInstruction::If {
                condition,
                false_offset,
            } => {
                source(condition)?;
                // PAY-94: if the condition is true, the next instruction is executed.
                jump(1)?;
                jump(false_offset)
            }
            RelaxInstruction::Call {
                destination,
                function: callee,
                operands,
            } => {
                register(destination, &[VOID_REGISTER])?;
                // PAY-93: a call refers to a function of any kind by its index.
                listed(callee, self.functions.len(), "function")?;
                operands.into_iter().try_for_each(|operand| match operand {
                    RelaxOperand::Register(from) => source(from),
                    RelaxOperand::Constant(index) => listed(index, self.constants, "constant"),
                    RelaxOperand::Function(index) => {
                        listed(index, self.functions.len(), "function")
                    }
                    // PAY-89: an immediate is any number of 56 bits.
                    RelaxOperand::Immediate(_) => Ok(()),
                })
            }
        }
    }
}
