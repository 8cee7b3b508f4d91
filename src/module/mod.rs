//! Modules: their interface, and loading of compiled libraries of every release.
//!
//! | topic | place | rules |
//! |---|---|---|
//! | names that a library and its loader share | [`symbol_names`] | MOD-01 to MOD-05 |
//! | an opened library and the bounds of its data | `dso` | MOD-01, MOD-05, MOD-18, MOD-26 |
//! | C++ modules in the same process | `cxx` | MOD-10, MOD-15 |
//! | the system library | `system` | MOD-16, MOD-17 |
//! | the module object and its kinds | [`Module`], [`ModuleKind`] | MOD-10, MOD-15 |
//! | lookup | [`Module::function`], [`Module::from_environment`] | MOD-08, MOD-09, MOD-13, MOD-14 |
//! | loading | [`load`], [`register_loader`] | MOD-06, MOD-07, MOD-11, MOD-18 |
//! | constants | kinds `const_loader` and `metadata` | MOD-19 |
//! | parallel launch and barrier | [`parallel`] | MOD-20, MOD-21, MOD-24 |
//! | static initialisation | [`run_once`] | MOD-22 |
//! | workspace | `workspace` | MOD-23 |
//! | lists of values | `any_list` | MOD-27 |
//!
//! ```
//! use tvmspec::module;
//! use tvmspec::object::Tensor;
//!
//! # #[cfg(all(target_arch = "x86_64", target_os = "linux"))] {
//! // SAFETY: the library is trusted code, and `main` is called as it was compiled.
//! let main = unsafe { module::load("golden/module/host-0.27.so") }?.require("main")?;
//! let input = Tensor::from_slice(&[1.0_f32; 12], &[12])?;
//! let output = Tensor::from_slice(&[0.0_f32; 12], &[12])?;
//! main.call((&input, &output))?;
//! assert_eq!(output.to_vec::<f32>()?, [2.0; 12]);
//! # }
//! # Ok::<(), tvmspec::Error>(())
//! ```

pub(crate) mod any_list;
pub(crate) mod builtin;
mod constants;
pub(crate) mod context;
pub(crate) mod cxx;
pub(crate) mod dso;
pub(crate) mod exports;
pub(crate) mod keyed_lock;
mod kind;
pub(crate) mod legacy;
mod library;
mod load;
mod loader_entry;
mod loaders;
mod lookup;
mod object;
mod opaque;
pub mod parallel;
pub mod run_once;
pub mod symbol_names;
mod symbols;
pub(crate) mod system;
pub(crate) mod workspace;

crate::rule::chapter_rules!("module");
pub(crate) use rules::*;

pub(crate) use dso::Dso;
pub use kind::{ModuleKind, property, property_mask};
pub use library::Library;
pub(crate) use load::load_shared;
pub use load::{
    LoadedLibrary, load, load_as, load_library, load_named, load_symbols, system_library,
};
pub use loader_entry::{Loader, LoaderEntry};
pub(crate) use loaders::provide_loader;
pub use loaders::{global_name, has_loader, register_loader};
pub use object::{Module, ModuleObj};
pub use opaque::Opaque;
pub use symbol_names::{Convention, Dialect};
pub use symbols::{Data, SymbolName, Symbols};
