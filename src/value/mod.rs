//! Values: the tagged cell, the object header, strings, types, and what converts to what.
//!
//! One model inside: the 16-byte cell and the 24-byte header of the tvm-ffi ABI, bit for bit. The ABI of 0.2 to 0.20
//! (8-byte value and type code) is converted at the boundary, see [`legacy`].

mod any;
mod convert;
mod device;
pub mod dlpack;
mod dtype;
mod few;
pub mod header;
pub(crate) mod heap;
pub mod index;
#[cfg(test)]
mod layouts;
pub mod legacy;
mod string;
pub mod types;

pub use any::{Any, AnyView, Payload, RawAny};
pub(crate) use convert::try_from_any;
pub use convert::{Argument, Schema, cast};
pub use device::{device_from_text, device_to_text};
pub use dlpack::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor};
pub(crate) use dtype::{CustomNames, custom_name, know_custom_names};
pub use dtype::{dtype_from_text, dtype_to_text};
pub(crate) use few::Few;
pub use header::{Header, Object, ObjectRef, Ref};
#[cfg(feature = "suite")]
pub(crate) use string::BytesObj;
pub(crate) use string::c_str;
#[allow(unused_imports)]
pub(crate) use string::heap_str;
pub use string::{ByteArray, Bytes, Str, bytes_bytes, str_bytes};

crate::rule::rules! {
    VAL_01 "VAL-01" VAL_02 "VAL-02" VAL_03 "VAL-03" VAL_04 "VAL-04" VAL_05 "VAL-05" VAL_06 "VAL-06" VAL_07 "VAL-07"
    VAL_08 "VAL-08" VAL_09 "VAL-09" VAL_10 "VAL-10" VAL_11 "VAL-11" VAL_12 "VAL-12" VAL_13 "VAL-13" VAL_14 "VAL-14"
    VAL_15 "VAL-15" VAL_16 "VAL-16" VAL_17 "VAL-17" VAL_18 "VAL-18" VAL_19 "VAL-19" VAL_20 "VAL-20" VAL_21 "VAL-21"
}
