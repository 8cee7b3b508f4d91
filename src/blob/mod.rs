//! The library binary: what TVM embeds into a compiled library, and the files around it.

pub mod container;
pub mod pack;
