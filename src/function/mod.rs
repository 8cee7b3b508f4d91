//! Functions: the calling convention, errors across it, typed functions, and the registry of names.
//!
//! | bytes   | field                                                     | rule   |
//! |---------|-----------------------------------------------------------|--------|
//! | 24..32  | `safe_call(self, args, count, result) -> 0 or -1`         | FUN-01 |
//! | 32..40  | call with exceptions, only for C++; null in this crate     | FUN-03 |
//! | 40..    | captured data of the function                             |        |
//!
//! ```
//! use tvmspec::function::{Error, Function, registry};
//!
//! registry::register("example.add", Function::from_typed(|a: i64, b: f64| a as f64 + b), false)?;
//! let add = registry::require("example.add")?;
//! assert_eq!(add.call_as::<f64>((2, 0.5))?, 2.5);
//! assert_eq!(add.call(()).unwrap_err().kind(), "TypeError");
//! # Ok::<(), Error>(())
//! ```

mod arguments;
mod body;
mod error;
mod error_kind;
mod error_object;
pub(crate) mod frontend;
mod guard;
pub(crate) mod legacy;
mod parameter;
mod raw_names;
pub mod registry;
mod typed;

crate::rule::chapter_rules!("function");
pub(crate) use rules::*;

pub use arguments::IntoArgs;
pub(crate) use body::Code;
use body::{External, Plain, call_external, call_plain};
pub use error::Error;
#[cfg(feature = "suite")]
pub(crate) use error::take_broken;
pub(crate) use error::{set_raised, take_raised};
pub use error_kind::ErrorKind;
#[cfg(feature = "suite")]
pub(crate) use error_object::ErrorCell;
use guard::guard;
pub(crate) use guard::{catch_panic, guard_code, take_call_error};
pub(crate) use parameter::borrowed;
pub(crate) use parameter::{BorrowCondition, Borrowing, ResultSchema};
pub use parameter::{CallResult, Param, Parameter};
pub(crate) use typed::signature_json;
pub use typed::{Signature, Typed, TypedFn};

use crate::rule::Violation;
use crate::value::header::{Header, Ref, own_object, static_object};
use crate::value::{Any, AnyView, RawAny, Schema, index};
use std::ffi::c_void;

/// The convention of a call over the C ABI. It returns 0 and a result, or -1 and a raised error, or -2 if the frontend holds the error.
pub type SafeCall = unsafe extern "C-unwind" fn(
    this: *mut c_void,
    args: *const RawAny,
    count: i32,
    result: *mut RawAny,
) -> i32;

/// The public part of a function object.
#[repr(C)]
pub struct FunctionObj {
    header: Header,
    /// The function to call.
    pub(crate) safe_call: SafeCall,
    /// The function for C++ callers; null in this crate.
    pub(crate) cpp_call: *mut c_void,
}

debug_fields!(FunctionObj: header);

const _: () = assert!(size_of::<FunctionObj>() == 40);

static_object!(FunctionObj, index::FUNCTION);

impl FunctionObj {
    /// Creates the public part of a function of this crate. The C++ function is null, because it would have to throw exceptions (FUN-03).
    fn new(safe_call: SafeCall) -> FunctionObj {
        FunctionObj {
            header: Header::placeholder(),
            safe_call,
            cpp_call: std::ptr::null_mut(),
        }
    }
}

// SAFETY: the two pointers never change after the object is created.
unsafe impl Send for FunctionObj {}
// SAFETY: the two pointers never change after the object is created.
unsafe impl Sync for FunctionObj {}

/// A function of any origin: a Rust closure, a compiled kernel, a callback of another language.
#[derive(Clone)]
#[repr(transparent)]
pub struct Function(Ref<FunctionObj>);

/// The result of a call.
pub type Result<T = Any> = std::result::Result<T, Error>;

/// A function object with captured data after the public part.
#[repr(C)]
struct Closure<F: 'static> {
    public: FunctionObj,
    body: F,
}

