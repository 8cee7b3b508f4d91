//! Functions of a test server in addition to those of every server. With them, cases can send every kind of value in both directions.
//!
//! | function | takes | returns |
//! |---|---|---|
//! | `tvmspec.rpc.echo` | a value | the same value |
//! | `tvmspec.rpc.true` | | true |
//! | `tvmspec.rpc.text` | | a string of three bytes, the second of which is a NUL |
//! | `tvmspec.rpc.raise` | kind and message of an error | nothing: it raises the error |
//! | `tvmspec.rpc.adder` | an integer | a function that adds it to its argument |
//! | `tvmspec.rpc.array` | values | an array of them |
//! | `tvmspec.rpc.module` | | a module with a function `double` and no other |
//! | `tvmspec.rpc.counted` | an integer | a tensor of that many `float32`: 0, 1, 2 and so on |
//! | `tvmspec.rpc.constant` | | a read-only tensor of one `float32`, 1.5 |
//! | `tvmspec.rpc.fields` | a tensor | a description of it as text: element type, extents, bytes |
//! | `tvmspec.rpc.double` | a tensor of `float32` | nothing: it doubles the elements |
//! | `tvmspec.rpc.length` | an array | its number of values |
//! | `tvmspec.rpc.living` | | the number of functions of `adder` that exist |
//! | `tvmspec.rpc.calls` | | the number of its calls, including this one |
//!
//! The last two count only within their session.
//!
//! The functions of `function.call` that a server can have are also registered, as `tvmspec.function.<name>`.

use crate::conformance::function::ops::function as function_of;
use crate::device::byte_size;
use crate::function::{Error, ErrorKind, Function, Result, registry};
use crate::module::{Module, ModuleKind};
use crate::object::{Array, Tensor};
use crate::release::Release;
use crate::tensor::{Device, Dtype};
use crate::value::{Any, AnyView, DLTensor, Str, cast, dtype_to_text};
use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// Prefix of their names.
pub(in crate::conformance) const PREFIX: &str = "tvmspec.rpc.";

/// Prefix of the names of functions of `function.call` on a server.
pub(in crate::conformance) const CALLED: &str = "tvmspec.function.";

/// Registers the functions in this process, once.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let own = server_functions()
            .into_iter()
            .map(|(name, function)| (PREFIX, name, function));
        for (prefix, name, function) in own.chain(called_by_name()) {
            // A name that is already registered belongs to a user, whose function then fails the cases.
            drop(registry::register(
                &format!("{prefix}{name}"),
                function,
                false,
            ));
        }
    });
}

/// Returns the functions of `function.call`.
fn called_by_name() -> impl Iterator<Item = (&'static str, &'static str, Function)> {
    let typed = ["add", "concat", "twice", "maybe", "keep", "count", "fail"];
    let typed = typed
        .into_iter()
        .filter_map(|name| Some((name, function_of(name)?)));
    let packed = [
        (
            "first",
            Function::from_packed(|args| {
                Ok(args.first().map_or_else(Any::none, |first| first.to_any()))
            }),
        ),
        ("nothing", Function::from_packed(|_| Ok(Any::none()))),
    ];
    typed
        .chain(packed)
        .map(|(name, function)| (CALLED, name, function))
}

/// Returns the functions of the table above.
fn server_functions() -> [(&'static str, Function); 14] {
    [
        (
            "echo",
            Function::from_packed(|args| Ok(first_argument(args)?.to_any())),
        ),
        ("true", Function::from_packed(|_| Ok(true.into()))),
        ("text", Function::from_packed(|_| Ok("a\0b".into()))),
        ("raise", Function::from_typed(raise)),
        (
            "adder",
            Function::from_typed(|added: i64| Any::from(adder(added).into_object())),
        ),
        (
            "array",
            Function::from_packed(|args| {
                Ok(Array::from_iter(args.iter().map(|arg| arg.to_any())).into())
            }),
        ),
        (
            "module",
            Function::from_packed(|_| Ok(Module::new(Doubler).into())),
        ),
        ("counted", Function::from_typed(counted)),
        ("constant", Function::from_packed(|_| constant())),
        (
            "fields",
            Function::from_packed(|args| Ok(fields(tensor(first_argument(args)?)?)?.into())),
        ),
        (
            "double",
            Function::from_packed(|args| double(tensor(first_argument(args)?)?)),
        ),
        (
            "length",
            Function::from_typed(|array: Array| array.len() as i64),
        ),
        ("living", Function::from_packed(|_| Ok(LIVING.get().into()))),
        ("calls", Function::from_packed(|_| Ok(called().into()))),
    ]
}

/// Returns the first argument.
fn first_argument<'a, 'v>(args: &'a [AnyView<'v>]) -> Result<&'a AnyView<'v>> {
    args.first()
        .ok_or_else(|| Error::new(ErrorKind::Type, "one argument is needed"))
}

/// Raises an error with the client's kind and message: cases check how both come back (RPC-26, RPC-82).
fn raise(kind: Str, message: Str) -> Result<Any> {
    let (kind, message) = (kind.to_text(), message.to_text());
    Err(Error::new(ErrorKind::from(&*kind), message.as_bytes()))
}

