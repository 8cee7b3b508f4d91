//! Models whose plan is read here and whose kernels run there.

use super::session::Session;
use crate::blob::container;
use crate::function::{Error, ErrorKind, Result};
use crate::module::{self, Data, Module, SymbolName, Symbols};
use crate::rule::{Strictness, Violation};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

/// The kinds of modules that executors and machines of this process run: graphs, and executables of the Relax VM.
const PLANS: [&str; 4] = [
    "GraphExecutorFactory",
    "GraphRuntimeFactory",
    "relax.Executable",
    "relax.VMExecutable",
];

impl Session {
    /// Uploads a compiled library as `name`, loads it there, and returns what runs it from here: the graph or the executable in it, which
    /// imports the server's module, or that module where there is neither. No code of the library runs in this process.
    ///
    /// # Errors
    ///
    /// As [`Session::upload`] and [`Session::load_module`]; the rules of blob, import_tree and payload for a library that holds a model.
    pub fn load_model(&self, name: &str, content: Vec<u8>) -> Result<Module> {
        self.upload(name, &content)?;
        let there = self.load_module(name)?;
        Ok(match plan(content)? {
            Some(plan) => {
                // What it imported is code for another machine, and stays unused.
                plan.clear_imports()?;
                plan.import(there)?;
                plan
            }
            None => there,
        })
    }
}

/// The graph or executable of a library, if there is one.
fn plan(content: Vec<u8>) -> Result<Option<Module>> {
    let blobs = StoredSymbols::of(&content)?;
    if blobs.0.is_empty() {
        return Ok(None);
    }
    // SAFETY: these symbols are data of the file alone: there is no function among them, and no address.
    let loaded = unsafe { module::load_symbols(Arc::new(blobs), Strictness::Lenient) }?;
    let mut modules = loaded.module.walk().into_iter();
    Ok(modules.find(|module| PLANS.contains(&&*module.kind())))
}

/// The library binaries of a file that is not opened, by symbol.
struct StoredSymbols(Vec<(String, Vec<u8>)>);

impl StoredSymbols {
    /// The library binary of a file, which is read here and loaded by the server.
    fn of(content: &[u8]) -> Result<StoredSymbols> {
        let file = container::open(content)?;
        let blobs = file.parts.into_iter().flat_map(|part| part.blobs);
        let named = blobs.map(|blob| (blob.symbol, blob.bytes.into_owned()));
        let found: Vec<_> = named.collect();
        match found.len() {
            0 | 1 => Ok(StoredSymbols(found)),
            // A server loads such a file as one, and this process would have to choose.
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
        // The file states how long the symbol is, which the address of a loaded one does not show.
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
