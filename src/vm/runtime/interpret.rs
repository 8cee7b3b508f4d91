//! The four instructions.
//!
//! Running allocates no memory of its own: frames are kept from call to call.

use super::builtin::Builtin;
use super::code::{Callee, DecodedInstruction, DecodedOperand, NOWHERE};
use super::fault::Fault;
use super::machine::VirtualMachineImpl;
use crate::function::Function;
use crate::rule::Kind;
use crate::value::types::key_of;
use crate::value::{Any, AnyView, RawAny, Str, index};
use crate::vm::{VM_21, VM_25};
use std::cell::Cell;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One call, as an [`Observer`] sees it when it is over.
pub struct ObservedCall<'a> {
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
pub type Observer = Arc<dyn Fn(&ObservedCall<'_>) + Send + Sync>;

/// The registers and arguments of one running function.
#[derive(Default)]
pub(super) struct VmFrame {
    registers: Vec<Any>,
    arguments: Vec<RawAny>,
}

impl VirtualMachineImpl {
    /// Runs function `function` of the executable on `args` (VM-20 to VM-25).
    pub(super) fn run(&self, function: usize, args: &[AnyView<'_>]) -> Result<Any, Fault> {
        let frames = self.code.functions[function];
        if args.len() != frames.arguments as usize {
            return Err(self.wrong_count(function, args));
        }
        let _depth = CallDepth::enter(frames.registers)?;
        self.spend()?;
        let mut frame = self.frames().pop().unwrap_or_default();
        frame
            .registers
            .resize_with(frames.registers as usize, Any::none);
        for (register, argument) in frame.registers.iter_mut().zip(args) {
            *register = argument.to_any();
        }
        // Once for each function, not for each call: what begins to watch sees the functions that start later.
        let watched = self.is_watched();
        // Of an error the frame is used again as well: it is emptied either way.
        let result = self.follow(function, frames.start as usize, &mut frame, watched);
        frame.registers.clear();
        self.frames().push(frame);
        result
    }

    fn follow(
        &self,
        function: usize,
        start: usize,
        frame: &mut VmFrame,
        watched: bool,
    ) -> Result<Any, Fault> {
        let mut at = start;
        loop {
            // VM-01 holds that there is one; the end of the table is no place to fall over all the same.
            let Some(step) = self.code.steps.get(at) else {
                return Ok(Any::none());
            };
            match step {
                DecodedInstruction::Call {
                    destination,
                    callee,
                    first,
                    count,
                } => {
                    frame.arguments.clear();
                    let operands = &self.code.operands[*first as usize..][..*count as usize];
                    for operand in operands {
                        frame.arguments.push(match operand {
                            DecodedOperand::Register(register) => {
                                *frame.registers[*register as usize].as_raw()
                            }
                            DecodedOperand::Fixed(cell) => *cell,
                            DecodedOperand::Machine => *self.handle().as_raw(),
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
                        // VM-20: void drops the result, whose memory may go at once.
                        Ok(value) if *destination == NOWHERE => drop(value),
                        Ok(value) => frame.registers[*destination as usize] = value,
                        Err(fault) => return Err(self.locate(fault, function, at)),
                    }
                    at += 1;
                }
                DecodedInstruction::Return { register: NOWHERE } => return Ok(Any::none()),
                DecodedInstruction::Return { register } => {
                    return Ok(frame.registers[*register as usize].take());
                }
                DecodedInstruction::Goto { target } => {
                    self.spend()?;
                    at = *target as usize;
                }
                DecodedInstruction::If {
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
            // VM-66: only the integer 1 leaves the call out; true does not.
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
            observer(&ObservedCall {
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
        let name = Str::from(name);
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

    pub(super) fn frames(&self) -> MutexGuard<'_, Vec<VmFrame>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cold]
fn wrong_condition(type_index: i32) -> Fault {
    let key = key_of(type_index);
    VM_21
        .refused(
            Kind::Type,
            format!("a condition is a bool or an integer, not `{key}`"),
        )
        .into()
}

/// How deep functions of a VM may call each other on one thread (VM-25). In releases the stack overflows, which ends the process.
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
struct CallDepth(Running);

impl CallDepth {
    fn enter(registers: u32) -> Result<CallDepth, Fault> {
        let before = RUNNING.get();
        if before.functions >= DEEPEST {
            let message = format!("functions of the VM call each other more than {DEEPEST} deep");
            return Err(VM_25.refused(Kind::Limit, message).into());
        }
        // VM-25: not the outermost, which costs once what its executable says; what recurses would cost that a thousand times.
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
        Ok(CallDepth(before))
    }
}

impl Drop for CallDepth {
    fn drop(&mut self) {
        RUNNING.set(self.0);
    }
}
