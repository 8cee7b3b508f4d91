//! C functions that a case calls by name, with the arguments that it states.
//!
//! The type of a function contains everything. Each parameter type converts the next argument of the case, or provides memory that
//! the function writes to. The result type converts itself to an answer. A row of a table is therefore only a name and a type, and
//! a call has the signature of the C header.

use crate::conformance::reply::Reply;
use std::ffi::c_void;

/// A type of parameters.
pub(in crate::conformance) trait CParameter<Frame>: Sized {
    /// Creates the argument of a call. The memory that it points to lives in the frame.
    fn take(frame: &mut Frame) -> Result<Self, Reply>;
}

/// A type of results.
pub(in crate::conformance) trait CResult<Frame> {
    /// The result as the case sees it.
    type Answer;

    /// Converts the result, and the memory that the function has written.
    fn into_answer(self, frame: &mut Frame) -> Self::Answer;
}

/// A type of functions.
pub(in crate::conformance) trait CFunction<Frame>: Copy {
    /// The result type.
    type Result: CResult<Frame>;

    /// Calls the function with the arguments from the frame.
    ///
    /// # Safety
    ///
    /// The function accepts the arguments that its parameter types create from the case.
    unsafe fn call(self, frame: &mut Frame) -> Result<Self::Result, Reply>;
}

macro_rules! functions {
    ($($name:ident: $type:ident),*) => {
        impl<Frame, R: CResult<Frame>, $($type: CParameter<Frame>),*> CFunction<Frame>
            for unsafe extern "C" fn($($type),*) -> R
        {
            type Result = R;

            unsafe fn call(self, frame: &mut Frame) -> Result<R, Reply> {
                $(let $name = <$type as CParameter<Frame>>::take(frame)?;)*
                let _ = frame;
                // SAFETY: the contract of this function requires it.
                Ok(unsafe { self($($name),*) })
            }
        }
    };
}

functions!();
functions!(a: A);
functions!(a: A, b: B);
functions!(a: A, b: B, c: C);
functions!(a: A, b: B, c: C, d: D);
functions!(a: A, b: B, c: C, d: D, e: E);
functions!(a: A, b: B, c: C, d: D, e: E, f: F);
functions!(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H);

/// Calls the function at `address`.
///
/// # Safety
///
/// The function is of type `F`, and accepts the arguments that its parameter types create from the case.
pub(in crate::conformance) unsafe fn invoke<Frame, F: CFunction<Frame>>(
    address: *mut c_void,
    frame: &mut Frame,
) -> Result<<F::Result as CResult<Frame>>::Answer, Reply> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the address of a function of type `F`, by this function's contract.
    let function: F = unsafe { std::mem::transmute_copy(&address) };
    // SAFETY: the function accepts these arguments, by this function's contract.
    Ok(unsafe { function.call(frame) }?.into_answer(frame))
}

/// Defines a function that calls one of a table of C functions by its name; `None` for another name.
macro_rules! c_functions {
    ($frame:ty, $answer:ty: $($name:literal: $type:ty,)*) => {
        /// Calls the function `name`.
        ///
        /// # Safety
        ///
        /// `address` is that of the function `name`.
        unsafe fn called(
            name: &str,
            address: *mut std::ffi::c_void,
            frame: &mut $frame,
        ) -> Option<Result<$answer, $crate::conformance::reply::Reply>> {
            Some(match name {
                // SAFETY: the type is the one that the C header declares for the name.
                $($name => unsafe { $crate::conformance::runtime::c_call::invoke::<_, $type>(address, frame) },)*
                _ => return None,
            })
        }
    };
}

pub(in crate::conformance) use c_functions;
