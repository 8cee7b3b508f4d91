//! Functions: the calling convention, errors across it, typed functions, and the registry of names.
//!
//! | bytes   | field                                                     | rule   |
//! |---------|-----------------------------------------------------------|--------|
//! | 24..32  | `safe_call(self, args, count, result) -> 0, -1 or -2`     | FUN-01 |
//! | 32..40  | the same with exceptions, for C++ alone; null from here   | FUN-03 |
//! | 40..    | what the function captured                                |        |
//!
//! ```
//! use tvmspec::function::{Error, Function, registry};
//!
//! registry::register("example.add", Function::from_typed(|a: i64, b: f64| a as f64 + b), false)?;
//! let add = registry::require("example.add")?;
//! assert_eq!(f64::try_from(&add.call(&[2_i64.into(), 0.5.into()])?)?, 2.5);
//! assert_eq!(add.call(&[]).unwrap_err().kind(), "TypeError");
//! # Ok::<(), Error>(())
//! ```

/// Makes an object of this crate's own out of a struct that has the public part of an `$index` in front. No object is taken
/// for one by its index: those of other libraries have the public part alone.
///
/// # Safety
///
/// The struct is `#[repr(C)]`, its first field is `public`, and only functions that are set in such an object reach what is
/// behind it.
macro_rules! own_object {
    (unsafe $type:ty, $index:expr $(, $param:ident)?) => {
        // SAFETY: as for this macro.
        unsafe impl$(<$param: 'static>)? $crate::value::Object for $type {
            fn type_index() -> $crate::value::types::ObjectIndex {
                const { $crate::value::types::ObjectIndex::fixed($index) }
            }

            fn matches(_: i32) -> bool {
                false
            }
        }
    };
}

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
mod rules;
mod typed;

pub use rules::*;

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
pub(crate) use guard::{caught, guard_code, raised};
pub(crate) use parameter::borrowed;
pub(crate) use parameter::{BorrowCondition, Borrowing, ResultSchema};
pub use parameter::{CallResult, Param, Parameter};
pub(crate) use typed::signature_json;
pub use typed::{Signature, Typed, TypedFn};

use crate::value::header::{Header, ObjectRef, Ref, static_object};
use crate::value::{Any, AnyView, Argument, RawAny, Schema, VAL_10, index};
use std::ffi::c_void;

/// The convention of a call over the C ABI: 0 and a result, or -1 and a raised error, or -2 and an error that the
/// frontend holds.
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
    /// How to call it.
    pub(crate) safe_call: SafeCall,
    /// How C++ may call it; null here.
    pub(crate) cpp_call: *mut c_void,
}

const _: () = assert!(size_of::<FunctionObj>() == 40);

static_object!(FunctionObj, index::FUNCTION);

impl FunctionObj {
    /// The public part of a function of this crate: null for C++, which would expect exceptions to come out of it (FUN-03).
    fn new(safe_call: SafeCall) -> FunctionObj {
        FunctionObj {
            // `Ref::new` writes its own header over this one, whose deleter ends what the function captured.
            header: Header::new(index::FUNCTION, crate::value::heap::delete_plain),
            safe_call,
            cpp_call: std::ptr::null_mut(),
        }
    }
}

// SAFETY: the two pointers never change after the object is made.
unsafe impl Send for FunctionObj {}
// SAFETY: the two pointers never change after the object is made.
unsafe impl Sync for FunctionObj {}

/// A function of any origin: a Rust closure, a compiled kernel, a callback of another language.
#[derive(Clone)]
#[repr(transparent)]
pub struct Function(Ref<FunctionObj>);

/// The result of a call.
pub type Result<T = Any> = std::result::Result<T, Error>;

/// A function with what it captured behind the public part.
#[repr(C)]
struct Closure<F: 'static> {
    public: FunctionObj,
    body: F,
}

// SAFETY: `#[repr(C)]`, `public` first; `Closure::call` alone reaches the body.
own_object!(unsafe Closure<F>, index::FUNCTION, F);

impl Function {
    /// Makes a function of a closure over borrowed arguments. A panic in it becomes an error (FUN-07).
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

    /// Makes a function of a Rust function or closure with up to eight typed parameters:
    ///
    /// ```
    /// # use tvmspec::function::Function;
    /// let add = Function::from_typed(|a: i64, b: f64| a as f64 + b);
    /// let sum = add.call(&[1i64.into(), 0.5.into()]).unwrap();
    /// assert_eq!(f64::try_from(&sum).unwrap(), 1.5);
    /// ```
    pub fn from_typed<P, F: TypedFn<P>>(body: F) -> Function
    where
        P: 'static,
    {
        Function::named(None, body)
    }

