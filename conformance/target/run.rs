//! `target.run`: what generated code computes. It is built by the C compiler of the system, loaded and called.
//!
//! Text that a generator wrote is right where its results are: nothing else shows whether a number is cut to its type, or an argument checked.

use super::elements::{element, extent, numbers, usize_of};
use super::kernel;
use super::ops::compiled_for;
use crate::conformance::op::{Answer, OpError, data};
use crate::conformance::runtime::aligned::AlignedLine;
use crate::function::Function;
use crate::module::{self, Module};
use crate::rule::Findings;
use crate::target::{Generators, LoweredModule};
use crate::tensor::json::to_dtype;
use crate::value::index;
use crate::value::{Any, AnyView, DLDataType, DLDevice, DLTensor};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

/// What is in memory that a function is to fill: neither 0 nor a number that computations end in.
const UNTOUCHED: u8 = 0x55;

/// Generates, builds, loads, calls.
pub(super) fn run(args: &Value) -> Result<Answer, OpError> {
    let lowered = LoweredModule::read(&data(args)?)?;
    let target = compiled_for(args)?;
    let code = Generators::new().generate(&lowered, &target)?;
    let source = match (code.source(), code.kernels()) {
        (None, _) => return Err(unsupported("the code is not text")),
        (Some(source), []) => source.to_owned(),
        (Some(_), _) => kernel::host_text(&code),
    };
    let calls = args.get("calls").and_then(Value::as_array);
    let value = match results(&source, calls.map_or(&[], Vec::as_slice)) {
        Ok(results) => results.into(),
        // Text that is no C, or lacks a function that the module has, is wrong, and nothing that a generator may leave out.
        Err(OpError::Unsupported(why)) => json!({"failed": why}),
        Err(other) => return Err(other),
    };
    Ok(Answer::new(value, Findings::default()))
}

/// What the calls of a text of C return.
fn results(source: &str, calls: &[Value]) -> Result<Vec<Value>, OpError> {
    let folder = tempfile::tempdir().map_err(unsupported)?;
    let library = built(folder.path(), source)?;
    // SAFETY: the generator of this crate wrote the text, for functions that check their arguments (TGT-88).
    let module = unsafe { module::load(library) }?;
    let answers = calls.iter().map(|call| answer(&module, call));
    let answers = answers.collect::<Result<Vec<Value>, OpError>>()?;
    let undefined = module.require(COUNT)?.call(&[])?;
    match undefined.as_raw().int() {
        0 => Ok(answers),
        count => Err(unsupported(format!(
            "the code does {count} times what C leaves open"
        ))),
    }
}

/// What C leaves open is counted, and does not happen to be right (TGT-91): compilers call these functions in front of it.
///
/// Linking the real runtime of UBSan would print and go on, and a case would see the right number by chance. These have the names that
/// GCC and Clang call under `-fsanitize=undefined`, whatever version they are of.
const HANDLERS: &[&str] = &[
    "add_overflow",
    "sub_overflow",
    "mul_overflow",
    "negate_overflow",
    "divrem_overflow",
    "shift_out_of_bounds",
    "out_of_bounds",
    "type_mismatch_v1",
    "load_invalid_value",
    "pointer_overflow",
    "vla_bound_not_positive",
    "nonnull_arg",
    "invalid_builtin",
    "builtin_unreachable",
    "function_type_mismatch",
];

/// The name by which a library has the function that returns how often.
const COUNT: &str = "case_undefined";

/// The functions that count, and the one that returns the count, in both conventions.
///
/// Both conventions, since the release of the module decides by which the loader calls (MOD-03), and this text is the same for all.
fn counting() -> String {
    let mut text = String::from("static long case_count;\n");
    for handler in HANDLERS {
        text.push_str(&format!(
            "void __ubsan_handle_{handler}(void* at, void* a, void* b) {{ case_count += 1; }}\n"
        ));
    }
    text.push_str(&format!(
        "int {COUNT}(void* args, int* codes, int count, long* result, int* code, void* context) {{\n  \
           *result = case_count; *code = 0; return 0;\n}}\n\
         int __tvm_ffi_{COUNT}(void* self, void* args, int count, int* result) {{\n  \
           result[0] = 1; result[1] = 0; *(long*)(result + 2) = case_count; return 0;\n}}\n"
    ));
    text
}

