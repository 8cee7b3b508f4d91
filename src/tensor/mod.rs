//! Tensors at rest: data types, devices, the tensor record and the parameter file.
//!
//! | value | bytes | rule |
//! |---|---|---|
//! | [`Dtype`] | u8 code, u8 bits, u16 lanes | TEN-01 |
//! | [`Device`] | i32 type, i32 id | TEN-10 |
//! | [`TensorRecord`] | magic, reserved, device, ndim, dtype, shape, size, data | TEN-20 .. TEN-34 |
//! | [`Elements`] | a record as a tensor in memory | TEN-35 |
//! | [`Params`] | magic, reserved, names, count, records | TEN-40 .. TEN-45 |
//!
//! Everything that reads takes the release family's way of counting bytes ([`Sizing`]) as an argument, because the bytes
//! themselves do not say it.

mod device;
mod dtype;
mod elements;
#[cfg_attr(not(feature = "suite"), allow(dead_code))]
pub mod json;
mod params;
mod record;
mod text;

pub use device::Device;
pub use dtype::Dtype;
pub use elements::{Elements, Packing};
pub use params::Params;
pub use record::{Sizing, TensorRecord};

crate::rule::rules! {
    TEN_01 "TEN-01"
    TEN_02 "TEN-02"
    TEN_03 "TEN-03"
    TEN_04 "TEN-04"
    TEN_05 "TEN-05"
    TEN_06 "TEN-06"
    TEN_07 "TEN-07"
    TEN_08 "TEN-08"
    TEN_09 "TEN-09"
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
    TEN_35 "TEN-35"
    TEN_40 "TEN-40"
    TEN_41 "TEN-41"
    TEN_42 "TEN-42"
    TEN_43 "TEN-43"
    TEN_44 "TEN-44"
    TEN_45 "TEN-45"
}
