//! Values: the tagged cell, the object header, strings, types, and conversions.
//!
//! The crate uses one model internally: the 16-byte cell and the 24-byte header of the tvm-ffi ABI, bit for bit. The ABI of 0.2 to 0.20
//! (8-byte value and type code) is converted at the boundary, see [`legacy`].
//!
//! ```
//! use tvmspec::rule::Violation;
//! use tvmspec::value::{Any, dtype_from_text};
//!
//! let value = Any::from(42_i64);
//! assert_eq!(i64::try_from(&value)?, 42);
//! // VAL-07: numbers convert upwards only, and no number is a text.
//! assert!(String::try_from(&value).is_err());
//!
//! let dtype = dtype_from_text("float32x4")?;
//! assert_eq!((dtype.code, dtype.bits, dtype.lanes), (2, 32, 4));
//! # Ok::<(), Violation>(())
//! ```

mod any;
mod convert;
mod device;
pub mod dlpack;
mod dtype;
pub(crate) mod extension;

pub mod header;
pub(crate) mod heap;
pub mod index;
mod layout_assertions;
pub mod legacy;
mod raw;
mod small_map;
mod string;
pub mod types;

crate::rule::chapter_rules!("value");
pub(crate) use rules::*;

pub use any::{Any, AnyView};
pub use convert::{Argument, Schema, cast};
pub(crate) use convert::{handle_object, handle_value, try_from_any};
pub use device::{device_from_text, device_to_text};
pub use dlpack::{DLManagedTensor, DLManagedTensorVersioned, DLTensor};
pub(crate) use dtype::{CustomNames, custom_name, know_custom_names};
pub use dtype::{dtype_from_text, dtype_to_text};
pub use extension::{Extension, register_extension};
pub use header::{Header, Object, ObjectRef, Ref};
pub use raw::{AnyPayload, RawAny};
pub(crate) use small_map::SmallMap;
#[cfg(feature = "suite")]
pub(crate) use string::BytesObj;
pub(crate) use string::c_str;
pub(crate) use string::heap_str;
pub use string::{ByteArray, Bytes, Str, bytes_bytes, str_bytes};
