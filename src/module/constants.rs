//! Constants that are stored next to the code: kinds `const_loader` and `metadata`.
//!
//! The module has tensors by name, and for each function the list of the tensors that it needs. When a function is first looked up,
//! they are passed to the import that initializes it (MOD-19).

use super::keyed_lock::KeyedLock;
use super::loader_entry::LoaderEntry;
use super::{Module, ModuleKind};
use crate::function::{Error, ErrorKind, Function};
use crate::object::{Array, Map, Tensor};
use crate::payload::{self, Field};
use crate::release::Layout;
use crate::rule::{Findings, Kind};
use crate::value::{Any, VAL_19};
use crate::wire::Cursor;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A module of kind `const_loader`: constants, and the constants that each function needs (MOD-19).
struct Constants {
    kind: String,
    /// Name of the function that returns all tensors by name; it contains the name of the tensor class (MOD-19).
    all: &'static str,
    payload: Vec<u8>,
    /// True if the compiled code of the blob's layout uses the old object layout (VAL-19).
    is_legacy: bool,
    /// Tensors in the order of the file.
    tensors: NamedValues,
    /// All tensors as a map, created when its function is first looked up.
    map: OnceLock<Map>,
    /// The tensors that each function needs, in the order in which it expects them.
    needs: Sorted,
    /// True at the index of a function whose constants were passed.
    ready: Mutex<Vec<bool>>,
    /// Functions whose initializer runs.
    turns: KeyedLock<usize>,
}

/// Values in ascending order of their names. It is not a hash map, because the hash of values is public, and a file could choose 20,000
/// names that collide.
struct Sorted(NamedValues);

type NamedValues = Vec<(Box<str>, Any)>;

impl Sorted {
    /// Sorts the pairs. Of two with the same name the later one is used (PAY-37).
    fn of(pairs: &NamedValues) -> Sorted {
        let names = pairs.iter().map(|(name, _)| &**name);
        let mut order: Vec<(&str, usize)> = names.zip(0..).collect();
        order.sort_unstable();
        let places = order.iter().enumerate().filter(|(at, (name, _))| {
            let next = order.get(at + 1);
            next.is_none_or(|(next, _)| next != name)
        });
        Sorted(
            places
                .map(|(_, (_, place))| pairs[*place].clone())
                .collect(),
        )
    }

    fn find_index(&self, name: &str) -> Option<usize> {
        self.0
            .binary_search_by(|(known, _)| (**known).cmp(name))
            .ok()
    }
}

/// Creates the module of an entry of either kind.
pub(super) fn load(entry: &LoaderEntry<'_>) -> Result<Module, Error> {
    let mut cursor = Cursor::new(entry.payload);
    let payload = payload::read(
        entry.kind,
        entry.layout,
        &mut cursor,
        &mut Findings::default(),
    )?;
    let mut tensors = Vec::new();
    if let Some(Field::Tensors(stored)) = payload.field("variables") {
        for (name, record) in stored {
            tensors.push((Box::from(&**name), Tensor::from_record(record)?.into()));
        }
    }
    let by_name = Sorted::of(&tensors);
    let mut needs = Vec::new();
    if let Some(Field::Symbols(symbols)) = payload.field("symbols") {
        for (symbol, listed) in symbols {
            let mut needed = Vec::new();
            for name in listed {
                // `metadata` of 0.7 may list a name without a tensor; for const_loader PAY-38 forbids this.
                let found = by_name.find_index(name).map(|at| by_name.0[at].1.clone());
                needed.extend(found);
            }
            needs.push((Box::from(&**symbol), Array::new(needed).into()));
        }
    }
    let needs = Sorted::of(&needs);
    Ok(Module::new(Constants {
        kind: entry.kind.to_owned(),
        // MOD-19: the module does not have the other name, so that code of each era finds only its own.
        all: match entry.layout {
            Layout::V0_22 => "get_const_var_tensor",
            Layout::V0_2 | Layout::V0_7 | Layout::V0_21 => "get_const_var_ndarray",
        },
        payload: entry.payload.to_vec(),
        is_legacy: entry.layout <= Layout::V0_7,
        tensors,
        map: OnceLock::new(),
        ready: Mutex::new(vec![false; needs.0.len()]),
        turns: KeyedLock::new(),
        needs,
    }))
}

impl Constants {
    /// Calls `__init_<symbol>` of the first import that has it, once (MOD-19).
    fn pass_constants(&self, module: &Module, symbol: &str) -> Result<(), Error> {
        let Some(at) = self.needs.find_index(symbol) else {
            return Ok(());
        };
        // The initializer may look up this symbol again, which must not call it a second time. Another thread waits until the constants are
        // passed.
        let Some(_turn) = self.turns.take(&at) else {
            return Ok(());
        };
        // Locked only for each access: the initializer runs in between, and may look up other symbols.
        let ready = || self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if ready()[at] {
            return Ok(());
        }
        let needed = self.needs.0[at].1.clone();
        self.initialise(module, symbol, needed)?;
        // MOD-19: set after the call: if an initializer fails, the next lookup calls it again.
        ready()[at] = true;
        Ok(())
    }

    /// Returns all constants by name, in a map that is created once.
    fn all(&self) -> Result<Map, Error> {
        if let Some(known) = self.map.get() {
            return Ok(known.clone());
        }
        let mut map = Map::new();
        for (name, tensor) in &self.tensors {
            map.set_untrusted(&**name, tensor.clone())?;
        }
        // Two threads may each have created a map. All callers get the map that was set first.
        Ok(self.map.get_or_init(|| map).clone())
    }

    /// Passes the constants to the initializer of a function, which is in one of the imports. A function without an initializer needs none.
    fn initialise(&self, module: &Module, symbol: &str, needed: Any) -> Result<(), Error> {
        let name = format!("__init_{symbol}");
        for import in module.imports() {
            let Some(init) = import.function(&name, false)? else {
                continue;
            };
            // Compiled code reads the array in place, and would misread our object header, because its era has another layout.
            if self.is_legacy && import.kind() == "library" {
                let message = format!("`{name}` of compiled code up to 0.20 takes an array object");
                return Err(VAL_19.rejected(Kind::Unsupported, message).into());
            }
            let result = init.call([needed])?;
            // MOD-19: an integer other than 0 is a failure; a missing result counts as 0.
            return match i64::try_from(&result) {
                Ok(code) if code != 0 => Err(Error::new(
                    ErrorKind::Runtime,
                    format!("`{name}` returned code {code} for its constants"),
                )),
                _ => Ok(()),
            };
        }
        Ok(())
    }
}

impl ModuleKind for Constants {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn function(&self, module: &Module, name: &str) -> Result<Option<Function>, Error> {
        if name == self.all {
            let map = Any::from(self.all()?);
            return Ok(Some(Function::from_packed(move |_| Ok(map.clone()))));
        }
        self.pass_constants(module, name)?;
        for import in module.imports() {
            // MOD-19: searches only the imports themselves, as in releases; a lookup with imports searches deeper by itself (MOD-08).
            if let Some(function) = import.function(name, false)? {
                return Ok(Some(function));
            }
        }
        Ok(None)
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        // MOD-19: returns the loaded bytes: releases write the names in the order of a hash table, on which no reader can rely.
        Ok(self.payload.clone())
    }
}
