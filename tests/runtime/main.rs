//! Values, functions, objects and modules, as programs use them.

mod capi_ffi;
mod capi_legacy;
mod casts;
mod concurrent_calls;
mod destruction;
mod embedding;
mod extension_types;
mod extreme_arguments;
mod function;
mod module;
mod module_edges;
mod module_kinds;
mod module_robustness;
mod object;
mod object_nan;
mod soundness;
#[path = "../support/mod.rs"]
mod support;
mod target_c;
mod threads;
mod value;
mod value_types;
mod visits;
