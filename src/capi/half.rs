//! The float16 helpers that compiled code calls where its machine has no instruction for them.
//!
//! LLVM names them differently from version to version. Runtimes of 0.2 on export the first two, and of 0.11 on all three. Compilers
//! put those that convert from and to float32 into every library; the one from float64 stays undefined in it.

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

/// Rounds to float16, ties to even.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __truncdfhf2(value: f64) -> ReturnedHalf {
    let bits = value.to_bits();
    // `half` looks at the upper 32 bits alone. One bit of these says that there is more below, which decides a tie.
    let more = u64::from(bits << 32 != 0) << 32;
    returned(half::f16::from_f64_const(f64::from_bits(bits | more)).to_bits())
}

/// A half where both generations of LLVM look for one: from 15 on it is in a vector register, before in that of an integer, which is
/// where TVM's own function leaves it.
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

/// The bits of a half; LLVM calls the function on x86-64 alone.
#[cfg(not(all(target_arch = "x86_64", unix)))]
pub(crate) type ReturnedHalf = u16;

#[cfg(not(all(target_arch = "x86_64", unix)))]
fn returned(bits: u16) -> ReturnedHalf {
    bits
}

/// Keeps all in every program that links this library, so that libraries which it loads find them.
#[used]
static KEPT: (
    extern "C" fn(f32) -> u16,
    extern "C" fn(u16) -> f32,
    extern "C" fn(f64) -> ReturnedHalf,
) = (__gnu_f2h_ieee, __gnu_h2f_ieee, __truncdfhf2);
