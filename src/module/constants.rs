//! Constants beside the code: kinds `const_loader` and `metadata`.
//!
//! The module keeps tensors by name, and for each function the list of those that it needs. The first time a function is
//! asked for, they are handed to the import that takes them (MOD-19).

use super::loaders::Entry;
use super::{Kind, MOD_19, Module};
use crate::function::{Error, Function};
use crate::object::{Array, Map, Tensor};
use crate::payload::{self, Field};
use crate::rule::Findings;
use crate::tensor::TensorRecord;
use crate::value::{Any, DLDataType};
use crate::wire::Cursor;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

struct Constants {
    kind: String,
    payload: Vec<u8>,
    tensors: Vec<(String, Tensor)>,
    /// By symbol, ascending.
    needs: Vec<Need>,
}

/// What a function needs.
struct Need {
    symbol: String,
    /// In the order in which it wants them.
    tensors: Vec<Tensor>,
    /// Whether they were handed over.
    ready: AtomicBool,
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
    let mut tensors = Vec::new();
    if let Some(Field::Tensors(stored)) = payload.field("variables") {
        for (name, record) in stored {
            tensors.push((name.to_string(), tensor_of(record)?));
        }
    }
    let by_name: HashMap<&str, &Tensor> = tensors
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor))
        .collect();
    let mut needs = Vec::new();
    if let Some(Field::Symbols(symbols)) = payload.field("symbols") {
        for (symbol, listed) in symbols {
            // `metadata` of 0.7 may list a name without a tensor (PAY-38 holds const_loader to it).
            let listed = listed
                .iter()
                .filter_map(|name| by_name.get(&**name).map(|tensor| (*tensor).clone()));
            needs.push(Need {
                symbol: symbol.to_string(),
                tensors: listed.collect(),
                ready: AtomicBool::new(false),
            });
        }
    }
    needs.sort_by(|one, other| one.symbol.cmp(&other.symbol));
    Ok(Module::new(Constants {
        kind: entry.kind.to_owned(),
        payload: entry.payload.to_vec(),
        tensors,
        needs,
    }))
}

/// A tensor object with the record's data.
pub(crate) fn tensor_of(record: &TensorRecord<'_>) -> Result<Tensor, Error> {
    let dtype = record.dtype();
    let dtype = DLDataType {
        code: dtype.code,
        bits: dtype.bits,
        lanes: dtype.lanes,
    };
    let tensor = Tensor::empty(record.shape(), dtype)?;
    tensor.fill(record.data())?;
    Ok(tensor)
}

impl Constants {
    /// MOD-19: calls `__init_<symbol>` of the first import that has one, once.
    fn hand_over(&self, module: &Module, symbol: &str) -> Result<(), Error> {
        // Of two that say the same symbol the last counts.
        let behind = self.needs.partition_point(|need| *need.symbol <= *symbol);
        let Some(need) = self.needs[..behind].last() else {
            return Ok(());
        };
        if need.symbol != symbol || MOD_19.is_off() || need.ready.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let outcome = self.initialise(module, symbol, &need.tensors);
        if outcome.is_err() {
            need.ready.store(false, Ordering::Release);
        }
        outcome
    }

    fn initialise(&self, module: &Module, symbol: &str, needed: &[Tensor]) -> Result<(), Error> {
        let name = format!("__init_{symbol}");
        for import in module.imports() {
            let Some(init) = import.function(&name, false)? else {
                continue;
            };
            let tensors = Array::new(needed.iter().cloned().map(Any::from).collect::<Vec<Any>>());
            let result = init.call_with([Any::from(tensors.into_object())])?;
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
            let mut map = Map::new();
            for (name, tensor) in &self.tensors {
                map.set(name.as_str(), tensor.clone())?;
            }
            let map = Any::from(map.into_object());
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
