//! The four instructions.
//!
//! Code is decoded once, when the machine is made: operands that never change are ready-made cells, callees are
//! resolved, jumps are absolute. Running allocates no memory of its own: frames are kept from call to call.

use super::builtin::Builtin;
use super::machine::Machine;
use super::{Fault, Loaded, VM_21, VM_25};
use crate::function::Function;
use crate::payload::relax_vm::{self, FunctionKind, RelaxInstruction, VM_REGISTER, VOID_REGISTER};
use crate::payload::{PAY_88, PAY_97};
use crate::rule::{Kind, Violation};
use crate::value::{Any, AnyView, RawAny, index};
use std::cell::Cell;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// One call, as an [`Observer`] sees it when it is over.
pub struct Step<'a> {
    /// The VM function that the instruction is in.
    pub function: &'a str,
    /// Number of the instruction in the table.
    pub instruction: usize,
    /// The function that was called.
    pub callee: &'a str,
    /// Its arguments.
    pub args: &'a [AnyView<'a>],
    /// When it began.
    pub started: Instant,
    /// How long it took; of a VM function, with everything that it called.
    pub took: Duration,
}

/// Sees every call of a machine.
pub type Observer = Arc<dyn Fn(&Step<'_>) + Send + Sync>;

/// Who is called.
pub(super) enum Callee {
    /// A function of a library or of the registry.
    Packed(Function),
    /// A function of this crate, without a boundary in between.
    Builtin(Builtin),
    /// Instructions of this executable.
    Vm(usize),
}

/// Decoded code of an executable.
pub(super) struct Code {
    steps: Vec<Op>,
    operands: Vec<Operand>,
    functions: Vec<Frames>,
}

/// Where a function begins and how large its frame is; nothing for functions without instructions.
#[derive(Clone, Copy, Default)]
struct Frames {
    start: u32,
    registers: u32,
    arguments: u32,
}

enum Op {
    Call {
        destination: u32,
        callee: u32,
        first: u32,
        count: u32,
    },
    Return {
        register: u32,
    },
    Goto {
        target: u32,
    },
    If {
        condition: u32,
        otherwise: u32,
    },
}

enum Operand {
    Register(u32),
    Machine,
    /// A cell that stays as it is: an immediate, or a borrowed constant or function of the machine.
    Fixed(RawAny),
}

/// No register: the result is dropped, or None is returned.
const NOWHERE: u32 = u32::MAX;

/// The registers and arguments of one running function.
#[derive(Default)]
pub(super) struct Frame {
    registers: Vec<Any>,
    arguments: Vec<RawAny>,
}

impl Code {
    /// Decodes `loaded`. Cells of `constants` and `functions` are borrowed: both must stay as they are while the code is
    /// used.
    pub(super) fn decode(
        loaded: &Loaded,
        constants: &[Any],
        functions: &[Any],
    ) -> Result<Code, Violation> {
        let code = loaded.executable().code();
        // What follows counts instructions and operands in 32 bits; there is no more of either than words.
        if u32::try_from(code.words.len()).is_err() {
            let message = format!("{} words of code", code.words.len());
            return Err(PAY_88.refused(Kind::Limit, message));
        }
        let frames = code.functions.iter().map(Frames::of);
        let mut decoded = Code {
            steps: Vec::with_capacity(code.offsets.len()),
            operands: Vec::new(),
            functions: frames.collect::<Result<_, _>>()?,
        };
        for index in 0..code.offsets.len() {
            let step = decoded.decode_one(index, code.instruction(index)?, constants, functions);
            decoded.steps.push(step);
        }
        Ok(decoded)
    }

    fn decode_one(
        &mut self,
        index: usize,
        instruction: RelaxInstruction,
        constants: &[Any],
        functions: &[Any],
    ) -> Op {
        let target = |offset: i64| (index as i64 + offset) as u32;
        match instruction {
            RelaxInstruction::Ret { register } => Op::Return {
                register: register_of(register),
            },
            RelaxInstruction::Goto { offset } => Op::Goto {
                target: target(offset),
            },
            RelaxInstruction::If {
                condition,
                false_offset,
            } => Op::If {
                condition: register_of(condition),
                otherwise: target(false_offset),
            },
            RelaxInstruction::Call {
                destination,
                function,
                operands,
            } => {
                let first = self.operands.len() as u32;
                let count = operands.len() as u32;
                let cell = |list: &[Any], at: i64| {
                    list.get(at as usize)
                        .map_or(RawAny::NONE, |value| *value.as_raw())
                };
                self.operands
                    .extend(operands.into_iter().map(|operand| match operand {
                        relax_vm::RelaxOperand::Register(VM_REGISTER) => Operand::Machine,
                        relax_vm::RelaxOperand::Register(VOID_REGISTER) => {
                            Operand::Fixed(RawAny::NONE)
                        }
                        relax_vm::RelaxOperand::Register(register) => {
                            Operand::Register(register as u32)
                        }
                        relax_vm::RelaxOperand::Immediate(value) => {
                            Operand::Fixed(*AnyView::from(value).as_raw())
                        }
                        relax_vm::RelaxOperand::Constant(at) => Operand::Fixed(cell(constants, at)),
                        relax_vm::RelaxOperand::Function(at) => Operand::Fixed(cell(functions, at)),
                    }));
                Op::Call {
                    destination: register_of(destination),
                    callee: function as u32,
                    first,
                    count,
                }
            }
        }
    }
}

fn register_of(register: i64) -> u32 {
    u32::try_from(register).unwrap_or(NOWHERE)
}

impl Frames {
    /// PAY-90, PAY-91 and PAY-97 have seen that the numbers are sizes of things in the file.
    fn of(function: &relax_vm::RelaxFunction<'_>) -> Result<Frames, Violation> {
        if function.kind != FunctionKind::Vm {
            return Ok(Frames::default());
        }
        let number = |count: i64, what: &str| {
            u32::try_from(count).map_err(|_| {
                let message = format!("function `{}` has {count} {what}", function.name);
                PAY_97.refused(Kind::Limit, message)
            })
        };
        Ok(Frames {
            start: number(function.start, "as its first instruction")?,
            registers: number(function.registers, "registers in all")?,
            arguments: number(function.num_args, "arguments in all")?,
        })
    }
}

/// How deep functions of a VM may call each other on one thread. Released runtimes end with a stack overflow instead.
const DEEPEST: u32 = 1000;

/// How many registers all functions that are running on one thread may have, but for the outermost: 32 MiB of them.
const MOST_REGISTERS: usize = 1 << 21;

thread_local! {
    static RUNNING: Cell<Running> = const { Cell::new(Running { functions: 0, registers: 0 }) };
}

/// What is running on a thread.
#[derive(Clone, Copy)]
struct Running {
    functions: u32,
    registers: usize,
}

/// Counts one function that is running on this thread; what ran before it runs again when this goes.
struct Depth(Running);

impl Depth {
    fn enter(registers: u32) -> Result<Depth, Fault> {
        let before = RUNNING.get();
        if before.functions >= DEEPEST {
            let message = format!("functions of the VM call each other more than {DEEPEST} deep");
            return Err(VM_25.refused(Kind::Limit, message).into());
        }
        let registers = match before.functions {
            0 => 0,
            _ => before.registers.saturating_add(registers as usize),
        };
        if registers > MOST_REGISTERS {
            let message = format!(
                "functions of the VM that call each other have more than {MOST_REGISTERS} registers"
            );
            return Err(VM_25.refused(Kind::Limit, message).into());
        }
        RUNNING.set(Running {
            functions: before.functions + 1,
            registers,
        });
        Ok(Depth(before))
    }
}

impl Drop for Depth {
    fn drop(&mut self) {
        RUNNING.set(self.0);
    }
}

impl Machine {
    /// Runs function `function` of the executable on `args` (VM-20 to VM-25).
    pub(super) fn run(&self, function: usize, args: &[AnyView<'_>]) -> Result<Any, Fault> {
        let frames = self.code.functions[function];
        if args.len() != frames.arguments as usize {
            return Err(self.wrong_count(function, args));
        }
        let _depth = Depth::enter(frames.registers)?;
        self.spend()?;
        let mut frame = self.frames().pop().unwrap_or_default();
        frame
            .registers
            .resize_with(frames.registers as usize, Any::none);
        for (register, argument) in frame.registers.iter_mut().zip(args) {
            *register = argument.to_any();
        }
        let watched = self.is_watched();
        let result = self.follow(function, frames.start as usize, &mut frame, watched);
        frame.registers.clear();
        self.frames().push(frame);
        result
    }

    fn follow(
        &self,
        function: usize,
        start: usize,
        frame: &mut Frame,
        watched: bool,
    ) -> Result<Any, Fault> {
        let mut at = start;
        loop {
            // VM-01 holds that there is one; the end of the table is no place to fall over all the same.
            let Some(step) = self.code.steps.get(at) else {
                return Ok(Any::none());
            };
            match step {
                Op::Call {
                    destination,
                    callee,
                    first,
                    count,
                } => {
                    frame.arguments.clear();
                    let operands = &self.code.operands[*first as usize..][..*count as usize];
                    for operand in operands {
                        frame.arguments.push(match operand {
                            Operand::Register(register) => {
                                *frame.registers[*register as usize].as_raw()
                            }
                            Operand::Fixed(cell) => *cell,
                            Operand::Machine => *self.handle().as_raw(),
                        });
                    }
                    // SAFETY: every cell is borrowed from a register of this frame, which stays as it is during the
                    // call, or from the machine; the list is not touched before the call is over.
                    let args =
                        unsafe { AnyView::slice(frame.arguments.as_ptr(), frame.arguments.len()) };
                    let callee = *callee as usize;
                    let result = if watched {
                        self.call_watched(function, at, callee, args)
                    } else {
                        self.call_index(callee, args)
                    };
                    match result {
                        Ok(value) if *destination == NOWHERE => drop(value),
                        Ok(value) => frame.registers[*destination as usize] = value,
                        Err(fault) => return Err(self.locate(fault, function, at)),
                    }
                    at += 1;
                }
                Op::Return { register: NOWHERE } => return Ok(Any::none()),
                Op::Return { register } => {
                    return Ok(frame.registers[*register as usize].take());
                }
                Op::Goto { target } => {
                    self.spend()?;
                    at = *target as usize;
                }
                Op::If {
                    condition,
                    otherwise,
                } => {
                    let condition = frame.registers[*condition as usize].as_raw();
                    let is_number = matches!(condition.type_index, index::INT | index::BOOL);
                    if !is_number {
                        let broken = wrong_condition(condition.type_index);
                        return Err(self.locate(broken, function, at));
                    }
                    let holds = condition.int() != 0;
                    at = if holds { at + 1 } else { *otherwise as usize };
                }
            }
        }
    }

    /// Calls entry `callee` of the function table.
    #[inline]
    pub(super) fn call_index(&self, callee: usize, args: &[AnyView<'_>]) -> Result<Any, Fault> {
        match &self.callees[callee] {
            Callee::Packed(function) => Ok(function.call(args)?),
            Callee::Builtin(Builtin::Plain(body)) => body(args),
            Callee::Builtin(Builtin::OfMachine(body)) => body(self, args),
            Callee::Vm(function) => self.run(*function, args),
        }
    }

    /// A call with the observer and the instrument around it.
    #[cold]
    fn call_watched(
        &self,
        function: usize,
        instruction: usize,
        callee: usize,
        args: &[AnyView<'_>],
    ) -> Result<Any, Fault> {
        let (observer, instrument) = self.watchers();
        let name = self.name(callee);
        if let Some(instrument) = &instrument {
            let answer = self.tell(instrument, callee, name, true, &Any::none(), args)?;
            // Only the integer 1 means: do not run.
            if answer.type_index() == index::INT && answer.as_raw().int() == 1 {
                return Ok(Any::none());
            }
        }
        let started = Instant::now();
        let result = self.call_index(callee, args)?;
        let took = started.elapsed();
        if let Some(instrument) = &instrument {
            self.tell(instrument, callee, name, false, &result, args)?;
        }
        if let Some(observer) = &observer {
            observer(&Step {
                function: self.name(function),
                instruction,
                callee: name,
                args,
                started,
                took,
            });
        }
        Ok(result)
    }

    /// Calls the instrument: function, name, whether it is about to run, its result, its arguments.
    fn tell(
        &self,
        instrument: &Function,
        callee: usize,
        name: &str,
        before: bool,
        result: &Any,
        args: &[AnyView<'_>],
    ) -> Result<Any, Fault> {
        let name = crate::value::Str::from(name);
        let mut all = vec![
            self.functions[callee].view(),
            AnyView::from(&name),
            before.into(),
            result.view(),
        ];
        all.extend_from_slice(args);
        Ok(instrument.call(&all)?)
    }

    #[cold]
    fn locate(&self, fault: Fault, function: usize, instruction: usize) -> Fault {
        let text = self.loaded().executable().instruction_text(instruction);
        fault.at(self.name(function), instruction, &text)
    }

    pub(super) fn frames(&self) -> std::sync::MutexGuard<'_, Vec<Frame>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cold]
fn wrong_condition(type_index: i32) -> Fault {
    let key = crate::value::types::key_of(type_index);
    VM_21
        .refused(
            Kind::Type,
            format!("a condition is a bool or an integer, not `{key}`"),
        )
        .into()
}