    /// [`Function::from_typed`] with the name that its error messages use, and in less code: those that capture nothing,
    /// as builtins do, are entered in one place, which costs a call some 25 instructions.
    pub fn named<P: 'static, F: TypedFn<P>>(name: Option<&'static str>, body: F) -> Function {
        let made = const {
            match (size_of::<F>(), F::SIGNATURE.settles()) {
                (0, _) => Function::of_nothing_captured::<P, F>,
                (_, true) => Function::settling::<P, F>,
                (_, false) => Function::reading::<P, F> as fn(Option<&'static str>, F) -> Function,
            }
        };
        made(name, body)
    }

    /// [`Function::named`] of a body of no bytes.
    fn of_nothing_captured<P, F: TypedFn<P>>(name: Option<&'static str>, body: F) -> Function {
        Function::plain(name, Code::of(body))
    }

    /// [`Function::named`] where arguments may have to be converted before the body borrows them.
    fn settling<P, F: TypedFn<P>>(name: Option<&'static str>, body: F) -> Function {
        Function::from_packed(move |args| {
            F::SIGNATURE.settle(name, args, |args| body.invoke(name, args))
        })
    }

    /// [`Function::named`] where the body converts each argument as it reads it.
    fn reading<P, F: TypedFn<P>>(name: Option<&'static str>, body: F) -> Function {
        Function::from_packed(move |args| body.invoke(name, args))
    }

    /// A function of code without captures. `name` is for its error messages (FUN-08).
    pub(crate) fn plain(name: Option<&'static str>, code: Code) -> Function {
        let object = Ref::new(Plain {
            public: FunctionObj::new(call_plain),
            name,
            code,
        });
        // SAFETY: a plain function starts with the public part, and the reference moves.
        Function(unsafe { Ref::from_raw(object.into_object().into_raw()) })
    }

    /// Wraps a C function, its context, and what ends the context. Without either the function object *is* the C function:
    /// a call jumps straight to it, and the context that it gets is the object, as in the reference.
    ///
    /// # Safety
    /// From any thread, `call` follows the convention for `context` until `finish` is called, which happens once at most.
    pub(crate) unsafe fn from_c(
        // What the callee gets in the place of its object.
        context: *mut c_void,
        call: SafeCall,
        finish: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    ) -> Function {
        // As in the reference, so that the callee is called with its own object: `itself` of the suite looks for that.
        if context.is_null() && finish.is_none() {
            return Function(Ref::new(FunctionObj::new(call)));
        }
        let object = Ref::new(External {
            public: FunctionObj {
                header: Header::new(index::FUNCTION, crate::value::heap::delete_plain),
                safe_call: call_external,
                cpp_call: std::ptr::null_mut(),
            },
            context,
            call,
            finish,
        });
        // SAFETY: an external function starts with the public part, and the reference moves.
        Function(unsafe { Ref::from_raw(object.into_object().into_raw()) })
    }

    /// Calls with borrowed arguments. That is safe for a function of a loaded library too: the contract of
    /// [`module::load`](crate::module::load), which the code that loads it keeps, covers every call of its functions.
    ///
    /// # Errors
    ///
    /// What the function raises; and more arguments than an `i32` counts (FUN-01).
    #[inline]
    pub fn call(&self, args: &[AnyView<'_>]) -> Result {
        // The convention counts arguments in an i32 (FUN-01); more would arrive as another number.
        let Ok(count) = i32::try_from(args.len()) else {
            return Err(too_many(args.len()));
        };
        // The place of the result holds no object, so that a failed call leaves nothing to release (FUN-02).
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
        Err(raised(code))
    }

    /// Calls with owned arguments, such as a tuple turned into an array: `f.call_with([1i64.into(), "x".into()])`. Safe for
    /// functions of a loaded library as [`Function::call`] is, by the contract of [`module::load`](crate::module::load).
    ///
    /// # Errors
    ///
    /// As [`Function::call`].
    pub fn call_with<const N: usize>(&self, args: [Any; N]) -> Result {
        let views: [AnyView<'_>; N] = std::array::from_fn(|at| args[at].view());
        self.call(&views)
    }

    /// The object, with the reference that this handle held.
    #[inline]
    pub fn into_object(self) -> ObjectRef {
        self.0.into_object()
    }

    /// The object, borrowed.
    #[inline]
    pub const fn as_object(&self) -> &ObjectRef {
        self.0.as_object()
    }

    /// The function that `object` is, or `object` back.
    ///
    /// # Errors
    ///
    /// The object itself when it is no function.
    #[inline]
    pub fn from_object(object: ObjectRef) -> std::result::Result<Function, ObjectRef> {
        object.downcast().map(Function)
    }
}

/// A ValueError; apart, since no call that can be made gets here.
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

/// The `safe_call` of a [`Closure`] (FUN-01).
unsafe extern "C-unwind" fn call_closure<F>(
    this: *mut c_void,
    args: *const RawAny,
    count: i32,
    result: *mut RawAny,
) -> i32
where
    F: Fn(&[AnyView<'_>]) -> Result + Send + Sync + 'static,
{
    // SAFETY: the callee gets the object that carries this function pointer (FUN-01): only `from_packed` sets it.
    let closure = unsafe { &*this.cast::<Closure<F>>() };
    // SAFETY: the caller passes `count` cells that live for the call (FUN-01); a negative count is that of nothing.
    let args = unsafe { AnyView::slice(args, count.max(0) as usize) };
    // SAFETY: the caller passes null or a cell for the result (FUN-01).
    unsafe { guard(result, || (closure.body)(args)) }
}

impl From<Function> for Any {
    fn from(function: Function) -> Any {
        function.into_object().into()
    }
}

impl<'a> From<&'a Function> for AnyView<'a> {
    fn from(function: &'a Function) -> AnyView<'a> {
        AnyView::from(function.as_object())
    }
}

crate::value::try_from_any!(Function);

impl Argument for Function {
    const RULE: crate::rule::Rule = VAL_10;

    fn schema() -> Schema {
        <Ref<FunctionObj> as Argument>::schema()
    }

    #[inline]
    fn try_from_view(view: AnyView<'_>) -> Option<Function> {
        Ref::try_from_view(view).map(Function)
    }
}
