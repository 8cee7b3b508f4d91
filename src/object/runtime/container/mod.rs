//! Containers: arrays, lists, maps, dicts, shapes, tensors and big integers, in the layouts that inlined C++ reads. Also the hash and
//! equality of their keys (OBJ-01 to OBJ-12, OBJ-38, OBJ-39). Threads share the containers that change in place, and [`lock`] admits one
//! thread to a container at a time.

pub mod big_int;
pub mod hash;
pub(crate) mod lock;
pub(crate) mod map;
pub(crate) mod seq;
pub(crate) mod shape;
pub(crate) mod tensor;
