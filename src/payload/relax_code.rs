//! The code of the Relax VM: what a reader must check before it follows its instructions.

use super::relax_function::{FunctionKind, RelaxFunction};
use super::relax_instruction::{RelaxInstruction, RelaxOperand, VM_REGISTER, VOID_REGISTER};
use super::{PAY_88, PAY_89, PAY_90, PAY_91, PAY_92, PAY_93, PAY_94, PAY_96, PAY_97};
use crate::rule::{Kind, Violation};
use crate::wire::Words;

/// Registers that a function may have whatever its code is (PAY-97).
const FREE_REGISTERS: i64 = 1 << 16;

/// The code of an executable, with what its operands name.
pub(super) struct RelaxCode<'c, 'a> {
    /// The function table.
    pub(super) functions: &'c [RelaxFunction<'a>],
    /// How many constants there are.
    pub(super) constants: usize,
    /// For each instruction the index of its first word.
    pub(super) offsets: &'c Words<'a>,
    /// The words of all instructions.
    pub(super) words: &'c Words<'a>,
}

impl RelaxCode<'_, '_> {
    /// Instruction `index` of the table.
    pub(super) fn instruction(&self, index: usize) -> Result<RelaxInstruction, Violation> {
        let (at, start) = self.start_of(index)?;
        // PAY-88: each word is looked for: an instruction may be cut anywhere.
        let word = |position: usize| {
            let word = at.checked_add(position).and_then(|at| self.words.get(at));
            word.map(u64::cast_signed).ok_or_else(|| {
                let message = format!(
                    "instruction {index} runs past the {} words of code",
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
                let message = format!("instruction {index} has opcode {opcode}, there are 1 to 4");
                return Err(PAY_89.broken(Kind::UnknownKind, start, message));
            }
        })
    }

    /// What a rule about the code is broken by at `offset`: a word of either vector, or a function, which `starts` places.
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

    /// Index of the first word of instruction `index`, and that word's offset in the file.
    fn start_of(&self, index: usize) -> Result<(usize, u64), Violation> {
        let listed = self.offsets.offset_of(index);
        let at = self
            .offsets
            .get(index)
            .and_then(|at| usize::try_from(at).ok());
        match at {
            // PAY-88: before PAY-96, which would call the same offset a gap.
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

    /// The `count` operands behind the four first words of the call at word `at` (PAY-88, PAY-89).
    fn operands(
        &self,
        index: usize,
        at: usize,
        count: i64,
    ) -> Result<Vec<RelaxOperand>, Violation> {
        let first = at.saturating_add(4);
        // PAY-88: no released reader looks; an offset of 10^7 crashes 0.27. The count is held against the words before room is made.
        let room = self.words.len().saturating_sub(first);
        let count = usize::try_from(count).ok().filter(|count| *count <= room);
        let Some(count) = count else {
            let message = format!("the arguments of instruction {index} run past the code");
            let offset = self.words.offset_of(first.saturating_sub(1));
            return Err(PAY_88.broken(Kind::Truncated, offset, message));
        };
        let mut operands = Vec::with_capacity(count);
        for position in first..first.saturating_add(count) {
            let word = self.words.get(position).unwrap_or_default();
            let operand = RelaxOperand::decode(word).ok_or_else(|| {
                let message = format!("operand {word:#018x} of instruction {index} has no kind");
                PAY_89.broken(Kind::UnknownKind, self.words.offset_of(position), message)
            })?;
            operands.push(operand);
        }
        Ok(operands)
    }

    /// PAY-88 to PAY-97: everything that the VM follows without looking.
    /// `function_starts` has the offset of each row of the function table, which rules about functions are blamed on.
    pub(super) fn check(&self, function_starts: &[u64]) -> Result<(), Violation> {
        self.check_tiling()?;
        self.check_bounds(function_starts)?;
        for (function, start) in self.functions.iter().zip(function_starts) {
            // PAY-91 to PAY-94: about frames, which only functions of the VM have.
            if function.kind == FunctionKind::Vm {
                self.check_function(function, *start)?;
            }
        }
        Ok(())
    }

    /// PAY-96: the instructions follow each other without gap or overlap. Also decodes each of them once.
    fn check_tiling(&self) -> Result<(), Violation> {
        // PAY-96: the first instruction starts at word 0.
        let mut expected = 0_usize;
        for index in 0..self.offsets.len() {
            let instruction = self.instruction(index)?;
            // PAY-96: overlapping instructions would let a small file take for ever to check, and every release writes them one
            // behind the other.
            let listed = self.offsets.get(index).unwrap_or_default();
            PAY_96.require(listed == expected as u64, self.offsets.offset_of(index), || {
                format!("instruction {index} starts at word {listed}, the one before ends at {expected}")
            })?;
            let at = usize::try_from(listed).unwrap_or(usize::MAX);
            expected = at.saturating_add(instruction.length());
        }
        // PAY-96: words behind the last instruction belong to none.
        let end = self.words.offset_of(self.words.len().min(expected));
        PAY_96.require(expected == self.words.len(), end, || {
            format!(
                "the instructions end at word {expected} of {}",
                self.words.len()
            )
        })
    }

    /// PAY-90: functions lie inside the table, and those of the VM do not overlap.
    fn check_bounds(&self, starts: &[u64]) -> Result<(), Violation> {
        let end_of_code = i64::try_from(self.offsets.len()).unwrap_or(i64::MAX);
        let mut ranges = Vec::new();
        for (function, at) in self.functions.iter().zip(starts) {
            // PAY-90: an empty range is allowed anywhere, its end included.
            let inside = 0 <= function.start
                && function.start <= function.end
                && function.end <= end_of_code;
            PAY_90.require(inside, *at, || {
                format!(
                    "function `{}` is instructions {} to {} of {end_of_code}",
                    function.name, function.start, function.end
                )
            })?;
            // PAY-90: packed functions have no instructions, and VMTIR runs compiled code: what they share is never executed.
            if function.kind == FunctionKind::Vm && function.start < function.end {
                ranges.push((function.start, function.end, &function.name, *at));
            }
        }
        // PAY-90: the table has any order; only neighbours by place can overlap.
        ranges.sort_by_key(|range| range.0);
        // PAY-90: a range that is inside a third one overlaps its neighbour as well.
        for pair in ranges.windows(2) {
            if let [(_, end, before, _), (start, _, name, at)] = pair {
                PAY_90.require(end <= start, *at, || {
                    format!("functions `{before}` and `{name}` share instructions")
                })?;
            }
        }
        Ok(())
    }

    /// Holds a function of the VM, whose row is at `at`, to PAY-91 and PAY-97, and each of its instructions to PAY-92 to PAY-94.
    fn check_function(&self, function: &RelaxFunction<'_>, at: u64) -> Result<(), Violation> {
        let fits = 0 <= function.num_args && function.num_args <= function.registers;
        PAY_91.require(fits, at, || {
            format!(
                "function `{}` takes {} arguments into {} registers",
                function.name, function.num_args, function.registers
            )
        })?;
        // Every register beyond the arguments is the destination of a call, which has four words at least. PAY-97: a frame is
        // as large as this number, whatever the file has: 2^31 registers are 32 GiB before the first instruction.
        let words = i64::try_from(self.words.len()).unwrap_or(i64::MAX);
        let most = words.max(FREE_REGISTERS);
        PAY_97.require_as(Kind::Limit, function.registers <= most, at, || {
            format!(
                "function `{}` has {} registers, for {words} words of code there are at most {most}",
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

    /// Holds instruction `index`, whose first word is at `at`, to PAY-92 (registers), PAY-93 (tables) and PAY-94 (jumps).
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
                    "instruction {index} of `{}` uses register {register} of {registers}",
                    function.name
                )
            })
        };
        // PAY-92: as an operand nothing and the VM itself are numbers beyond every frame. Neither is a place to write to but
        // nothing.
        let source = |from| register(from, &[VOID_REGISTER, VM_REGISTER]);
        let jump = |offset: i64| {
            let target = i64::try_from(index)
                .ok()
                .and_then(|from| from.checked_add(offset));
            let kept =
                target.is_some_and(|target| (function.start..function.end).contains(&target));
            PAY_94.require(kept, at, || {
                format!(
                    "instruction {index} of `{}` jumps by {offset}, out of the function",
                    function.name
                )
            })
        };
        let listed = |position: i64, length: usize, what: &str| {
            let kept = usize::try_from(position).is_ok_and(|position| position < length);
            PAY_93.require(kept, at, || {
                format!(
                    "instruction {index} of `{}` uses {what} {position} of {length}",
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
                // PAY-94: where the condition holds, control goes to the next instruction.
                jump(1)?;
                jump(false_offset)
            }
            RelaxInstruction::Call {
                destination,
                function: callee,
                operands,
            } => {
                register(destination, &[VOID_REGISTER])?;
                // PAY-93: a call names its function by index, of whatever kind that is.
                listed(callee, self.functions.len(), "function")?;
                operands.into_iter().try_for_each(|operand| match operand {
                    RelaxOperand::Register(from) => source(from),
                    RelaxOperand::Constant(index) => listed(index, self.constants, "constant"),
                    RelaxOperand::Function(index) => {
                        listed(index, self.functions.len(), "function")
                    }
                    // PAY-89: any number of 56 bits is itself.
                    RelaxOperand::Immediate(_) => Ok(()),
                })
            }
        }
    }
}
