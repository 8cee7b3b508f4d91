//! Models whose graph or executable is interpreted here and whose kernels run on the server.

use super::session::Session;
use crate::blob::container;
use crate::function::{Error, ErrorKind, Result};
use crate::module::{self, Data, Module, SymbolName, Symbols};
use crate::rule::{Strictness, Violation};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

/// The kinds of modules that executors and virtual machines of this process run: graphs, and executables of the Relax VM.
const PLANS: [&str; 4] = [
    "GraphExecutorFactory",
    "GraphRuntimeFactory",
    "relax.Executable",
    "relax.VMExecutable",
];

impl Session {
    /// Uploads a compiled library as `name` and loads it on the server. Returns the graph or executable in it, which imports the server's
    /// module; without one, returns the server's module itself. No code of the library runs in this process.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Session::upload`] and [`Session::load_module`]. A library that contains a model may also break rules of the
    /// chapters blob, import_tree and payload.
    pub fn load_model(&self, name: &str, content: Vec<u8>) -> Result<Module> {
        self.upload(name, &content)?;
        let there = self.load_module(name)?;
        Ok(match plan(content)? {
            Some(plan) => {
                // Its own imports are code for another machine and are not used.
                plan.clear_imports()?;
                plan.import(there)?;
                plan
            }
            None => there,
        })
    }
}

/// Returns the graph or executable of a library, if there is one.
fn plan(content: Vec<u8>) -> Result<Option<Module>> {
    let blobs = StoredSymbols::read_library(&content)?;
    if blobs.0.is_empty() {
        return Ok(None);
    }
    // SAFETY: these symbols are only data of the file. None of them is a function or an address.
    let loaded = unsafe { module::load_symbols(Arc::new(blobs), Strictness::Lenient) }?;
    let mut modules = loaded.module.walk().into_iter();
    Ok(modules.find(|module| PLANS.contains(&&*module.kind())))
}

/// The library binaries of a file that is not loaded, by symbol.
struct StoredSymbols(Vec<(String, Vec<u8>)>);

impl StoredSymbols {
    /// Reads the library binary of a file, which only the server loads.
    fn read_library(content: &[u8]) -> Result<StoredSymbols> {
        let file = container::open(content)?;
        let blobs = file.parts.into_iter().flat_map(|part| part.blobs);
        let named = blobs.map(|blob| (blob.symbol, blob.bytes.into_owned()));
        let found: Vec<_> = named.collect();
        match found.len() {
            0 | 1 => Ok(StoredSymbols(found)),
            // A server loads such a file as a whole, but this process would have to choose one binary.
            several => Err(Error::new(
                ErrorKind::Value,
                format!("the file has {several} library binaries: a model has one"),
            )),
        }
    }
}

impl Symbols for StoredSymbols {
    fn address(&self, _name: SymbolName<'_>) -> Option<NonNull<c_void>> {
        None
    }

    fn data(&self, name: SymbolName<'_>) -> std::result::Result<Option<Data<'_>>, Violation> {
        let found = self.0.iter().find(|(symbol, _)| symbol == name.text());
        // The file states the length of the symbol, which the address of a loaded symbol does not show.
        Ok(found.map(|(_, bytes)| Data { bytes, exact: true }))
    }

    fn is_code(&self, _address: NonNull<c_void>) -> bool {
        false
    }

    fn is_writable(&self, _address: NonNull<c_void>, _bytes: usize) -> bool {
        false
    }

    fn list(&self) -> Vec<(String, bool)> {
        self.0
            .iter()
            .map(|(symbol, _)| (symbol.clone(), false))
            .collect()
    }

    fn describe(&self) -> String {
        "the library that was uploaded".to_owned()
    }
}