// SAFETY: `#[repr(C)]`, `public` first; only `call_closure` accesses the body.
own_object!(unsafe Closure<F>, index::FUNCTION, F);

impl Function {
    /// Creates a function from a closure over borrowed arguments. A panic becomes an error (FUN-07).
    pub fn from_packed<F>(body: F) -> Function
    where
        F: Fn(&[AnyView<'_>]) -> Result + Send + Sync + 'static,
    {
        let object = Ref::new(Closure {
            public: FunctionObj::new(call_closure::<F>),
            body,
        });
        // SAFETY: a closure starts with the public part, and the reference moves.
        Function(unsafe { Ref::from_raw(object.into_object().into_raw()) })
    }

    /// Creates a function from a Rust function or closure with up to eight typed parameters:
    ///
    /// ```
    /// # use tvmspec::function::Function;
    /// let add = Function::from_typed(|a: i64, b: f64| a as f64 + b);
    /// assert_eq!(add.call_as::<f64>((1, 0.5)).unwrap(), 1.5);
    /// ```
    pub fn from_typed<P, F: TypedFn<P>>(body: F) -> Function
    where
        P: 'static,
    {
        Function::named(None, body)
    }

    /// Like [`Function::from_typed`], with a name for error messages. Produces less code: all functions without captures, such as builtins,
    /// share one entry point, which costs about 25 instructions per call.
    pub fn named<P: 'static, F: TypedFn<P>>(name: Option<&'static str>, body: F) -> Function {
        let made = const {
            match (size_of::<F>(), F::SIGNATURE.may_convert()) {
                (0, _) => Function::from_captureless::<P, F>,
                (_, true) => Function::from_converting::<P, F>,
                (_, false) => Function::reading::<P, F> as fn(Option<&'static str>, F) -> Function,
            }
        };
        made(name, body)
    }

    /// Does the work of [`Function::named`] for a body of size 0.
    fn from_captureless<P, F: TypedFn<P>>(name: Option<&'static str>, body: F) -> Function {
        Function::from_code(name, Code::from_body(body))
    }

    /// Does the work of [`Function::named`] if arguments may have to be converted before the body borrows them.
    fn from_converting<P, F: TypedFn<P>>(name: Option<&'static str>, body: F) -> Function {
        Function::from_packed(move |args| {
            F::SIGNATURE.call_converted(name, args, |args| body.invoke(name, args))
        })
    }

    /// Does the work of [`Function::named`] if the body converts each argument when it reads it.
    fn reading<P, F: TypedFn<P>>(name: Option<&'static str>, body: F) -> Function {
        Function::from_packed(move |args| body.invoke(name, args))
    }

    /// Creates a function from code without captures. `name` is for error messages (FUN-08).
    pub(crate) fn from_code(name: Option<&'static str>, code: Code) -> Function {
        let object = Ref::new(Plain {
            public: FunctionObj::new(call_plain),
            name,
            code,
        });
        // SAFETY: a plain function starts with the public part, and the reference moves.
        Function(unsafe { Ref::from_raw(object.into_object().into_raw()) })
    }

    /// Wraps a C function, its context, and the context's destructor. Without context and destructor, the function object *is* the C
    /// function. A call then jumps directly to it with the object as context, as in the reference implementation.
    ///
    /// # Safety
    /// From any thread, `call` follows the convention for `context` until `finish` is called, which happens at most once.
    pub(crate) unsafe fn from_c(
        // Passed to the callee instead of its object.
        context: *mut c_void,
        call: SafeCall,
        finish: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    ) -> Function {
        // As in the reference, so that the callee gets its own object. The function `itself` of the suite checks that.
        if context.is_null() && finish.is_none() {
            return Function(Ref::new(FunctionObj::new(call)));
        }
        let object = Ref::new(External {
            public: FunctionObj::new(call_external),
            context,
            call,
            finish,
        });
        // SAFETY: an external function starts with the public part, and the reference moves.
        Function(unsafe { Ref::from_raw(object.into_object().into_raw()) })
    }

    /// Calls the function. The arguments are a tuple, an array or a slice of values: `f.call((x, "text", &tensor))`, `f.call(())`.
    ///
    /// This is safe even for a function of a loaded library. The code that loads it guarantees the contract of
    /// [`module::load`](crate::module::load), which covers every call of its functions. That page also states which releases check
    /// which arguments. [`Function::call_tensors`] excludes the most dangerous mistake.
    ///
    /// # Errors
    ///
    /// Returns the error that the function raises, or a ValueError for more arguments than an `i32` can count (FUN-01).
    #[inline]
    pub fn call(&self, args: impl IntoArgs) -> Result {
        args.with_views(|views| self.call_packed(views))
    }

    /// Calls the function, and converts the result to `T`. The conversion is lossless: an integer that does not fit into `T` is an
    /// error.
    ///
    /// ```
    /// # use tvmspec::function::Function;
    /// let half = Function::from_typed(|x: f64| x / 2.0);
    /// assert_eq!(half.call_as::<f64>((3,))?, 1.5);
    /// assert_eq!(half.call_as::<String>((3,)).unwrap_err().kind(), "TypeError");
    /// # Ok::<(), tvmspec::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Function::call`], and those of [`cast`](crate::value::cast) for a result of another type. Returns VAL-07
    /// of kind limit for a number that does not fit.
    #[inline]
    pub fn call_as<T: TryFrom<Any, Error = Violation>>(&self, args: impl IntoArgs) -> Result<T> {
        Ok(self.call(args)?.try_into()?)
    }

    /// Calls the function with a slice of borrowed values. This is the low level of [`Function::call`]: it neither allocates nor counts
    /// references.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Function::call`].
    #[inline]
    pub fn call_packed(&self, args: &[AnyView<'_>]) -> Result {
        // The convention counts arguments in an i32 (FUN-01), so more would arrive as another number.
        let Ok(count) = i32::try_from(args.len()) else {
            return Err(too_many(args.len()));
        };
        // The cell for the result holds no object, so a failed call leaves nothing to release (FUN-02).
        let mut result = RawAny::NONE;
        // SAFETY: the object is a live function, which follows the convention (FUN-01) for itself; `args` is `count` cells
        // that live for the call, `result` holds None.
        let code = unsafe {
            (self.0.safe_call)(
                self.0.as_ptr().cast(),
                args.as_ptr().cast(),
                count,
                &mut result,
            )
        };
        if code == 0 {
            // SAFETY: on success the callee left an owned value (FUN-01).
            return Ok(unsafe { Any::from_raw(result) });
        }
        Err(take_call_error(code))
    }
}

/// Returns a ValueError. Separate from the hot code, because practical calls never get here.
#[cold]
#[inline(never)]
fn too_many(count: usize) -> Error {
    Error::new(
        ErrorKind::Value,
        format!("a call has {count} arguments, more than an i32 counts"),
    )
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Function({:p})", self.0.as_ptr())
    }
}

/// Calls a [`Closure`], as its `safe_call` (FUN-01).
unsafe extern "C-unwind" fn call_closure<F>(
    this: *mut c_void,
    args: *const RawAny,
    count: i32,
    result: *mut RawAny,
) -> i32
where
    F: Fn(&[AnyView<'_>]) -> Result + Send + Sync + 'static,
{
    // SAFETY: the callee gets the object that has this function pointer (FUN-01): only `from_packed` sets it.
    let closure = unsafe { &*this.cast::<Closure<F>>() };
    // SAFETY: the caller passes `count` cells that live for the call (FUN-01); a negative count means none.
    let args = unsafe { AnyView::slice(args, count.max(0) as usize) };
    // SAFETY: the caller passes null or a cell for the result (FUN-01).
    unsafe { guard(result, || (closure.body)(args)) }
}

crate::value::handle_value!(Function, FunctionObj, Schema::plain("ffi.Function"));
crate::value::handle_object!(Function);
