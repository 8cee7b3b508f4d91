//! Names that a text of C has for something else (TGT-89).

use super::library::is_function;

/// What a variable cannot be called: words of C, what is declared in front of the text, and the functions that it calls, which a variable of
/// that name would hide.
pub(super) fn is_reserved(name: &str) -> bool {
    // `get_` begins what a kernel asks for its numbers by (`get_group_id`); `lanes` is what a vector is kept in (`vector_store`).
    let declared = ["tvmspec_", "TVM", "DL", "get_", "lanes"];
    is_word(name)
        || RESERVED.contains(&name)
        || is_function(name)
        || name.ends_with("_t")
        || declared.iter().any(|start| name.starts_with(start))
}

/// Whether a name is a word, a type or a macro of C or of OpenCL C: nothing else can be called by it.
pub(super) fn is_word(name: &str) -> bool {
    WORDS.contains(&name)
        || is_type(name)
        || name.strip_prefix("as_").is_some_and(is_type)
        || MACROS.iter().any(|start| name.starts_with(start))
}

/// Whether a name is a type of OpenCL C: of numbers, with or without a sign, of a vector of them, or of what is no number.
fn is_type(name: &str) -> bool {
    let plain = name.strip_prefix('u').unwrap_or(name);
    let scalar = plain.trim_end_matches(|c: char| c.is_ascii_digit());
    SCALARS.contains(&scalar)
        || OPAQUE.contains(&name)
        || name.starts_with("image") && name.ends_with("_t")
}

/// Types that have vectors.
const SCALARS: &[&str] = &[
    "char", "short", "int", "long", "float", "double", "half", "bool", "quad",
];

/// Types that have none.
const OPAQUE: &[&str] = &[
    "size_t",
    "ptrdiff_t",
    "intptr_t",
    "uintptr_t",
    "event_t",
    "clk_event_t",
    "sampler_t",
    "queue_t",
    "ndrange_t",
    "reserve_id_t",
];

/// What macros of OpenCL C begin with.
const MACROS: &[&str] = &[
    "CLK_", "CL_", "M_", "FLT_", "DBL_", "HALF_", "CHAR_", "SCHAR_", "UCHAR_", "SHRT_", "USHRT_",
    "INT_", "UINT_", "LONG_", "ULONG_", "FP_ILOGB", "HUGE_VAL", "ATOMIC_",
];

/// Words of C and of OpenCL C.
const WORDS: &[&str] = &[
    "auto",
    "break",
    "case",
    "const",
    "continue",
    "default",
    "do",
    "else",
    "enum",
    "extern",
    "for",
    "goto",
    "if",
    "inline",
    "register",
    "restrict",
    "return",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "true",
    "false",
    "main",
    "printf",
    "NULL",
    "NAN",
    "INFINITY",
    // Macros of compilers for C with GNU's extensions.
    "unix",
    "linux",
    "i386",
    // OpenCL C.
    "kernel",
    "global",
    "local",
    "constant",
    "private",
    "generic",
    "read_only",
    "write_only",
    "read_write",
    "pipe",
    "vec_step",
    "kernel_exec",
    "MAXFLOAT",
    "MAX_WORK_DIM",
    "__kernel",
    "__global",
    "__local",
    "__constant",
    "__private",
    "__generic",
    "__read_only",
    "__write_only",
    "__read_write",
    "__attribute__",
];

/// Names of what a file begins with, and of what it may call; and words of C++, which releases compile the text as.
const RESERVED: &[&str] = &[
    // The names up to `signgam` are those that `math.h` of POSIX systems declares beyond those of C.
    "y0",
    "y1",
    "yn",
    "j0",
    "j1",
    "jn",
    "gamma",
    "signgam",
    "min",
    "max",
    "parts",
    "lane",
    "barrier",
    "isnan",
    "isinf",
    "isfinite",
    "popcount",
    "clz",
    "call_packed",
    "exp10",
    "rsqrt",
    "select",
    "clamp",
    "mix",
    "step",
    "sign",
    // Words of C++.
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "bitand",
    "bitor",
    "catch",
    "class",
    "compl",
    "concept",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "co_await",
    "co_return",
    "co_yield",
    "decltype",
    "delete",
    "dynamic_cast",
    "explicit",
    "export",
    "friend",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "protected",
    "public",
    "reinterpret_cast",
    "requires",
    "static_assert",
    "static_cast",
    "template",
    "this",
    "thread_local",
    "throw",
    "try",
    "typeid",
    "typename",
    "using",
    "virtual",
    "xor",
    "xor_eq",
];
