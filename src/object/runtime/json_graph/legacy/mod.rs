//! Graphs of 0.2 to 0.21 as values and back (OBJ-33): what the methods of `LegacyGraph` do that need the types of this process.

mod decode;
mod encode;
