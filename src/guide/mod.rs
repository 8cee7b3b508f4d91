//! Tasks, step by step. Every program here runs as a test of this crate.
//!
//! | task | page | features |
//! |---|---|---|
//! | take the device code out of a library | [`extract_code`] | none |
//! | find the release that wrote a file | [`find_writer`] | none |
//! | replace a parameter | [`replace_parameter`] | none |
//! | find the releases that load a file, and why others do not | `find_loaders` | `inspect` |
//! | call a compiled function | `call_function` | `runtime` |
//! | implement a device | `implement_device` | `runtime` |
//! | judge a loader in CI | `judge_loader` | `suite` |
//!
//! # File, container, blob, module, payload
//!
//! ```text
//! file            model.so, lib.tar, params.bin, graph.json
//! └─ container    ELF, Mach-O, PE, COFF, WebAssembly, archive, C text, or the bytes alone
//!    └─ part      the file itself, or a member of an archive
//!       ├─ symbols           functions of the host code, context, slots
//!       └─ blob              the library binary, under one symbol: __tvm_ffi__library_bin
//!          ├─ layout         0.2, 0.7, 0.21 or 0.22: the release that introduced it
//!          ├─ import tree    which module imports which
//!          └─ modules
//!             ├─ host        `_lib`: the code of the library itself; it has no payload
//!             └─ stored      a kind (cuda, metal, relax.VMExecutable, ..) and its payload
//!                └─ payload  fields in the grammar of the kind: code, functions, tensors
//! ```
//!
//! [`blob::open`](crate::blob::open) reads a file and returns its modules in one call.
//! [`StoredModule::decode`](crate::blob::StoredModule::decode) returns the fields of a module. The levels in between also have types:
//! [`ContainerFile`](crate::blob::container::ContainerFile), [`ContainerPart`](crate::blob::container::ContainerPart),
//! [`EmbeddedBlob`](crate::blob::container::EmbeddedBlob), [`Blob`](crate::blob::Blob), [`LibraryModule`](crate::blob::LibraryModule),
//! [`Payload`](crate::payload::Payload).
//!
//! # Versions
//!
//! Releases follow semantic versioning. Before 1.0, a minor release may break the Rust interface, but a patch release does not. JSON
//! forms, exit codes and C functions only grow. The minimum Rust version is `rust-version` in `Cargo.toml`. It rises only in a minor
//! release.

#[doc = include_str!("extract_code.md")]
pub mod extract_code {}

#[doc = include_str!("find_writer.md")]
pub mod find_writer {}

#[doc = include_str!("replace_parameter.md")]
pub mod replace_parameter {}

#[cfg(feature = "inspect")]
#[doc = include_str!("find_loaders.md")]
pub mod find_loaders {}

#[cfg(feature = "runtime")]
#[doc = include_str!("call_function.md")]
pub mod call_function {}

#[cfg(feature = "runtime")]
#[doc = include_str!("implement_device.md")]
pub mod implement_device {}

#[cfg(feature = "suite")]
#[doc = include_str!("judge_loader.md")]
pub mod judge_loader {}
