//! Constants beside the code: kinds `const_loader` and `metadata`.
//!
//! The module keeps tensors by name, and for each function the list of those that it needs. The first time a function is
//! looked up, they are passed to the import that takes them (MOD-19).

use super::entry::LoaderEntry;
use super::turns::Turns;
use super::{Module, ModuleKind};
use crate::function::{Error, ErrorKind, Function};
use crate::object::{Array, Map, Tensor};
use crate::payload::{self, Field};
use crate::release::Layout;
use crate::rule::{Findings, Kind};
use crate::value::{Any, VAL_19};
use crate::wire::Cursor;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A module of kind `const_loader`: constants, and which function needs which of them (MOD-19).
struct Constants {
    kind: String,
    /// The function that returns all tensors by name: its name follows that of the class of tensors (MOD-19).
    all: &'static str,
    payload: Vec<u8>,
    /// Whether the blob is of a layout whose compiled code lives in the old object world (VAL-19).
    is_legacy: bool,
    /// As the file has them.
    tensors: NamedValues,
    /// All of them as a map, made when the function for it is first looked up.
    map: OnceLock<Map>,
    /// The tensors that each function needs, in the order in which it wants them.
    needs: Sorted,
    /// Whether those of the function at this place were passed.
    ready: Mutex<Vec<bool>>,
    /// Of functions whose initialiser runs.
    turns: Turns<usize>,
}

/// By name, ascending. No map of values: its hash is public, and a file chooses the names, so that 20,000 of them could
/// take as many steps each.
struct Sorted(NamedValues);

type NamedValues = Vec<(Box<str>, Any)>;

impl Sorted {
    /// Of two with one name, the later (PAY-37).
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

    fn place(&self, name: &str) -> Option<usize> {
        self.0
            .binary_search_by(|(known, _)| (**known).cmp(name))
            .ok()
    }
}

/// Makes the module of an entry of either kind.
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
                // `metadata` of 0.7 may list a name without a tensor (PAY-38 holds const_loader to it).
                let found = by_name.place(name).map(|at| by_name.0[at].1.clone());
                needed.extend(found);
            }
            needs.push((Box::from(&**symbol), Array::new(needed).into()));
        }
    }
    let needs = Sorted::of(&needs);
    Ok(Module::new(Constants {
        kind: entry.kind.to_owned(),
        // MOD-19: the other name is no function of the module, so that code of either era finds its own alone.
        all: match entry.layout {
            Layout::V0_22 => "get_const_var_tensor",
            Layout::V0_2 | Layout::V0_7 | Layout::V0_21 => "get_const_var_ndarray",
        },
        payload: entry.payload.to_vec(),
        is_legacy: entry.layout <= Layout::V0_7,
        tensors,
        map: OnceLock::new(),
        ready: Mutex::new(vec![false; needs.0.len()]),
        turns: Turns::new(),
        needs,
    }))
}

impl Constants {
    /// MOD-19: calls `__init_<symbol>` of the first import that has one, once.
    fn pass_constants(&self, module: &Module, symbol: &str) -> Result<(), Error> {
        let Some(at) = self.needs.place(symbol) else {
            return Ok(());
        };
        // The initialiser may look this symbol up again, and must not be called once more. Another thread waits for its constants.
        let Some(_turn) = self.turns.take(&at) else {
            return Ok(());
        };
        // Locked for each look alone: the initialiser runs in between, and may look other symbols up.
        let ready = || self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if ready()[at] {
            return Ok(());
        }
        let needed = self.needs.0[at].1.clone();
        self.initialise(module, symbol, needed)?;
        // MOD-19: behind the call: where an initialiser fails, the next lookup calls it again.
        ready()[at] = true;
        Ok(())
    }

    /// All constants by name, made once.
    fn all(&self) -> Result<Map, Error> {
        if let Some(known) = self.map.get() {
            return Ok(known.clone());
        }
        let mut map = Map::new();
        for (name, tensor) in &self.tensors {
            map.set_untrusted(&**name, tensor.clone())?;
        }
        // Two threads may have made one each: the first that is set is what every caller gets.
        Ok(self.map.get_or_init(|| map).clone())
    }

    /// Passes its constants to the initialiser of a function, which is in one of the imports; a function without one needs none.
    fn initialise(&self, module: &Module, symbol: &str, needed: Any) -> Result<(), Error> {
        let name = format!("__init_{symbol}");
        for import in module.imports() {
            let Some(init) = import.function(&name, false)? else {
                continue;
            };
            // Compiled code reads the array where it lies, and would take our header for the one of its world.
            if self.is_legacy && import.kind() == "library" {
                let message = format!("`{name}` of compiled code up to 0.20 takes an array object");
                return Err(VAL_19.rejected(Kind::Unsupported, message).into());
            }
            let result = init.call_with([needed])?;
            // MOD-19: an integer other than 0 is a failure; no result counts as 0.
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
            // MOD-19: the imports themselves, as in releases; a lookup with imports goes further down by itself (MOD-08).
            if let Some(function) = import.function(name, false)? {
                return Ok(Some(function));
            }
        }
        Ok(None)
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        // MOD-19: as it was loaded: releases write the names in the order of a hash table, which no reader can rely on.
        Ok(self.payload.clone())
    }
}
