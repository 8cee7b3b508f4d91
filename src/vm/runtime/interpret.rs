//! The interpreter of the four instructions.
//!
//! A run allocates no memory for frames, because calls reuse them.

use super::builtin::Builtin;
use super::code::{Callee, DecodedInstruction, DecodedOperand, NOWHERE};
use super::error::located;
use super::frame::{CallDepth, VmFrame};
use super::machine::VirtualMachineImpl;
use super::machine_interface::CallingMachine;
use super::observer::ObservedCall;
use crate::function::{Error, Function};
use crate::rule::Kind;
use crate::value::types::key_of;
use crate::value::{Any, AnyView, Str, index};
use crate::vm::VM_21;
use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

impl VirtualMachineImpl {
    /// Runs function `function` of the executable on `args` (VM-20 to VM-25).
    pub(super) fn run_function(&self, function: usize, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let frames = self.code.functions[function];
        // VM-60: VM-03 has counted only the operands of instructions. A closure and a call from outside may pass any number.
        if args.len() != frames.arguments as usize {
            return Err(self.wrong_count(function, args));
        }
        // VM-25: bound to a name, because `_` would end the count in this line.
        let _depth = CallDepth::enter(frames.registers)?;
        self.spend()?;
        // The lock ends with this line, because the function calls others, and other threads run on the same machine.
        let mut frame = self.frames().pop().unwrap_or_default();
        frame
            .registers
            .resize_with(frames.registers as usize, Any::none);
        // VM-24: the arguments, then None. The old contents of the frame are gone.
        for (register, argument) in frame.registers.iter_mut().zip(args) {
            *register = argument.to_any();
        }
        // Checked once for each function, not for each call. A new watcher sees the functions that start later.
        let watched = self.is_watched();
        // The frame is reused even after an error, because it is emptied in both cases.
        let result = match &self.callees[function] {
            Callee::Compiled(_, compiled) => self.run_compiled(compiled, &mut frame),
            _ => self.follow(function, frames.start as usize, &mut frame, watched),
        };
        // The values of the registers are released when the call ends, not when the frame is reused.
        frame.registers.clear();
        self.frames().push(frame);
        result
    }

    /// Executes the instructions of `function` from `start` on, until one returns (VM-20 to VM-23).
    fn follow(
        &self,
        function: usize,
        start: usize,
        frame: &mut VmFrame,
        watched: bool,
    ) -> Result<Any, Error> {
        // A local variable. Upstream has one program counter and one stack of frames per machine, which two threads cannot share.
        let mut at = start;
        loop {
            // VM-01 guarantees that there is an instruction; the end of the table must not panic in any case.
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
                    // SAFETY: every cell is borrowed from a register of this frame, which does not change during the call, or from the
                    // machine. The list is not used before the call has ended.
                    let args =
                        unsafe { AnyView::slice(frame.arguments.as_ptr(), frame.arguments.len()) };
                    let callee = *callee as usize;
                    // VM-66: every call instruction is watched, including calls of builtins and VM functions.
                    let result = if watched {
                        self.call_watched(function, at, callee, args)
                    } else {
                        self.call_index(callee, args)
                    };
                    match result {
                        // VM-20: a void destination drops the result and frees its memory at once.
                        Ok(value) if *destination == NOWHERE => drop(value),
                        Ok(value) => frame.registers[*destination as usize] = value,
                        Err(fault) => return Err(self.locate(fault, function, at)),
                    }
                    at += 1;
                }
                DecodedInstruction::Return { register: NOWHERE } => return Ok(Any::none()),
                DecodedInstruction::Return { register } => {
                    // VM-23: the frame no longer needs the register, so the value is moved out.
                    return Ok(frame.registers[*register as usize].take());
                }
                DecodedInstruction::Goto { target } => {
                    // Only jumps and calls of functions count: code without either always ends.
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
                    // VM-21: integers and bools share the cell; every integer except 0 is true.
                    let holds = condition.int() != 0;
                    at = if holds { at + 1 } else { *otherwise as usize };
                }
            }
        }
    }

    /// Calls entry `callee` of the function table.
    #[inline]
    pub(super) fn call_index(&self, callee: usize, args: &[AnyView<'_>]) -> Result<Any, Error> {
        match &self.callees[callee] {
            Callee::Packed(function) => Ok(function.call_packed(args)?),
            Callee::Builtin(Builtin::Plain(body) | Builtin::InPlace { trusted: body, .. }) => {
                body(args)
            }
            Callee::Builtin(Builtin::OfMachine(body)) => body(self, args),
            Callee::Vm(function) | Callee::Compiled(function, _) => {
                self.run_function(*function, args)
            }
        }
    }

    /// Makes a call with the observer and the instrument around it.
    ///
    /// Both are cloned first, so that the callee may change them. A call that fails is reported to neither of them.
    #[cold]
    fn call_watched(
        &self,
        function: usize,
        instruction: usize,
        callee: usize,
        args: &[AnyView<'_>],
    ) -> Result<Any, Error> {
        let (observer, instrument) = self.watchers();
        let name = self.name(callee);
        if let Some(instrument) = &instrument {
            let answer = self.notify(instrument, callee, name, true, &Any::none(), args)?;
            // VM-66: a boolean is converted to an integer, another value is ignored.
            if matches!(i64::try_from(answer.view()), Ok(1)) {
                return Ok(Any::none());
            }
        }
        // Started after the instrument, so that the time does not include it.
        let started = Instant::now();
        let result = self.call_index(callee, args)?;
        let took = started.elapsed();
        if let Some(instrument) = &instrument {
            self.notify(instrument, callee, name, false, &result, args)?;
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

    /// Calls the instrument with the function, its name, a flag for "before the call", and its result. The arguments of the call follow
    /// (VM-66).
    fn notify(
        &self,
        instrument: &Function,
        callee: usize,
        name: &str,
        before: bool,
        result: &Any,
        args: &[AnyView<'_>],
    ) -> Result<Any, Error> {
        let name = Str::from(name);
        let mut all = vec![
            self.functions[callee].view(),
            AnyView::from(&name),
            before.into(),
            result.view(),
        ];
        all.extend_from_slice(args);
        instrument.call_packed(&all)
    }

    /// Adds the failed instruction to `fault`.
    #[cold]
    fn locate(&self, fault: Error, function: usize, instruction: usize) -> Error {
        let text = self.loaded().executable().instruction_text(instruction);
        located(fault, self.name(function), instruction, &text)
    }

    /// Locks the unused frames, whose vectors keep their memory.
    pub(super) fn frames(&self) -> MutexGuard<'_, Vec<VmFrame>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates the error of VM-21 for a condition of another type.
#[cold]
fn wrong_condition(type_index: i32) -> Error {
    let key = key_of(type_index);
    VM_21
        .rejected(
            Kind::Type,
            format!("a condition is a bool or an integer, not `{key}`"),
        )
        .into()
}
