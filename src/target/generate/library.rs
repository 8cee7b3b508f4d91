//! The functions of C's library that the text may call.

/// Functions of C's library with how many arguments they take, each also with `f` behind it, of numbers with 32 bits.
pub(super) const MATH: &[(&str, usize)] = &[
    ("acos", 1),
    ("acosh", 1),
    ("asin", 1),
    ("asinh", 1),
    ("atan", 1),
    ("atan2", 2),
    ("atanh", 1),
    ("cbrt", 1),
    ("ceil", 1),
    ("copysign", 2),
    ("cos", 1),
    ("cosh", 1),
    ("erf", 1),
    ("erfc", 1),
    ("exp", 1),
    ("exp2", 1),
    ("expm1", 1),
    ("fabs", 1),
    ("floor", 1),
    ("fma", 3),
    ("fmax", 2),
    ("fmin", 2),
    ("fmod", 2),
    ("hypot", 2),
    ("ldexp", 2),
    ("log", 1),
    ("log10", 1),
    ("log1p", 1),
    ("log2", 1),
    ("nearbyint", 1),
    ("nextafter", 2),
    ("pow", 2),
    ("rint", 1),
    ("round", 1),
    ("sin", 1),
    ("sinh", 1),
    ("sqrt", 1),
    ("tan", 1),
    ("tanh", 1),
    ("trunc", 1),
];

/// A function of C's library by its name, with `f` behind it or without: the name without.
pub(super) fn function(name: &str) -> Option<(&'static str, usize)> {
    let find = |name: &str| MATH.iter().find(|(known, _)| *known == name).copied();
    // The whole name first: `erf` ends with the letter of the other width.
    find(name).or_else(|| find(name.strip_suffix('f')?))
}

/// Whether a name is that of a function which the text may call.
pub(super) fn is_function(name: &str) -> bool {
    function(name).is_some()
}
