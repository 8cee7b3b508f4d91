//! Lookup of functions: in a module, through its imports, and from compiled code.

use super::cxx::virtual_calls;
use super::{MOD_09, MOD_13, Module};
use crate::function::{Error, ErrorKind, Function, registry};
use crate::object::VisitedObjects;
use crate::release::Release;
use crate::rule;
use std::sync::PoisonError;

impl Module {
    /// Returns the kind: `library`, `cuda`, ...
    pub fn kind(&self) -> String {
        match self.implementation() {
            Some(own) => own.kind().to_owned(),
            None => virtual_calls::kind(self),
        }
    }

    /// Returns bits of [`super::property`] (MOD-15).
    pub fn property_mask(&self) -> u32 {
        match self.implementation() {
            Some(own) => own.property_mask(),
            None => virtual_calls::property_mask(self),
        }
    }

    /// Returns the names of the module's own functions, for example those that a compiled library exports. Returns `None` if this kind
    /// cannot list them. [`Module::function`] may then find functions nevertheless. [`Module::walk`] reaches the imports.
    ///
    /// ```
    /// # #[cfg(all(target_arch = "x86_64", target_os = "linux"))] {
    /// // SAFETY: the library is trusted code, and none of its functions is called.
    /// let module = unsafe { tvmspec::module::load("golden/module/host-0.8.so") }?;
    /// assert!(module.functions().unwrap().contains(&"add1".to_owned()));
    /// # }
    /// # Ok::<(), tvmspec::Error>(())
    /// ```
    pub fn functions(&self) -> Option<Vec<String>> {
        self.implementation()?.functions()
    }

    /// Returns the function `name`: the module's own, or with `query_imports` the first one in its imports (MOD-08).
    ///
    /// # Errors
    ///
    /// Returns the error of the first module that fails, which ends the lookup.
    pub fn function(&self, name: &str, query_imports: bool) -> Result<Option<Function>, Error> {
        self.first(query_imports, |module| module.own_function(name))
    }

    /// Looks up a function like [`Module::function`] with imports, and fails if there is no such function.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Module::function`], and an AttributeError if no module has the function.
    pub fn require(&self, name: &str) -> Result<Function, Error> {
        self.function(name, true)?.ok_or_else(|| {
            let text = format!("Module[{}] has no function `{name}`", self.kind());
            Error::new(ErrorKind::Attribute, text)
        })
    }

    /// Returns whether a function `name` exists.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Module::function`].
    pub fn implements(&self, name: &str, query_imports: bool) -> Result<bool, Error> {
        self.search(query_imports, &mut |module| match module.implementation() {
            Some(own) => own.implements(module, name),
            None => virtual_calls::implements(module, name),
        })
    }

    /// Returns the JSON metadata of the function `name`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Module::function`].
    pub fn metadata(&self, name: &str, query_imports: bool) -> Result<Option<String>, Error> {
        self.first(query_imports, |module| match module.implementation() {
            Some(own) => own.metadata(module, name),
            None => virtual_calls::metadata(module, name),
        })
    }

    /// Returns the documentation of the function `name`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Module::function`].
    pub fn doc(&self, name: &str, query_imports: bool) -> Result<Option<String>, Error> {
        self.first(query_imports, |module| match module.implementation() {
            Some(own) => own.doc(module, name),
            None => virtual_calls::doc(module, name),
        })
    }

    /// Returns the source text in `format`; empty if there is no source.
    ///
    /// # Errors
    ///
    /// Returns errors of the kind, for example for an unknown format.
    pub fn source(&self, format: &str) -> Result<String, Error> {
        match self.implementation() {
            Some(own) => own.source(format),
            None => virtual_calls::source(self, format),
        }
    }

