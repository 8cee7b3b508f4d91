//! Runs executables: any bytes that read as one, and generated programs that reach the builtins.
//!
//! Checks, under AddressSanitizer: nothing panics, and the result of a function can be read whole. `VirtualMachine::limit` bounds jumps and
//! calls. Memory comes from a device with a limit of 8 MiB.
#![no_main]

#[path = "bounded/mod.rs"]
mod bounded;

use arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use tvmspec::device::Device;
use tvmspec::object::{Array, Shape, Tensor, extents_of, sequence_of};
use tvmspec::payload::relax_vm::{self, RelaxConstant, RelaxFunction, FunctionKind, VM_REGISTER, VOID_REGISTER};
use tvmspec::release::Layout;
use tvmspec::tensor::{Dtype, Sizing, TensorRecord};
use tvmspec::value::{Any, cast, index};
use tvmspec::vm::{LoadedExecutable, VirtualMachine};
use tvmspec::wire::Writer;

fuzz_target!(|data: &[u8]| {
    bounded::install();
    let Some((selector, bytes)) = data.split_first() else { return };
    let layout = Layout::ALL[usize::from(selector & 3)];
    let mut choices = Unstructured::new(bytes);
    if selector & 4 == 0 {
        // The arguments come from the end of the bytes, after the fields of the executable.
        let mut tail = Unstructured::new(bytes.get(bytes.len().saturating_sub(16)..).unwrap_or_default());
        run(bytes, layout, &mut tail);
    } else if let Ok(program) = Program::invent(&mut choices) {
        let mut out = Writer::new();
        if program.write(Layout::V0_22, &mut out).is_ok() {
            run(&out.into_bytes(), Layout::V0_22, &mut choices);
        }
    }
});

fn run(bytes: &[u8], layout: Layout, choices: &mut Unstructured<'_>) {
    let Ok(loaded) = LoadedExecutable::from_bytes(bytes, layout) else { return };
    let Ok(machine) = VirtualMachine::new(Arc::new(loaded), Vec::new(), &[Device::CPU]) else { return };
    let functions: Vec<String> = machine.functions().into_iter().map(str::to_owned).collect();
    for name in functions.iter().take(4) {
        let code = machine.loaded().executable().code();
        let found = code.functions.iter().rev().find(|function| function.name == name.as_str());
        let count = found.map_or(0, |function| function.num_args);
        let arguments: Vec<Any> = (0..count.min(8)).map(|_| argument(choices).unwrap_or_default()).collect();
        machine.limit(Some(500));
        if let Ok(value) = machine.call(name, &*arguments) {
            read(&value, &mut 1000);
        }
    }
}

/// Reads every byte reachable from the value.
fn read(value: &Any, left: &mut u32) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    if let Some(items) = sequence_of(value.view()) {
        items.iter().for_each(|item| read(item, left));
    } else if let Some(extents) = extents_of(value.view()) {
        std::hint::black_box(extents.iter().fold(0, |all, extent| all ^ extent));
    } else if value.type_index() == index::TENSOR
        && let Ok(tensor) = cast::<Tensor>(value.view())
        && let Ok(bytes) = tensor.to_bytes()
    {
        std::hint::black_box(bytes.iter().fold(0, |all, byte| all ^ byte));
    }
}

fn argument(from: &mut Unstructured<'_>) -> Result<Any> {
    Ok(match from.int_in_range(0..=6)? {
        0 => i64::from(from.arbitrary::<i8>()?).into(),
        1 => from.arbitrary::<bool>()?.into(),
        2 => Shape::new(&extents(from)?).into(),
        3 => "text".into(),
        4 => Array::new([Any::from(1_i64), Any::none()]).into(),
        5 => {
            let shape: Vec<i64> = extents(from)?.iter().map(|extent| extent.clamp(&0, &9)).copied().collect();
            let dtype = *from.choose(&DTYPES)?;
            let made = is_small(dtype, &shape).then(|| Tensor::empty(&shape, dtype));
            match made {
                Some(Ok(tensor)) => tensor.into(),
                _ => Any::none(),
            }
        }
        _ => Any::none(),
    })
}

/// Returns whether a tensor of this type and shape is small enough for an argument. The memory limit of the device does not cover
/// arguments. The limit here is 4 MiB, enough for one element of the largest type.
fn is_small(dtype: Dtype, shape: &[i64]) -> bool {
    let bits = u64::from(dtype.bits) * u64::from(dtype.lanes);
    shape.iter().fold(bits, |all, extent| all.saturating_mul(extent.unsigned_abs())) <= 8 * (4 << 20)
}

const fn dtype(code: u8, bits: u8, lanes: u16) -> Dtype {
    Dtype { code, bits, lanes }
}

const DTYPES: [Dtype; 12] = [
    dtype(2, 32, 1), dtype(0, 64, 1), dtype(0, 32, 1), dtype(6, 8, 1), dtype(1, 1, 1), dtype(0, 4, 1), dtype(2, 32, 16),
    dtype(17, 4, 2), dtype(0, 8, 0), dtype(0, 16, 1), dtype(3, 64, 1), dtype(0, 255, 65535),
];

