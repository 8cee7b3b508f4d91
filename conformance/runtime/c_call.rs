//! C functions that a case calls by name, with the arguments that it states.
//!
//! The type of a function says all: each parameter is of a type that makes itself of the next argument of the case, or of a place that the
//! function writes to, and the result is of a type that shows itself. So a row of a table is a name and a type, and a call has the signature that
//! the C header declares.

use crate::conformance::reply::Reply;
use std::ffi::c_void;

/// A type of parameters.
pub(in crate::conformance) trait CParameter<Frame>: Sized {
    /// Makes the argument of a call. What it points to lives in the frame.
    fn take(frame: &mut Frame) -> Result<Self, Reply>;
}

/// A type of results.
pub(in crate::conformance) trait CResult<Frame> {
    /// What the case sees.
    type Answer;

    /// Shows the result, and what the function has written.
    fn shown(self, frame: &mut Frame) -> Self::Answer;
}

/// A type of functions.
pub(in crate::conformance) trait CFunction<Frame>: Copy {
    /// Its result.
    type Result: CResult<Frame>;

    /// Calls it with the arguments that the frame makes.
    ///
    /// # Safety
    ///
    /// The function takes what its parameters make of the arguments of the case.
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
                // SAFETY: by this contract.
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
/// It is of type `F`, and takes what its parameters make of the arguments of the case.
pub(in crate::conformance) unsafe fn invoke<Frame, F: CFunction<Frame>>(
    address: *mut c_void,
    frame: &mut Frame,
) -> Result<<F::Result as CResult<Frame>>::Answer, Reply> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the address of a function of type `F`, by this contract.
    let function: F = unsafe { std::mem::transmute_copy(&address) };
    // SAFETY: it takes what its parameters make, by this contract.
    Ok(unsafe { function.call(frame) }?.shown(frame))
}

/// A table of C functions, as a function that calls one of them by its name; `None` for another name.
macro_rules! c_functions {
    ($frame:ty, $answer:ty: $($name:literal: $type:ty,)*) => {
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