    /// Returns the payload that a loader of this kind reads back.
    ///
    /// # Errors
    ///
    /// Returns a RuntimeError for a kind that cannot be saved; for a C++ module its exception, and a TypeError if it returns no bytes.
    pub fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        match self.implementation() {
            Some(own) => own.save_to_bytes(),
            None => virtual_calls::save_to_bytes(self),
        }
    }

    /// Writes the module to a file in `format`.
    ///
    /// # Errors
    ///
    /// Returns a RuntimeError for a kind that cannot be written; errors of the system for `path`; exceptions of a C++ module.
    pub fn write_to_file(&self, path: &str, format: &str) -> Result<(), Error> {
        match self.implementation() {
            Some(own) => own.write_to_file(path, format),
            None => virtual_calls::write_to_file(self, path, format),
        }
    }

    /// Returns the formats that [`Module::write_to_file`] supports.
    ///
    /// # Errors
    ///
    /// Exceptions of a C++ module; the kinds of this crate return no error.
    pub fn write_formats(&self) -> Result<Vec<String>, Error> {
        match self.implementation() {
            Some(own) => Ok(own.write_formats()),
            None => virtual_calls::write_formats(self),
        }
    }

    /// Returns this module and all modules that it imports directly or indirectly, depth first, each once.
    pub fn walk(&self) -> Vec<Module> {
        let mut all = Vec::new();
        let _ = self.search(true, &mut |module| {
            all.push(module.clone());
            Ok(false)
        });
        all
    }

    fn own_function(&self, name: &str) -> Result<Option<Function>, Error> {
        match self.implementation() {
            Some(own) => own.function(self, name),
            None => virtual_calls::function(self, name),
        }
    }

    /// Returns the first result of this module or of its imports, in the order of [`Module::search`].
    fn first<T>(
        &self,
        query_imports: bool,
        mut query: impl FnMut(&Module) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let mut found = None;
        self.search(query_imports, &mut |module| {
            found = query(module)?;
            Ok(found.is_some())
        })?;
        Ok(found)
    }

    /// Calls `matches` with this module and then with its imports, depth first and in order, each once, until it returns true (MOD-08,
    /// MOD-09).
    fn search(
        &self,
        query_imports: bool,
        matches: &mut dyn FnMut(&Module) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        // MOD-08: the module comes before its imports. 0.7 continued after a match, so that the last import won.
        if matches(self)? {
            return Ok(true);
        }
        if !query_imports {
            return Ok(false);
        }
        let seen = VisitedObjects::new();
        // MOD-09: each module once. 28 nested diamonds, for which releases need minutes, are only 85 modules here.
        seen.add(self.as_object())?;
        let mut open = self.imports();
        open.reverse();
        while let Some(module) = open.pop() {
            if !seen.add(module.as_object())? {
                continue;
            }
            if matches(&module)? {
                return Ok(true);
            }
            let before = open.len();
            open.extend(module.imports());
            // The top of the stack comes next: the first import of this module (MOD-08).
            open[before..].reverse();
            if open.len() > ENDLESS {
                let text = "the imports form a cycle: a lookup would not end";
                return Err(MOD_09.rejected(rule::Kind::Cycle, text).into());
            }
        }
        Ok(false)
    }

    /// Resolves `name` for compiled code of this module: a function of an import, otherwise the global one (MOD-13).
    ///
    /// Follows the rules of `release`: indirect imports are searched from 0.7 on, and functions of the registry are cached from 0.21 on
    /// (MOD-14).
    ///
    /// # Errors
    ///
    /// Returns MOD-13 (missing) for a name that neither an import nor the registry has, and for a name that [`registry::lookup`] hides
    /// from safe code. Also returns errors of the lookup in an import.
    pub fn from_environment(&self, name: &str, release: Release) -> Result<Function, Error> {
        if registry::is_raw(name.as_bytes()) {
            let text = format!("{name} is looked up by compiled code alone");
            return Err(MOD_13.rejected(rule::Kind::Missing, text).into());
        }
        // SAFETY: the test above excludes the names of functions that cannot check their arguments.
        unsafe { self.environment(name, release) }
    }

    /// Implements [`Module::from_environment`] for every name.
    ///
    /// # Safety
    ///
    /// As for [`registry::lookup_raw`].
    pub(crate) unsafe fn environment(
        &self,
        name: &str,
        release: Release,
    ) -> Result<Function, Error> {
        if let Some(body) = self.body() {
            let found = body.found.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(at) = place_of(&found, name) {
                return Ok(found[at].1.clone());
            }
        }
        // MOD-13: the module itself is skipped, and up to 0.6 only direct imports are searched. No lock is held, because a kind may load
        // code or call back.
        let deep = release >= Release::of(7);
        let mut imported = None;
        for module in self.imports() {
            if imported.is_some() {
                break;
            }
            imported = module.function(name, deep)?;
        }
        let from_import = imported.is_some();
        let global = || {
            // SAFETY: as for this function.
            unsafe { registry::lookup_raw(name.as_bytes()) }
        };
        let function = imported.or_else(global).ok_or_else(|| {
            let text =
                format!("Cannot find function {name} in the imported modules or global registry.");
            Error::from(MOD_13.rejected(rule::Kind::Missing, text))
        })?;
        // MOD-14: up to 0.20 a global function is looked up every time, so that an override takes effect.
        let keeps = from_import || release >= Release::of(21);
        if let Some(body) = self.body().filter(|_| keeps) {
            let mut found = body.found.lock().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have been first; then its result is kept.
            let at = place_of(&found, name).unwrap_or_else(|at| {
                found.insert(at, (name.into(), function));
                at
            });
            return Ok(found[at].1.clone());
        }
        Ok(function)
    }
}

/// Returns the index of the function of `name`, or the index at which to insert it.
fn place_of(found: &[(Box<str>, Function)], name: &str) -> Result<usize, usize> {
    found.binary_search_by(|(known, _)| (**known).cmp(name))
}

impl Module {
    /// Keeps `function` alive as long as this module, under no name.
    pub(crate) fn keep_alive(&self, function: &Function) {
        if let Some(body) = self.body() {
            let mut kept = body.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let object = function.as_object().as_ptr();
            // Added only once, even if compiled code looks it up often, because the list lives as long as the module.
            if !kept
                .iter()
                .any(|known| known.as_object().as_ptr() == object)
            {
                kept.push(function.clone());
            }
        }
    }
}

/// Limit of modules on the stack of a search, which is only exceeded with MOD-09 switched off.
const ENDLESS: usize = 10_000_000;