/// The library that a text of C is, in this folder.
///
/// Without optimisation and without contraction of products and sums, so that one number is right on every machine (TGT-91 to TGT-93);
/// `char` is signed, as on x86-64. What counts is compiled apart, since the options of the text are not for it.
fn built(folder: &Path, source: &str) -> Result<PathBuf, OpError> {
    let library = folder.join("code.so");
    let mut objects = Vec::new();
    let texts = [
        ("code", source, &["-fsanitize=undefined"][..]),
        ("count", &counting(), &[]),
    ];
    for (name, text, options) in texts {
        let (file, object) = (
            folder.join(format!("{name}.c")),
            folder.join(format!("{name}.o")),
        );
        std::fs::write(&file, text).map_err(unsupported)?;
        let mut compiler = Command::new("cc");
        compiler.args([
            "-std=gnu11",
            "-c",
            "-fPIC",
            "-O0",
            "-ffp-contract=off",
            "-fsigned-char",
            "-w",
        ]);
        compile(compiler.args(options).arg("-o").args([&object, &file]))?;
        objects.push(object);
    }
    let mut linker = Command::new("cc");
    compile(
        linker
            .args(["-shared", "-o"])
            .arg(&library)
            .args(objects)
            .arg("-lm"),
    )?;
    Ok(library)
}

/// Runs the compiler, and shows the first line of what it has against the text.
fn compile(compiler: &mut Command) -> Result<(), OpError> {
    let built = compiler.output();
    // Without a compiler nothing is known of the code: that is no verdict about the generator.
    let built = built.map_err(|why| OpError::Skipped(format!("there is no `cc`: {why}")))?;
    if built.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&built.stderr);
    let first = errors.lines().find(|line| line.contains("error"));
    let first = first.unwrap_or("the compiler fails").to_owned();
    Err(unsupported(format!("the code is not C: {first}")))
}

/// What one call returns and leaves in the tensors without data, or its error.
///
/// Kind and message of an error are compared too: the function checks its arguments as the module states it (TGT-88).
fn answer(module: &Module, call: &Value) -> Result<Value, OpError> {
    let name = call.get("function").and_then(Value::as_str);
    let function: Function = module.require(name.unwrap_or_default())?;
    let forms = call.get("args").and_then(Value::as_array);
    let mut passed: Vec<RunArgument> = forms
        .into_iter()
        .flatten()
        .map(RunArgument::of)
        .collect::<Result<_, OpError>>()?;
    let views: Vec<AnyView<'_>> = passed.iter_mut().map(RunArgument::view).collect();
    let returned = match function.call(&views) {
        Ok(returned) => returned,
        Err(error) => return Ok(json!({"error": [error.kind().to_string(), error.message()]})),
    };
    let bits = call.get("bits").and_then(Value::as_u64);
    let outputs = passed.iter().filter_map(|argument| argument.output(bits));
    let mut answer = Map::from_iter([("outputs".to_owned(), outputs.collect())]);
    if !returned.is_none() {
        answer.insert("returned".to_owned(), returned_form(&returned));
    }
    Ok(answer.into())
}

/// A result that is no tensor.
///
/// A fraction is under `float`, as JSON writes 1.0 and 1 as one number and the type is part of what is compared.
fn returned_form(returned: &Any) -> Value {
    let raw = returned.as_raw();
    match raw.type_index {
        index::INT => raw.int().into(),
        index::BOOL => (raw.int() != 0).into(),
        index::FLOAT => json!({"float": f64::from_bits(raw.int().cast_unsigned())}),
        other => json!({"type": other}),
    }
}

/// An argument of a call.
enum RunArgument {
    Value(Any),
    Tensor(Box<RunTensor>),
}

/// A tensor in memory of its own.
struct RunTensor {
    memory: Vec<AlignedLine>,
    /// Bytes between the begin of the memory, which is aligned, and the data.
    shift: usize,
    /// Bytes of the data.
    size: usize,
    is_output: bool,
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    record: DLTensor,
}

impl RunArgument {
    /// Null, a truth value, a number, a text, `{"float": 1.5}` or `{"tensor": {...}}`.
    fn of(form: &Value) -> Result<RunArgument, OpError> {
        let fraction = form.get("float").and_then(Value::as_f64);
        Ok(match (form, form.get("tensor"), fraction) {
            (_, Some(tensor), _) => RunArgument::Tensor(Box::new(RunTensor::of(tensor)?)),
            (_, _, Some(fraction)) => RunArgument::Value(fraction.into()),
            (Value::Null, ..) => RunArgument::Value(Any::none()),
            (Value::Bool(truth), ..) => RunArgument::Value((*truth).into()),
            (Value::String(text), ..) => RunArgument::Value(text.as_str().into()),
            _ => match form.as_i64() {
                Some(number) => RunArgument::Value(number.into()),
                None => return Err(unsupported(format!("the argument {form}"))),
            },
        })
    }

