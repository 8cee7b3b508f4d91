//! `legacy:LIB[,LIB..]`: a runtime behind the C interface of 0.7 to 0.20. The first library exports it; the others are
//! loaded after it.
//!
//! | operation       | asked by                                          | what is compared |
//! |-----------------|---------------------------------------------------|------------------|
//! | `blob.decode`   | loading a library around the bytes (layout 0.7)    | the view `kinds` |
//! | `module.load`   | the same                                          | the view `kinds` |
//! | `module.import` | `TVMModImport` on libraries with nothing in them   | the value        |
//!
//! Loaders of that time read a C++ stream, and a payload ends where its loader stops: no loader of ours can stand in for
//! one that the runtime lacks. A library that needs such a loader is *unsupported*, not refused.

use super::library;
use super::shell;
use super::view;
use super::{Identity, Rejection, Reply, Testee};
use crate::blob::pack::Naming;
use crate::conformance::op::{Refusal, data};
use crate::release::Release;
use crate::value::legacy::{TVMValue, code};
use serde_json::{Value, json};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

type Handle = *mut c_void;

/// The context symbol of these releases.
const CONTEXT: &str = "__tvm_module_ctx";

/// A foreign runtime.
pub struct Legacy {
    name: String,
    api: Api,
}

struct Api {
    load: unsafe extern "C" fn(*const c_char, *const c_char, *mut Handle) -> c_int,
    import: unsafe extern "C" fn(Handle, Handle) -> c_int,
    find: unsafe extern "C" fn(*const c_char, *mut Handle) -> c_int,
    call: unsafe extern "C" fn(
        Handle,
        *mut TVMValue,
        *mut c_int,
        c_int,
        *mut TVMValue,
        *mut c_int,
    ) -> c_int,
    free_function: unsafe extern "C" fn(Handle) -> c_int,
    free_module: unsafe extern "C" fn(Handle) -> c_int,
    last_error: unsafe extern "C" fn() -> *const c_char,
}

impl Legacy {
    /// Loads the libraries, given as paths between commas.
    ///
    /// # Errors
    ///
    /// Says which cannot be loaded, or what it lacks.
    pub fn open(libraries: &str) -> Result<Legacy, String> {
        let paths: Vec<&Path> = libraries.split(',').map(Path::new).collect();
        let library = library::open_all("legacy", &paths)?;
        let name = paths[0].display();
        macro_rules! symbol {
            ($symbol:literal) => {
                // SAFETY: the type is the one that the C header declares for this name.
                *unsafe { library.get($symbol) }.map_err(|_| {
                    format!(
                        "{name} is not a TVM runtime of 0.20 or before: it does not export {}",
                        $symbol
                    )
                })?
            };
        }
        Ok(Legacy {
            api: Api {
                load: symbol!("TVMModLoadFromFile"),
                import: symbol!("TVMModImport"),
                find: symbol!("TVMFuncGetGlobal"),
                call: symbol!("TVMFuncCall"),
                free_function: symbol!("TVMFuncFree"),
                free_module: symbol!("TVMModFree"),
                last_error: symbol!("TVMGetLastError"),
            },
            name: library::names(&paths),
        })
    }

    /// `blob.decode` and `module.load`.
    fn walk(&self, args: &Value) -> Result<Reply, Reply> {
        let text = |key: &str| args.get(key).and_then(Value::as_str);
        let naming = Naming::library(Release::of(20));
        if text("layout").is_some_and(|layout| layout != "0.7")
            || text("symbol").is_some_and(|symbol| symbol != naming.symbol())
        {
            return Err(unsupported(
                "the library is packed as 0.7 to 0.20 do, and the case is of another time",
            ));
        }
        let blob = data(args).map_err(|refusal| match refusal {
            Refusal::Unsupported(why) => Reply::Unsupported(why),
            Refusal::Rejected(broken) => Reply::ProtocolError(broken.to_string()),
        })?;
        let root = self.loaded(Some(&blob), &naming)?;
        let mut modules = vec![root];
        let mut shown = Vec::new();
        while let Some(module) = modules.get(shown.len()) {
            let kind = self.text("runtime.ModuleGetTypeKey", module)?;
            let imports = self.imports(module)?.into_iter().map(|import| {
                let known = modules.iter().position(|known| known.0 == import.0);
                known.unwrap_or_else(|| {
                    modules.push(import);
                    modules.len() - 1
                })
            });
            let imports: Vec<usize> = imports.collect();
            shown.push((kind, imports));
        }
        Ok(Reply::Seen {
            view: "kinds".to_owned(),
            value: view::kinds_of(&shown),
        })
    }

    /// `module.import`.
    fn import(&self, args: &Value) -> Result<Reply, Reply> {
        let pairs = args.get("value").and_then(Value::as_array);
        let pairs = pairs.ok_or_else(|| unsupported("`value` is not a list of pairs"))?;
        let place = |pair: &Value, at: usize| usize::try_from(pair.get(at)?.as_u64()?).ok();
        let pairs = pairs
            .iter()
            .filter_map(|pair| Some((place(pair, 0)?, place(pair, 1)?)));
        let pairs: Vec<(usize, usize)> = pairs.collect();
        let count = pairs
            .iter()
            .map(|(from, to)| from.max(to) + 1)
            .max()
            .unwrap_or(0);
        let naming = Naming::library(Release::of(20));
        let modules = (0..count).map(|_| self.loaded(None, &naming));
        let modules: Vec<Module<'_>> = modules.collect::<Result<_, _>>()?;
        for (from, to) in pairs {
            // SAFETY: two modules.
            self.check(unsafe { (self.api.import)(modules[from].0, modules[to].0) })?;
        }
        let rows = modules.iter().map(|module| {
            let imports = self.imports(module)?;
            let place = |import: &Module<'_>| modules.iter().position(|known| known.0 == import.0);
            Ok(imports.iter().map(place).collect::<Vec<_>>())
        });
        Ok(Reply::Ok {
            value: json!(rows.collect::<Result<Vec<_>, Reply>>()?),
            findings: None,
        })
    }

