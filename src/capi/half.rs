//! The float16 helpers that compiled code calls where its machine has no instruction for them.
//!
//! LLVM names them differently from version to version. 0.2 to 0.20 expected the runtime to export these two; later
//! compilers put helpers of their own into every library.

/// Rounds to float16, ties to even; the bits.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __gnu_f2h_ieee(value: f32) -> u16 {
    half::f16::from_f32_const(value).to_bits()
}

/// The value of float16 bits, exactly.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __gnu_h2f_ieee(bits: u16) -> f32 {
    half::f16::from_bits(bits).to_f32_const()
}

/// Keeps both in every program that links this library, so that libraries which it loads find them.
#[used]
static KEPT: (extern "C" fn(f32) -> u16, extern "C" fn(u16) -> f32) =
    (__gnu_f2h_ieee, __gnu_h2f_ieee);