// A session has its own thread, which drops the remaining functions of the session.
thread_local! {
    /// Number of functions of `adder` that exist.
    static LIVING: Cell<i64> = const { Cell::new(0) };
    /// Number of calls of `calls`.
    static CALLS: Cell<i64> = const { Cell::new(0) };
}

/// Counts a call. This shows a client that calls twice instead of once.
fn called() -> i64 {
    CALLS.set(CALLS.get() + 1);
    CALLS.get()
}

/// A value that is counted in `LIVING` until it is dropped.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        LIVING.set(LIVING.get() - 1);
    }
}

/// Creates a function that is counted until its last handle is freed (RPC-85).
fn adder(added: i64) -> Function {
    LIVING.set(LIVING.get() + 1);
    let counted = Counted;
    Function::from_packed(move |args| {
        let _ = &counted;
        Ok(i64::try_from(*first_argument(args)?)?
            .wrapping_add(added)
            .into())
    })
}

/// The module that `tvmspec.rpc.module` returns.
struct Doubler;

impl ModuleKind for Doubler {
    fn kind(&self) -> &str {
        "tvmspec.rpc"
    }

    fn function(&self, _module: &Module, name: &str) -> Result<Option<Function>> {
        Ok((name == "double").then(|| Function::from_typed(|value: i64| value.wrapping_mul(2))))
    }
}

/// Creates a tensor on the server, of at most 65,535 elements. Its content shows whether it was copied completely and in order.
fn counted(length: i64) -> Result<Any> {
    let length = u16::try_from(length).map_err(|_| Error::new(ErrorKind::Value, "too long"))?;
    let elements: Vec<f32> = (0..length).map(f32::from).collect();
    Ok(Tensor::from_slice(&elements, &[length.into()])?.into())
}

/// Element of the constant. It is in writable memory, so that a case sees whether a server writes to it.
static CONSTANT: AtomicU32 = AtomicU32::new(1.5_f32.to_bits());

/// Returns a read-only tensor (OBJ-12): RPC-87 requires servers to reject writes to it.
fn constant() -> Result<Any> {
    CONSTANT.store(1.5_f32.to_bits(), Ordering::Relaxed);
    let mut shape = [1];
    let dl = DLTensor {
        data: CONSTANT.as_ptr().cast(),
        device: Device::CPU,
        ndim: 1,
        dtype: Dtype::FLOAT32,
        shape: shape.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    // SAFETY: one extent, which is copied, over one element that lives as long as the process; nothing writes to a constant.
    Ok(unsafe { Tensor::over_constant(dl, Box::new(|| {})) }.into())
}

/// Returns the tensor that an argument describes.
fn tensor<'a>(view: &AnyView<'a>) -> Result<&'a DLTensor> {
    let tensor = cast::<*mut DLTensor>(*view)?;
    // SAFETY: an argument of this type points to a description that lives as long as the view.
    Ok(unsafe { &*tensor })
}

/// Returns the address of the first byte of a tensor on the CPU, and its size in bytes.
fn memory(tensor: &DLTensor) -> Result<(*mut u8, usize)> {
    let wrong = || Error::new(ErrorKind::Value, "a tensor on the CPU is needed");
    if tensor.device != Device::CPU {
        return Err(wrong());
    }
    // SAFETY: the argument of a call, whose extents are there for it.
    let shape = unsafe { tensor.shape() };
    let size = byte_size(shape, tensor.dtype, Release::LAST).ok_or_else(wrong)?;
    let offset = usize::try_from(tensor.byte_offset).map_err(|_| wrong())?;
    Ok((tensor.data.cast::<u8>().wrapping_add(offset), size))
}

/// Describes an argument as the function sees it: a wrong offset, type or shape changes the text.
fn fields(tensor: &DLTensor) -> Result<String> {
    let (start, size) = memory(tensor)?;
    let bytes = match size {
        0 => &[][..],
        // SAFETY: the tensor has as many bytes, and lives for the call.
        _ => unsafe { std::slice::from_raw_parts(start, size) },
    };
    // SAFETY: as in `memory`.
    let shape = unsafe { tensor.shape() };
    let shape: Vec<String> = shape.iter().map(i64::to_string).collect();
    let dtype = dtype_to_text(tensor.dtype)?;
    let bytes: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{dtype} [{}] {bytes}", shape.join(", ")))
}

/// Doubles the elements in place: the client must see the change (RPC-102).
fn double(tensor: &DLTensor) -> Result<Any> {
    let (start, size) = memory(tensor)?;
    for at in (0..size / 4).map(|at| at * 4) {
        let element = start.wrapping_add(at).cast::<f32>();
        // SAFETY: one of the elements of the tensor, which may lie at any address.
        let value = unsafe { element.read_unaligned() };
        // SAFETY: as above; the function may write to its argument.
        unsafe { element.write_unaligned(value * 2.0) };
    }
    Ok(Any::none())
}