fn extents(from: &mut Unstructured<'_>) -> Result<Vec<i64>> {
    let mut extents = Vec::new();
    for _ in 0..from.int_in_range(0..=4)? {
        extents.push(match from.int_in_range(0..=9)? {
            9 => *from.choose(&[-1, 0, 1 << 31, 1 << 62, i64::MAX, i64::MIN])?,
            _ => from.int_in_range(0..=5)?,
        });
    }
    Ok(extents)
}

/// A type taken or returned by a builtin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What { Machine, Any, Int, Code, Shape, Dtype, Text, Heap, Storage, Tensor, Tuple, Closure, Callee, Rest }
use What::*;

const BUILTINS: &[(&str, &[What], What)] = &[
    ("alloc_shape_heap", &[Machine, Int], Heap),
    ("alloc_storage", &[Machine, Shape, Int, Dtype, Text], Storage),
    ("alloc_tensor", &[Storage, Int, Shape, Dtype], Tensor),
    ("call_tir_dyn", &[Callee, Rest], Any),
    ("check_func_info", &[Closure, Text], Any),
    ("check_prim_value_info", &[Int, Dtype, Text], Any),
    ("check_shape_info", &[Shape, Int, Text], Any),
    ("check_string_info", &[Text, Text], Any),
    ("check_tensor_info", &[Tensor, Int, Dtype, Text], Any),
    ("check_tuple_info", &[Tuple, Int, Text], Any),
    ("copy", &[Any], Any),
    ("ensure_zero_offset", &[Tensor], Tensor),
    ("invoke_closure", &[Machine, Closure, Rest], Any),
    ("make_closure", &[Callee, Rest], Closure),
    ("make_prim_value", &[Heap, Code, Int], Int),
    ("make_shape", &[Heap, Code, Code, Int, Code, Int], Shape),
    ("make_tuple", &[Any, Any, Any], Tuple),
    ("match_prim_value", &[Int, Heap, Code, Int, Text], Any),
    ("match_shape", &[Shape, Heap, Code, Code, Int, Code, Int, Text], Any),
    ("match_shape", &[Tensor, Heap, Code, Code, Int, Code, Int, Text], Any),
    ("memory_manager.clear", &[], Any),
    ("null_value", &[], Any),
    ("read_if_cond", &[Tensor], Int),
    ("reshape", &[Tensor, Shape], Tensor),
    ("shape_of", &[Tensor], Shape),
    ("tensor_to_shape", &[Tensor], Shape),
    ("to_device", &[Tensor, Code, Code], Tensor),
    ("tuple_getitem", &[Tuple, Int], Any),
    ("tuple_reset_item", &[Tuple, Int], Any),
];

/// A program under construction.
struct Program {
    functions: Vec<RelaxFunction<'static>>,
    constants: Vec<RelaxConstant<'static>>,
    kinds: Vec<What>,
    offsets: Vec<u64>,
    words: Vec<u64>,
}

