//! Tensors at rest: data types, devices, the tensor record and the parameter file.
//!
//! | value | bytes | rule |
//! |---|---|---|
//! | [`Dtype`] | u8 code, u8 bits, u16 lanes | TEN-01 |
//! | [`Device`] | i32 type, i32 id | TEN-10 |
//! | [`TensorRecord`] | magic, reserved, device, ndim, dtype, shape, size, data | TEN-20 .. TEN-34 |
//!
//! Everything that reads takes the release family's way of counting bytes ([`Sizing`]) as an argument, because the bytes
//! themselves do not say it.

mod device;
mod dtype;
mod record;

pub use device::Device;
pub use dtype::Dtype;
pub use record::{Sizing, TensorRecord};

crate::rule::rules! {
    TEN_01 "TEN-01"
    TEN_10 "TEN-10"
    TEN_20 "TEN-20"
    TEN_21 "TEN-21"
    TEN_22 "TEN-22"
    TEN_23 "TEN-23"
    TEN_24 "TEN-24"
    TEN_25 "TEN-25"
    TEN_26 "TEN-26"
    TEN_27 "TEN-27"
    TEN_28 "TEN-28"
    TEN_29 "TEN-29"
    TEN_30 "TEN-30"
    TEN_31 "TEN-31"
    TEN_32 "TEN-32"
    TEN_33 "TEN-33"
    TEN_34 "TEN-34"
}