    /// The argument, as long as it stays where it is.
    ///
    /// The record of a tensor points into it: a view is made when all arguments of the call are where they stay.
    fn view(&mut self) -> AnyView<'_> {
        match self {
            RunArgument::Value(value) => value.view(),
            RunArgument::Tensor(tensor) => {
                let record = tensor.described();
                // SAFETY: it describes memory, extents and strides of the tensor, which outlives the call.
                unsafe { AnyView::dltensor(record) }
            }
        }
    }

    /// What the call left in the memory of a tensor that had no data.
    fn output(&self, bits: Option<u64>) -> Option<Value> {
        match self {
            RunArgument::Tensor(tensor) if tensor.is_output => {
                Some(numbers(tensor.bytes(), tensor.record.dtype, bits))
            }
            _ => None,
        }
    }
}

impl RunTensor {
    /// `{"dtype", "shape", "strides", "device", "byte_offset", "shift", "values"}`: strides in elements, the others in bytes. Without `values`
    /// the function writes it, and what is in it before shows where it does not; with null for them it has no memory.
    fn of(form: &Value) -> Result<RunTensor, OpError> {
        let numbers = |name: &str| match form.get(name) {
            None => Ok(None),
            Some(list) => {
                let list = list.as_array();
                let list: Option<Vec<i64>> =
                    list.and_then(|list| list.iter().map(Value::as_i64).collect());
                let wrong = || unsupported(format!("`{name}` of {form}"));
                list.map(Some).ok_or_else(wrong)
            }
        };
        let named = form.get("dtype").unwrap_or(&Value::Null);
        let dtype = to_dtype(named)?;
        let dtype = DLDataType::from(dtype);
        let shape = numbers("shape")?.unwrap_or_default();
        let strides = numbers("strides")?;
        let wrong = |what: &str| unsupported(format!("{what} of the tensor {form}"));
        let number = |name: &str| match form.get(name) {
            None => Ok(0),
            Some(number) => {
                let number = number
                    .as_u64()
                    .and_then(|number| u32::try_from(number).ok());
                number.map(u64::from).ok_or_else(|| wrong(name))
            }
        };
        let device = match numbers("device")?.as_deref() {
            None => DLDevice {
                device_type: 1,
                device_id: 0,
            },
            Some([kind, id]) => DLDevice {
                device_type: i32::try_from(*kind).map_err(unsupported)?,
                device_id: i32::try_from(*id).map_err(unsupported)?,
            },
            Some(_) => return Err(wrong("`device`")),
        };
        let byte_offset = number("byte_offset")?;
        let (offset, shift) = (usize_of(byte_offset), usize_of(number("shift")?));
        let size = usize::from(dtype.bits).div_ceil(8) * usize::from(dtype.lanes);
        // What a function reads and writes is what the record states: the memory has all of it.
        let extent = extent(&shape, strides.as_deref()).and_then(|count| count.checked_mul(size));
        let extent = extent.filter(|extent| *extent <= 1 << 20);
        let extent = extent.ok_or_else(|| wrong("the extents"))?;
        let stated = form.get("values").and_then(Value::as_array);
        let mut bytes = vec![UNTOUCHED; offset];
        for number in stated.into_iter().flatten() {
            let element = element(number, dtype);
            bytes.extend_from_slice(&element.ok_or_else(|| wrong("an element"))?);
        }
        match stated {
            Some(_) if bytes.len() < offset + extent => return Err(wrong("too few elements")),
            Some(_) => {}
            None => bytes.resize(offset + extent, UNTOUCHED),
        }
        let has_address = form.get("values") != Some(&Value::Null);
        let mut shifted = vec![UNTOUCHED; shift];
        shifted.extend_from_slice(&bytes);
        // An empty tensor has an address, too.
        shifted.push(UNTOUCHED);
        let mut memory = AlignedLine::holding(&shifted);
        let data = if has_address {
            memory.as_mut_ptr().cast::<u8>().wrapping_add(shift).cast()
        } else {
            ptr::null_mut()
        };
        let record = DLTensor {
            data,
            device,
            ndim: i32::try_from(shape.len()).map_err(unsupported)?,
            dtype,
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            byte_offset,
        };
        Ok(RunTensor {
            memory,
            shift,
            size: bytes.len(),
            is_output: stated.is_none() && has_address,
            shape,
            strides,
            record,
        })
    }

    /// The record, which points to extents and steps where they are now: the tensor was moved since it was made.
    fn described(&mut self) -> &DLTensor {
        self.record.shape = self.shape.as_mut_ptr();
        self.record.strides = match &mut self.strides {
            Some(strides) => strides.as_mut_ptr(),
            None => ptr::null_mut(),
        };
        &self.record
    }

    /// The bytes from the shift on, those in front of the first element among them: a function that writes there has the wrong offset.
    fn bytes(&self) -> &[u8] {
        let begin = self.memory.as_ptr().cast::<u8>().wrapping_add(self.shift);
        // SAFETY: the lines hold this many bytes behind the shift.
        unsafe { std::slice::from_raw_parts(begin, self.size) }
    }
}

fn unsupported(why: impl ToString) -> OpError {
    OpError::Unsupported(why.to_string())
}