impl Program {
    fn invent(from: &mut Unstructured<'_>) -> Result<relax_vm::RelaxExecutable<'static>> {
        let mut program =
            Program { functions: Vec::new(), constants: Vec::new(), kinds: Vec::new(), offsets: Vec::new(), words: Vec::new() };
        for _ in 0..from.int_in_range(2..=9)? {
            program.invent_constant(from)?;
        }
        let count = from.int_in_range(1..=3)?;
        let mut signatures = Vec::new();
        for number in 0..count {
            let args = from.int_in_range(0..=3)?;
            signatures.push(args);
            program.functions.push(RelaxFunction {
                kind: FunctionKind::Vm,
                name: format!("f{number}").into(),
                start: 0,
                end: 0,
                num_args: args,
                registers: args + from.int_in_range(1..=6)?,
                params: Vec::new(),
            });
        }
        for (name, ..) in BUILTINS {
            program.functions.push(RelaxFunction {
                kind: FunctionKind::Packed,
                name: format!("vm.builtin.{name}").into(),
                start: 0,
                end: 0,
                num_args: -2,
                registers: 0,
                params: Vec::new(),
            });
        }
        for number in 0..signatures.len() {
            program.invent_code(from, number, &signatures)?;
        }
        Ok(relax_vm::RelaxExecutable {
            functions: program.functions,
            memory_scopes: Some(Vec::new()),
            constants: program.constants,
            offsets: program.offsets.as_slice().into(),
            words: program.words.as_slice().into(),
        })
    }

    fn invent_constant(&mut self, from: &mut Unstructured<'_>) -> Result<()> {
        let (constant, kind) = match from.int_in_range(0..=9)? {
            0..=2 => (RelaxConstant::Shape(extents(from)?), Shape),
            3 | 4 => (RelaxConstant::Dtype(*from.choose(&DTYPES)?), Dtype),
            5 => (RelaxConstant::Text("global".into()), Text),
            6 => (RelaxConstant::Int(from.arbitrary()?), Int),
            _ => {
                let dtype = *from.choose(&DTYPES)?;
                let shape: Vec<i64> = extents(from)?.into_iter().map(|extent| extent.clamp(0, 5)).collect();
                let bytes = Sizing::V0_7.data_bytes(dtype, &shape).and_then(|bytes| usize::try_from(bytes).ok());
                let record = TensorRecord::new(dtype, &shape, vec![3; bytes.unwrap_or(0)], Sizing::V0_7);
                match record {
                    Ok(record) => (RelaxConstant::Tensor(record), Tensor),
                    Err(_) => (RelaxConstant::Float(0.5), Any),
                }
            }
        };
        self.constants.push(constant);
        self.kinds.push(kind);
        Ok(())
    }

    fn invent_code(&mut self, from: &mut Unstructured<'_>, number: usize, signatures: &[i64]) -> Result<()> {
        let registers = self.functions[number].registers;
        let start = self.offsets.len();
        let steps = from.int_in_range(1..=12)?;
        let mut held = vec![Any; usize::try_from(registers).unwrap_or_default()];
        for step in 0..steps {
            self.offsets.push(self.words.len() as u64);
            let left = steps - step;
            match from.int_in_range(0..=15)? {
                0 => {
                    let forward = from.int_in_range(-(i64::from(step))..=i64::from(left))?;
                    self.words.extend([3, forward.cast_unsigned()]);
                }
                1 if left > 1 => {
                    let register = from.int_in_range(0..=registers - 1)?;
                    self.words.extend([4, register.cast_unsigned(), from.int_in_range(2..=left as u64)?]);
                }
                2 => {
                    let callee = from.choose_index(signatures.len())?;
                    let operands = (0..signatures[callee]).map(|_| self.operand(from, Any, &held)).collect::<Result<_>>()?;
                    self.call(from, callee as u64, operands, Any, &mut held)?;
                }
                _ => {
                    let at = from.choose_index(BUILTINS.len())?;
                    let (_, takes, returns) = BUILTINS[at];
                    let mut operands = Vec::new();
                    for what in takes {
                        let count = if *what == Rest { from.int_in_range(0..=3)? } else { 1 };
                        for _ in 0..count {
                            operands.push(self.operand(from, *what, &held)?);
                        }
                    }
                    self.call(from, (signatures.len() + at) as u64, operands, returns, &mut held)?;
                }
            }
        }
        self.offsets.push(self.words.len() as u64);
        self.words.extend([2, from.int_in_range(0..=registers - 1)?.cast_unsigned()]);
        self.functions[number].start = start as i64;
        self.functions[number].end = self.offsets.len() as i64;
        Ok(())
    }

    fn call(&mut self, from: &mut Unstructured<'_>, callee: u64, operands: Vec<u64>, returns: What, held: &mut [What]) -> Result<()> {
        let destination = from.choose_index(held.len() + 1)?;
        self.words.extend([1, destination as u64, callee, operands.len() as u64]);
        let at = self.words.len() - 3;
        match held.get_mut(destination) {
            Some(slot) => *slot = returns,
            None => self.words[at] = VOID_REGISTER.cast_unsigned(),
        }
        self.words.extend(operands);
        Ok(())
    }

    /// Chooses an operand: mostly of the wanted type, sometimes any.
    fn operand(&self, from: &mut Unstructured<'_>, wanted: What, held: &[What]) -> Result<u64> {
        let word = |kind: u64, value: i64| kind << 56 | value.cast_unsigned() & ((1 << 56) - 1);
        let wanted = if from.ratio(1, 12)? { Any } else { wanted };
        match wanted {
            Machine => return Ok(word(0, VM_REGISTER)),
            Code => return Ok(word(1, from.int_in_range(0..=3)?)),
            Int => {
                let edges = [-1, 1 << 40, -(1 << 55), 4096, 64];
                let number = if from.ratio(1, 6)? { *from.choose(&edges)? } else { from.int_in_range(0..=9)? };
                return Ok(word(1, number));
            }
            Callee => return Ok(word(3, from.choose_index(self.functions.len())? as i64)),
            _ => {}
        }
        let fits = |kind: &What| *kind == wanted || matches!(wanted, Any | Rest);
        let mut all: Vec<u64> = Vec::new();
        all.extend((0..).zip(held).filter(|(_, kind)| fits(kind)).map(|(at, _)| word(0, at)));
        all.extend((0..).zip(&self.kinds).filter(|(_, kind)| fits(kind)).map(|(at, _)| word(2, at)));
        if all.is_empty() || matches!(wanted, Any | Rest) {
            all.extend([word(0, VOID_REGISTER), word(1, 1), word(3, 0)]);
            all.extend((0..held.len() as i64).map(|at| word(0, at)));
        }
        Ok(*from.choose(&all)?)
    }
}
