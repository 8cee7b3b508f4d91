//! The functions that read the payload of each kind.

use super::loader_entry::{Loader, LoaderEntry};
use super::{Dialect, Module, Opaque};
use crate::function::{Error, ErrorKind, Function, registry};
use crate::payload;
use crate::release::Layout;
use crate::rule::Findings;
use crate::value::{Bytes, index};
use crate::wire::Cursor;
use std::sync::{PoisonError, RwLock};

/// There are few, so that a linear search is faster than hashing.
type LoaderTable = RwLock<Vec<(String, Loader)>>;

static REGISTERED: LoaderTable = RwLock::new(Vec::new());
static PROVIDED: LoaderTable = RwLock::new(Vec::new());

/// Registers `loader` for entries of `kind`. It takes precedence over the global registry.
pub fn register_loader(kind: &str, loader: Loader) {
    enter(&REGISTERED, kind, loader);
}

/// Registers a loader like [`register_loader`], for lower chapters of this crate. The global registry takes precedence, because another
/// runtime in the process provides its own loaders.
pub(crate) fn provide_loader(kind: &str, loader: Loader) {
    enter(&PROVIDED, kind, loader);
}

fn enter(table: &LoaderTable, kind: &str, loader: Loader) {
    let mut loaders = table.write().unwrap_or_else(PoisonError::into_inner);
    match loaders.iter_mut().find(|(known, _)| known == kind) {
        Some((_, known)) => *known = loader,
        None => loaders.push((kind.to_owned(), loader)),
    }
}

/// Returns whether entries of `kind` in libraries of `layout` become modules that are not opaque.
pub fn has_loader(kind: &str, layout: Layout) -> bool {
    // The global lookup comes first, because it installs the loaders of this crate.
    global(kind, layout).is_some()
        || find_loader(&REGISTERED, kind)
            .or(builtin_loader(kind))
            .is_some()
}

/// Returns the name of the global function that reads entries of `kind` in libraries of `layout` (MOD-11).
pub fn global_name(kind: &str, layout: Layout) -> String {
    [Dialect::of(layout).loader, kind].concat()
}

/// Returns the function with that name, if there is one.
fn global(kind: &str, layout: Layout) -> Option<Function> {
    registry::lookup(&global_name(kind, layout))
}

/// The loaders for one library. Each kind is looked up once.
#[derive(Default)]
pub(super) struct Loaders<'a> {
    /// There are few, so that a linear search is faster than hashing.
    known: Vec<(&'a str, LoaderSource)>,
}

enum LoaderSource {
    Registered(Loader),
    Global(Function),
    None,
}

impl<'a> Loaders<'a> {
    /// Creates the module of `entry`: with a registered loader, the global registry, a loader of this crate, or as an opaque module
    /// (MOD-11).
    #[inline]
    pub(super) fn load(&mut self, entry: &LoaderEntry<'a>) -> Result<Module, Error> {
        match self.source(entry) {
            LoaderSource::Registered(loader) => loader(entry),
            LoaderSource::Global(function) => {
                // MOD-11: from 0.22 on the argument is bytes; before, a stream from which the loader reads its own part.
                let made = if entry.layout >= Layout::V0_22 {
                    let bytes = Bytes::new(entry.payload);
                    function.call_packed(&[(&bytes).into()])?
                } else {
                    // Releases pass the stream of the whole blob. This one ends with the payload, so that no loader reads the next entry.
                    let mut stream = super::cxx::stream::PayloadStream::new(entry.payload);
                    function.call_packed(&[stream.handle()])?
                };
                into_module(made, entry)
            }
            // MOD-11: releases reject the whole library here.
            LoaderSource::None => Ok(opaque(entry, global_name(entry.kind, entry.layout))),
        }
    }

    /// Returns the loader of a kind, which is looked up once for all entries of a blob. A loader that is registered meanwhile has no
    /// effect.
    fn source(&mut self, entry: &LoaderEntry<'a>) -> &LoaderSource {
        let known = self.known.iter().position(|(kind, _)| *kind == entry.kind);
        let at = known.unwrap_or_else(|| {
            self.known.push((entry.kind, LoaderSource::find(entry)));
            self.known.len() - 1
        });
        &self.known[at].1
    }
}

impl LoaderSource {
    /// Returns the loader of an entry (MOD-11). A Rust loader has precedence, then the global function of the layout, and last the
    /// loaders of this crate.
    fn find(entry: &LoaderEntry<'_>) -> LoaderSource {
        if let Some(loader) = find_loader(&REGISTERED, entry.kind) {
            return LoaderSource::Registered(loader);
        }
        match global(entry.kind, entry.layout) {
            Some(function) => LoaderSource::Global(function),
            None => builtin_loader(entry.kind).map_or(LoaderSource::None, LoaderSource::Registered),
        }
    }
}

/// Returns the module that a loader created. Any other result is an error that names the loader.
fn into_module(made: crate::value::Any, entry: &LoaderEntry<'_>) -> Result<Module, Error> {
    let type_index = made.type_index();
    let module = made
        .into_object()
        .ok()
        .and_then(|object| Module::from_object(object).ok());
    module.ok_or_else(|| {
        let loader = global_name(entry.kind, entry.layout);
        let key = crate::value::types::key_of(type_index);
        debug_assert_ne!(type_index, index::MODULE);
        let text = format!(
            "Cannot convert from type `{key}` to `ffi.Module`: `{loader}` must return a module"
        );
        Error::new(ErrorKind::Type, text)
    })
}

/// Returns the loader of a kind that this process has registered.
fn find_loader(table: &LoaderTable, kind: &str) -> Option<Loader> {
    let loaders = table.read().unwrap_or_else(PoisonError::into_inner);
    let mut found = loaders.iter().filter(|(known, _)| known == kind);
    // Copied, because a loader runs without the lock and may register another one.
    found.next().map(|(_, loader)| *loader)
}

fn builtin_loader(kind: &str) -> Option<Loader> {
    match kind {
        "const_loader" | "metadata" => Some(super::constants::load),
        _ => find_loader(&PROVIDED, kind),
    }
}

/// Creates a module without a loader. If its payload has a grammar, the module knows the names of its functions, and a call states the
/// missing loader (MOD-11).
fn opaque(entry: &LoaderEntry<'_>, loader: String) -> Module {
    let mut cursor = Cursor::new(entry.payload);
    let decoded = payload::read(
        entry.kind,
        entry.layout,
        &mut cursor,
        &mut Findings::default(),
    );
    // MOD-11: the functions of a kind without a grammar are unknown. The rest of the library is loaded nevertheless.
    let functions = decoded
        .map(|payload| function_names(&payload))
        .unwrap_or_default();
    Module::new(Opaque::new(
        entry.kind,
        entry.payload,
        functions,
        loader,
        entry.layout,
    ))
}

fn function_names(payload: &payload::Payload<'_>) -> Vec<String> {
    payload
        .functions()
        .map(|(name, _)| name.to_owned())
        .collect()
}
