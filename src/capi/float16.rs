//! The float16 helpers that compiled code calls if its machine has no instruction for them.
//!
//! LLVM names them differently in different versions. Runtimes from 0.2 on export the first two, and from 0.11 on all three. Compilers
//! add the conversions from and to float32 to every library, but leave the conversion from float64 undefined.

/// Rounds to float16, ties to even, and returns the bits.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __gnu_f2h_ieee(value: f32) -> u16 {
    half::f16::from_f32_const(value).to_bits()
}

/// Converts float16 bits to float32 exactly.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __gnu_h2f_ieee(bits: u16) -> f32 {
    half::f16::from_bits(bits).to_f32_const()
}

/// Rounds to float16, ties to even.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __truncdfhf2(value: f64) -> ReturnedHalf {
    let bits = value.to_bits();
    // `half` uses only the upper 32 bits. One bit of these records whether any lower bit is set, because the lower bits decide a tie.
    let more = u64::from(bits << 32 != 0) << 32;
    returned(half::f16::from_f64_const(f64::from_bits(bits | more)).to_bits())
}

/// A half in both registers in which versions of LLVM expect it. From LLVM 15 on, it is in a vector register. Before, it is in an
/// integer register, like the result of TVM's own function.
#[cfg(all(target_arch = "x86_64", unix))]
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ReturnedHalf {
    vector: f64,
    integer: u64,
}

#[cfg(all(target_arch = "x86_64", unix))]
fn returned(bits: u16) -> ReturnedHalf {
    ReturnedHalf {
        vector: f64::from_bits(u64::from(bits)),
        integer: u64::from(bits),
    }
}

/// The bits of a half. LLVM calls the function only on x86-64.
#[cfg(not(all(target_arch = "x86_64", unix)))]
pub(crate) type ReturnedHalf = u16;

#[cfg(not(all(target_arch = "x86_64", unix)))]
fn returned(bits: u16) -> ReturnedHalf {
    bits
}

/// Keeps all three in every program that links this library, so that libraries that it loads find them.
#[used]
static KEPT: (
    extern "C" fn(f32) -> u16,
    extern "C" fn(u16) -> f32,
    extern "C" fn(f64) -> ReturnedHalf,
) = (__gnu_f2h_ieee, __gnu_h2f_ieee, __truncdfhf2);
