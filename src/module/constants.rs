//! Constants beside the code: kinds `const_loader` and `metadata`.
//!
//! The module keeps tensors by name, and for each function the list of those that it needs. The first time a function is
//! asked for, they are handed to the import that takes them (MOD-19).

use super::loaders::Entry;
use super::{Kind, MOD_19, Module};
use crate::function::{Error, Function};
use crate::object::{Array, Dict, Map, Tensor};
use crate::payload::{self, Field};
use crate::rule::Findings;
use crate::value::Any;
use crate::wire::Cursor;
use std::sync::{Mutex, PoisonError};

struct Constants {
    kind: String,
    payload: Vec<u8>,
    tensors: Map,
    /// The tensors that each function needs, in the order in which it wants them.
    needs: Map,
    /// Functions whose constants were handed over.
    ready: Mutex<Dict>,
}

/// Makes the module of an entry of either kind.
pub(super) fn load(entry: &Entry<'_>) -> Result<Module, Error> {
    let mut cursor = Cursor::new(entry.payload);
    let payload = payload::read(
        entry.kind,
        entry.layout,
        &mut cursor,
        &mut Findings::default(),
    )?;
    let mut tensors = Map::new();
    if let Some(Field::Tensors(stored)) = payload.field("variables") {
        for (name, record) in stored {
            tensors.set(&**name, Tensor::from_record(record)?)?;
        }
    }
    let mut needs = Map::new();
    if let Some(Field::Symbols(symbols)) = payload.field("symbols") {
        for (symbol, listed) in symbols {
            let mut needed = Vec::new();
            for name in listed {
                // `metadata` of 0.7 may list a name without a tensor (PAY-38 holds const_loader to it).
                needed.extend(tensors.get(Any::from(&**name).view())?);
            }
            needs.set(&**symbol, Array::new(needed))?;
        }
    }
    Ok(Module::new(Constants {
        kind: entry.kind.to_owned(),
        payload: entry.payload.to_vec(),
        tensors,
        needs,
        ready: Mutex::new(Dict::new()),
    }))
}

impl Constants {
    /// MOD-19: calls `__init_<symbol>` of the first import that has one, once.
    fn hand_over(&self, module: &Module, symbol: &str) -> Result<(), Error> {
        let key = Any::from(symbol);
        let Some(needed) = self.needs.get(key.view())?.filter(|_| !MOD_19.is_off()) else {
            return Ok(());
        };
        let ready = || self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let ready = ready();
            if ready.get(key.view())?.is_some() {
                return Ok(());
            }
            ready.set(key.clone(), true)?;
        }
        let outcome = self.initialise(module, symbol, needed);
        if outcome.is_err() {
            ready().remove(key.view())?;
        }
        outcome
    }

    fn initialise(&self, module: &Module, symbol: &str, needed: Any) -> Result<(), Error> {
        let name = format!("__init_{symbol}");
        for import in module.imports() {
            let Some(init) = import.function(&name, false)? else {
                continue;
            };
            let result = init.call_with([needed])?;
            // 0 or nothing: it is done.
            return match i64::try_from(&result) {
                Ok(code) if code != 0 => Err(Error::new(
                    "RuntimeError",
                    format!("`{name}` refused its constants with code {code}"),
                )),
                _ => Ok(()),
            };
        }
        Ok(())
    }
}

impl Kind for Constants {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn function(&self, module: &Module, name: &str) -> Result<Option<Function>, Error> {
        if name == "get_const_var_ndarray" {
            let map = Any::from(self.tensors.clone());
            return Ok(Some(Function::from_packed(move |_| Ok(map.clone()))));
        }
        self.hand_over(module, name)?;
        for import in module.imports() {
            if let Some(function) = import.function(name, false)? {
                return Ok(Some(function));
            }
        }
        Ok(None)
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        Ok(self.payload.clone())
    }
}
