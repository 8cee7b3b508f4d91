//! Objects: types, containers, reflection, comparison, and the JSON graph.
//!
//! | module | content | rules |
//! |---|---|---|
//! | `format/ffi`, `format/text` | the JSON graph of tvm-ffi, checked without types, and JSON text | OBJ-16, OBJ-18 to OBJ-20, OBJ-39, OBJ-40 |
//! | `format/legacy` | the JSON graph of 0.2 to 0.21, as nodes of any type | OBJ-21 to OBJ-32, OBJ-36, OBJ-37 |
//! | `format/key_hash` | the hash of texts and the slots of maps, without values | OBJ-01, OBJ-07, OBJ-39 |
//! | `runtime/container` | arrays, maps, shapes, tensors, big integers, and the hash of keys | OBJ-01 to OBJ-12, OBJ-38, OBJ-39 |
//! | `runtime/reflect` | fields, methods and hooks of types, constructors, the builtins, the hooks of frontends | OBJ-15 |
//! | `runtime/walk` | comparison, hash, copies, text, visits | OBJ-13, OBJ-14, OBJ-34, OBJ-35, OBJ-41 |
//! | `runtime/json_graph` | saved objects of both eras as values | OBJ-16 to OBJ-20, OBJ-33, OBJ-41 |
//!
//! The formats are part of every build. The runtime half needs the feature `runtime`. [`json_graph`] contains both halves' functions for
//! saved objects.
//!
//! ```
//! # #[cfg(feature = "runtime")] {
//! use tvmspec::object::Tensor;
//!
//! let tensor = Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
//! assert_eq!((tensor.shape(), tensor.nbytes()), (&[2, 3][..], 24));
//! assert_eq!(tensor.to_vec::<f32>()?[3], 4.0);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// The formats share one module only for its lints, like the formats at the root of the crate.
#[forbid(unsafe_code)]
#[deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::panic
)]
mod format;
pub mod json_graph;
#[cfg(feature = "runtime")]
mod runtime;

pub(crate) use format::text::string_at;
crate::rule::chapter_rules!("object");
pub(crate) use rules::*;
#[cfg(feature = "runtime")]
pub use runtime::*;