    /// The module of a library around `blob`, or of one with nothing in it.
    fn loaded(&self, blob: Option<&[u8]>, naming: &Naming) -> Result<Module<'_>, Reply> {
        let folder = tempfile::tempdir().map_err(|error| Reply::Skipped(error.to_string()))?;
        let path = folder.path().join("case.so");
        let symbol = blob.map_or("nothing", |_| naming.symbol());
        shell::write(blob.unwrap_or_default(), symbol, CONTEXT, naming, &path)
            .map_err(|error| unsupported(format!("no library can be made here: {error}")))?;
        let path = c_text(&path.to_string_lossy());
        let mut module = ptr::null_mut();
        // SAFETY: two texts and a place.
        let code = unsafe { (self.api.load)(path.as_ptr(), c"so".as_ptr(), &raw mut module) };
        self.check(code)?;
        Ok(Module(module, &self.api))
    }

    fn imports(&self, module: &Module<'_>) -> Result<Vec<Module<'_>>, Reply> {
        let handle = TVMValue { v_handle: module.0 };
        let (size, _) = self.call(
            "runtime.ModuleImportsSize",
            &mut [handle],
            &mut [code::MODULE],
        )?;
        // SAFETY: the function gives an integer.
        let size = unsafe { size.v_int64 };
        let imports = (0..size).map(|at| {
            let mut args = [handle, TVMValue { v_int64: at }];
            let codes = &mut [code::MODULE, code::INT];
            let (import, told) = self.call("runtime.ModuleGetImport", &mut args, codes)?;
            if told != code::MODULE {
                return Err(unsupported(format!("an import has the type code {told}")));
            }
            // SAFETY: the code says that it is a handle, which is ours.
            Ok(Module(unsafe { import.v_handle }, &self.api))
        });
        imports.collect()
    }

    /// What a function of one module says in text.
    fn text(&self, name: &str, module: &Module<'_>) -> Result<String, Reply> {
        let mut args = [TVMValue { v_handle: module.0 }];
        let (text, told) = self.call(name, &mut args, &mut [code::MODULE])?;
        if told != code::STR {
            return Err(unsupported(format!(
                "`{name}` gives the type code {told}, not text"
            )));
        }
        // SAFETY: the code says that it is a text, which stays until the next call.
        let text = unsafe { CStr::from_ptr(text.v_str.cast()) };
        Ok(text.to_string_lossy().into_owned())
    }

    fn call(
        &self,
        name: &str,
        args: &mut [TVMValue],
        codes: &mut [c_int],
    ) -> Result<(TVMValue, c_int), Reply> {
        let mut function = ptr::null_mut();
        // SAFETY: a text and a place.
        self.check(unsafe { (self.api.find)(c_text(name).as_ptr(), &raw mut function) })?;
        if function.is_null() {
            return Err(unsupported(format!(
                "this runtime has no function `{name}`"
            )));
        }
        let (mut result, mut told) = (TVMValue { v_int64: 0 }, code::NULL);
        let count = c_int::try_from(args.len()).unwrap_or(c_int::MAX);
        // SAFETY: a function, that many arguments with their codes, and two places.
        let returned = unsafe {
            (self.api.call)(
                function,
                args.as_mut_ptr(),
                codes.as_mut_ptr(),
                count,
                &raw mut result,
                &raw mut told,
            )
        };
        // SAFETY: the function is ours.
        unsafe { (self.api.free_function)(function) };
        self.check(returned)?;
        Ok((result, told))
    }

    fn check(&self, returned: c_int) -> Result<(), Reply> {
        if returned == 0 {
            return Ok(());
        }
        // SAFETY: a text that stays until the next call.
        let message = unsafe { CStr::from_ptr((self.api.last_error)()) };
        let message = message.to_string_lossy().into_owned();
        if message.contains("loadbinary_") {
            return Err(unsupported(format!("a loader is missing: {message}")));
        }
        Err(Reply::Reject(Rejection {
            message,
            ..Rejection::default()
        }))
    }
}

impl Testee for Legacy {
    fn identity(&self) -> Identity {
        Identity {
            name: self.name.clone(),
            // The interface does not tell its release.
            version: "C interface of 0.8 to 0.20".to_owned(),
            releases: (8..=20)
                .map(|minor| Release::of(minor).to_string())
                .collect(),
            ops: Vec::new(),
        }
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        let reply = match op {
            "blob.decode" | "module.load" => self.walk(args),
            "module.import" => self.import(args),
            "import_tree.decode" => Err(unsupported(
                "layout 0.7 has no small module that every runtime can load for each row",
            )),
            "payload.decode" => Err(unsupported(
                "loaders read a C++ stream, which the C interface does not make",
            )),
            _ => Err(unsupported(format!(
                "`{op}` has no way through the C interface of 0.20 and before"
            ))),
        };
        reply.unwrap_or_else(|reply| reply)
    }
}

/// A module that we own.
struct Module<'a>(Handle, &'a Api);

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: we own one reference.
        unsafe { (self.1.free_module)(self.0) };
    }
}

fn unsupported(why: impl Into<String>) -> Reply {
    Reply::Unsupported(why.into())
}

fn c_text(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}
