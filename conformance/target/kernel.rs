//! Kernels of OpenCL C as a library of C: what they compute shows without a device.
//!
//! A function for each kernel takes what a launch takes: the arguments, then the extents of blocks and threads. It calls the kernel for one thread after
//! the other. Threads of a block wait for none there, so that a block with a barrier runs once more for each: what is in shared memory is there the
//! next time.

use crate::target::{GeneratedCode, KernelInfo};
use std::fmt::Write as _;

/// What OpenCL C has and C has not. `tgmath.h` has one name for all widths, too.
const PRELUDE: &str = "\
#include <stddef.h>
#include <tgmath.h>
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
#define __kernel static
#define __global
#define __local
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define barrier(of) ((void)(of))
#define exp10(x) pow((__typeof__(x))10, x)
static size_t case_at[6];
#define get_group_id(axis) case_at[axis]
#define get_local_id(axis) case_at[3 + (axis)]
";

/// What calls them.
const CALLED: &str = "
typedef struct {
  int type_index;
  unsigned zero_padding;
  union { long v_int; double v_float; void** v_tensor; };
} CaseAny;
void* __tvm_ffi__library_ctx = NULL;
";

/// The text of C for the kernels of a module.
pub(super) fn host_text(code: &GeneratedCode) -> String {
    let source = code.source().unwrap_or_default();
    let passes = 1 + source.matches("barrier(").count();
    let mut text = String::from(PRELUDE);
    for line in source.lines() {
        // Memory that the threads of a block share is declared with a space; elsewhere that is part of a type.
        let shared = line.trim_start().strip_prefix("__local ");
        match shared.filter(|rest| rest.ends_with("];")) {
            Some(rest) => text.extend(["static ", rest, "\n"]),
            None => text.extend([line, "\n"]),
        }
    }
    text.push_str(CALLED);
    for kernel in code.kernels() {
        text.push_str(&launcher(kernel, passes));
    }
    text
}

/// A function of the host that plays the device: each block and thread in turn, and all once more for each barrier.
fn launcher(kernel: &KernelInfo, passes: usize) -> String {
    let name = &kernel.name;
    let count = kernel.arg_types.len();
    let arguments = kernel
        .arg_types
        .iter()
        .enumerate()
        .map(|(at, of)| match of {
            of if of == "handle" => format!("*args[{at}].v_tensor"),
            of if of.starts_with("float") => format!("args[{at}].v_float"),
            _ => format!("args[{at}].v_int"),
        });
    let arguments: Vec<String> = arguments.collect();
    let all = count + kernel.launch_param_tags.len();
    let mut text = format!(
        "int __tvm_ffi_{name}(void* self, CaseAny* args, int count, void* result) {{\n  \
         size_t to[6] = {{1, 1, 1, 1, 1, 1}};\n  if (count != {all}) return -1;\n"
    );
    for (at, tag) in (count..).zip(&kernel.launch_param_tags) {
        let axis = match tag.as_str() {
            "blockIdx.x" => 0,
            "blockIdx.y" => 1,
            "blockIdx.z" => 2,
            "threadIdx.x" => 3,
            "threadIdx.y" => 4,
            _ => 5,
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "  to[{axis}] = args[{at}].v_int;");
    }
    let mut indent = String::from("  ");
    // The passes (6) are inside of the blocks: what threads share is one static variable, which the next block writes anew.
    for axis in [0, 1, 2, 6, 3, 4, 5] {
        let head = match axis {
            6 => format!("for (int pass = 0; pass < {passes}; pass += 1)"),
            _ => format!(
                "for (case_at[{axis}] = 0; case_at[{axis}] < to[{axis}]; case_at[{axis}] += 1)"
            ),
        };
        let _ = writeln!(text, "{indent}{head}");
        indent.push_str("  ");
    }
    let _ = writeln!(
        text,
        "{indent}{name}({});\n  return 0;\n}}",
        arguments.join(", ")
    );
    text
}
