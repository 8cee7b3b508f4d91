//! Conversion between values and graphs of 0.2 to 0.21 (OBJ-33): the methods of `LegacyGraph` that need the types of this process.

mod decode;
mod encode;
