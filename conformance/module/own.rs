//! What no C function can be asked about modules: ours, through the Rust interface.

use crate::function::{Error, Function};
use crate::module::workspace::{self, Request};
use crate::module::{Kind, Module, Name, Symbols, property_mask, system};
use crate::release::Release;
use crate::value::{Any, AnyView, cast};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;

/// `numbers` makes a module out of its number and the names of functions, each of which returns the number; `asked` returns
/// the numbers of the modules that were asked for a function since, as text. `environment` is the lookup of compiled code
/// in a module, under a name, by a release; `mask` the properties of a kind, by a release, with its runtime there or not.
/// `host` says whether workspace is aligned that is taken where no device is. `register` names an address in the system
/// library and says whether another had the name; `address` returns what a prefix and a name lead to there.
pub(in crate::conformance) fn function(name: &str) -> Option<Function> {
    Some(match name {
        "numbers" => Function::from_packed(|args| {
            let [number, names @ ..] = args else {
                return Err(Error::new("TypeError", "a number, and names"));
            };
            let number: i64 = cast(*number)?;
            let names = names
                .iter()
                .map(|name| Ok((cast::<String>(*name)?, number)));
            let functions = names.collect::<Result<_, Error>>()?;
            Ok(numbers(number, functions).into())
        }),
        "asked" => Function::from_packed(|_| {
            let asked = ASKED.take();
            Ok(serde_json::json!(asked).to_string().into())
        }),
        "environment" => Function::from_typed(|module: Module, name: String, release: String| {
            module.from_environment(&name, read(&release)?)
        }),
        "mask" => Function::from_typed(|kind: String, release: String, runs: bool| {
            Ok::<_, Error>(i64::from(property_mask(&kind, read(&release)?, runs)))
        }),
        "host" => Function::from_typed(host),
        "register" => Function::from_packed(register),
        "address" => Function::from_typed(|prefix: String, name: String| -> Result<Any, Error> {
            let found = system::SystemSymbols::new(&prefix).address(Name::of(&name));
            let found = found.map_or(std::ptr::null_mut(), std::ptr::NonNull::as_ptr);
            // SAFETY: a case compares the address and does not follow it.
            Ok(unsafe { Any::handle(found) })
        }),
        _ => return None,
    })
}

fn read(release: &str) -> Result<Release, Error> {
    let release = release.parse();
    release.map_err(|wrong: String| Error::new("ValueError", wrong))
}

fn host(bytes: i64) -> Result<bool, Error> {
    let bytes = u64::try_from(bytes).map_err(|_| Error::new("ValueError", "less than no bytes"))?;
    let request = Request {
        device_type: 1,
        device_id: 0,
        bytes,
        hint: (2, 32),
    };
    let failed = |text: String| Error::new("RuntimeError", text);
    let memory = workspace::host().alloc(request).map_err(failed)?;
    // SAFETY: just allocated on this thread.
    unsafe { workspace::host().free((1, 0), memory) }.map_err(failed)?;
    Ok((memory.as_ptr() as usize).is_multiple_of(workspace::ALIGNMENT))
}

fn register(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let [name, address] = args else {
        return Err(Error::new("TypeError", "a name and an address"));
    };
    let (name, address): (String, *mut c_void) = (cast(*name)?, cast(*address)?);
    // SAFETY: a case registers functions of the suite, which stay.
    Ok(unsafe { system::register(&name, address) }.into())
}

/// A module with functions that return a number.
struct Numbers {
    number: i64,
    functions: HashMap<String, i64>,
}

thread_local! {
    static ASKED: RefCell<Vec<i64>> = const { RefCell::new(Vec::new()) };
}

impl Kind for Numbers {
    fn kind(&self) -> &str {
        "numbers"
    }

    fn function(&self, _module: &Module, name: &str) -> Result<Option<Function>, Error> {
        ASKED.with_borrow_mut(|asked| asked.push(self.number));
        let number = self.functions.get(name).copied();
        Ok(number.map(|number| Function::from_packed(move |_| Ok(Any::from(number)))))
    }
}

pub(super) fn numbers(number: i64, functions: HashMap<String, i64>) -> Module {
    Module::new(Numbers { number, functions })
}
