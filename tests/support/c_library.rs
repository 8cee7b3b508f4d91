//! Exports the C interface of the library that it links.

extern crate tvmspec;
