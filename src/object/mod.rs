//! Objects: types, containers, reflection, comparison, and the JSON graph.

pub use crate::value::header::{BareObject, Header, Object, ObjectRef, Ref};
pub use crate::value::types;
