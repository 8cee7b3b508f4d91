//! The registered functions of a runtime, read in a separate process, because loading a library runs its code.
//!
//! | interface        | releases   | how its functions are listed                                           |
//! |------------------|------------|------------------------------------------------------------------------|
//! | packed functions | 0.2 to 0.20| `TVMFuncListGlobalNames`                                               |
//! | tvm-ffi          | 0.21 on    | the function `ffi.FunctionListGlobalNamesFunctor`; strings moved in 0.22 |

use super::exec::Exec;
use super::{Adapter as _, Identity, Limits, Reply, Testee, library, program_command};
use crate::conformance::runtime::{Libraries, RawHandle, Runtime as _, newer};
use crate::examine::loading::exports;
use crate::examine::runtime::{RegisteredNames, RuntimeInterface};
use crate::release::ParseError;
use crate::value::{AnyPayload, ByteArray, RawAny, index};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::ptr;

/// The scheme of the worker.
pub(super) const SCHEME: &str = "registry";

/// The only operation of the worker.
const NAMES: &str = "registry.names";

/// Loads libraries in a separate process and lists their registered functions. The paths are separated by commas, and the symbols
/// of each library are visible to the later ones.
///
/// # Errors
///
/// A library cannot be loaded, crashes, exceeds `limits`, or is not a TVM runtime.
pub fn registered_names(libraries: &str, limits: Limits) -> Result<RegisteredNames, ParseError> {
    super::libraries_exist("--runtime", libraries)?;
    let mut words = program_command::words().map_err(|error| error.to_string())?;
    let spec = format!("{SCHEME}:{libraries}");
    words.extend(["worker".into(), spec.into()]);
    let mut worker = Exec::worker(words, limits);
    let failed = |why: &str| ParseError::new(format!("{libraries}: {why}"));
    worker.hello("").map_err(|why| failed(&why))?;
    match worker.call(NAMES, &Value::Null) {
        Reply::Ok { value, .. } => {
            from_json(&value).ok_or_else(|| failed("the worker's answer is no list of names"))
        }
        Reply::Unsupported(why)
        | Reply::Crash(why)
        | Reply::Hang(why)
        | Reply::OutOfMemory(why)
        | Reply::ProtocolError(why) => Err(failed(&why)),
        reply => Err(failed(&format!("{reply:?}"))),
    }
}

fn to_json(names: &RegisteredNames) -> Value {
    json!({
        "interface": names.interface.name(),
        "tvm_ffi": names.tvm_ffi,
        "functions": names.functions,
        "exports": names.exports,
    })
}

fn from_json(value: &Value) -> Option<RegisteredNames> {
    let interface = value.get("interface")?.as_str()?;
    let mut interfaces = RuntimeInterface::ALL.into_iter();
    let mut names = RegisteredNames::new(interfaces.find(|known| known.name() == interface)?);
    names.tvm_ffi = serde_json::from_value(value.get("tvm_ffi")?.clone()).ok()?;
    names.functions = serde_json::from_value(value.get("functions")?.clone()).ok()?;
    names.exports = serde_json::from_value(value.get("exports")?.clone()).ok()?;
    Some(names)
}

/// A runtime of any release that is only asked for names.
pub(super) struct Registry {
    libraries: Libraries,
}

impl Registry {
    /// Loads the libraries; their paths are separated by commas.
    pub(super) fn open(libraries: &str) -> Result<Registry, String> {
        let paths: Vec<&Path> = libraries.split(',').map(Path::new).collect();
        let loaded = library::open_all(SCHEME, &paths)?;
        let libraries = Libraries {
            name: library::names(&paths, None),
            libraries: loaded,
            generator: None,
        };
        Ok(Registry { libraries })
    }

    fn names(&self) -> Result<RegisteredNames, String> {
        let listed = FfiList::of(&self.libraries).map(|list| list.names());
        let (interface, functions) = match listed {
            Some(names) => names?,
            None => (RuntimeInterface::Packed, packed_names(&self.libraries)?),
        };
        let exported = |name: &str| self.libraries.symbol(name).is_some();
        let exports = exports().map(|(name, _)| name.to_owned());
        let mut names = RegisteredNames::new(interface);
        names.tvm_ffi = version(&self.libraries);
        names.functions = functions;
        names.exports = exports.filter(|name| exported(name)).collect();
        Ok(names)
    }
}

impl Testee for Registry {
    fn identity(&self) -> Identity {
        Identity {
            name: self.libraries.name.clone(),
            // The protocol needs a text; the known version is in the answer.
            version: "not asked".to_owned(),
            ..Identity::default()
        }
    }

    fn answer(&mut self, op: &str, _: &Value) -> Reply {
        if op != NAMES {
            return Reply::Unsupported(format!("`{op}` is not asked of a registry"));
        }
        match self.names() {
            Ok(names) => Reply::Ok {
                value: to_json(&names),
                findings: None,
            },
            Err(why) => Reply::Unsupported(why),
        }
    }
}

/// Returns the version of tvm-ffi, which 0.21 does not state.
fn version(runtime: &Libraries) -> Option<[u32; 3]> {
    let version: unsafe extern "C" fn(*mut [u32; 3]) = newer!(runtime, "TVMFFIGetVersion")?;
    let mut numbers = [0; 3];
    // SAFETY: the function writes three u32.
    unsafe { version(&raw mut numbers) };
    Some(numbers)
}

/// Returns the functions of a runtime up to 0.20.
fn packed_names(runtime: &Libraries) -> Result<BTreeSet<String>, String> {
    let list: Option<unsafe extern "C" fn(*mut c_int, *mut *const *const c_char) -> c_int> =
        newer!(runtime, "TVMFuncListGlobalNames");
    let list = list.ok_or_else(|| {
        format!(
            "{} is not a TVM runtime: it exports neither TVMFuncListGlobalNames nor TVMFFIFunctionGetGlobal. From 0.22 on name libtvm_ffi.so before libtvm_runtime.so.",
            runtime.name
        )
    })?;
    let (mut count, mut names) = (0, ptr::null());
    // SAFETY: two out pointers.
    let code = unsafe { list(&raw mut count, &raw mut names) };
    if code != 0 {
        return Err(format!("TVMFuncListGlobalNames answers {code}"));
    }
    let mut functions = BTreeSet::new();
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: there are `count` names, which stay until the next list.
        let name = unsafe { *names.wrapping_add(at) };
        // SAFETY: a C string of the list.
        let name = unsafe { CStr::from_ptr(name) };
        functions.insert(name.to_string_lossy().into_owned());
    }
    Ok(functions)
}

/// The C functions of tvm-ffi that are needed to list names.
struct FfiList {
    /// `TVMFFIFunctionGetGlobal`
    find: unsafe extern "C" fn(*const ByteArray, *mut RawHandle) -> c_int,
    /// `TVMFFIFunctionCall`
    call: unsafe extern "C" fn(RawHandle, *const RawAny, c_int, *mut RawAny) -> c_int,
    interface: RuntimeInterface,
}

impl FfiList {
    fn of(runtime: &Libraries) -> Option<FfiList> {
        // 0.21 frees an object where later releases decrement its reference count.
        let counts = runtime.symbol("TVMFFIObjectDecRef").is_some();
        Some(FfiList {
            find: newer!(runtime, "TVMFFIFunctionGetGlobal")?,
            call: newer!(runtime, "TVMFFIFunctionCall")?,
            interface: if counts {
                RuntimeInterface::Ffi
            } else {
                RuntimeInterface::Ffi21
            },
        })
    }

    fn names(&self) -> Result<(RuntimeInterface, BTreeSet<String>), String> {
        const LIST: &str = "ffi.FunctionListGlobalNamesFunctor";
        let mut list = ptr::null_mut();
        // SAFETY: a name and an out pointer.
        let code = unsafe { (self.find)(&ByteArray::of(LIST.as_bytes()), &raw mut list) };
        if code != 0 || list.is_null() {
            return Err(format!("the runtime has no function `{LIST}`"));
        }
        let names = self.called(list, &[])?;
        if names.type_index != index::FUNCTION {
            return Err(format!("`{LIST}` returns no function"));
        }
        let at = |at: i64| {
            self.called(
                names.ptr(),
                &[RawAny::of(index::INT, AnyPayload { int: at })],
            )
        };
        // FUN-24: -1 returns the number of names, and an index returns one of them.
        let count = at(-1)?.int();
        let mut functions = BTreeSet::new();
        for index in 0..count {
            functions.insert(self.text(&at(index)?)?);
        }
        Ok((self.interface, functions))
    }

    fn called(&self, function: RawHandle, args: &[RawAny]) -> Result<RawAny, String> {
        let mut out = RawAny::NONE;
        let count = c_int::try_from(args.len()).unwrap_or(c_int::MAX);
        // SAFETY: a function, that many arguments, and an out pointer for the result. Results are kept: the process ends with the
        // list.
        let code = unsafe { (self.call)(function, args.as_ptr(), count, &raw mut out) };
        if code == 0 {
            Ok(out)
        } else {
            Err(format!("a call for the names of functions answers {code}"))
        }
    }

    /// Returns the text of a string: in the cell, or after the header of an object, which has 16 bytes in 0.21 and 24 later.
    fn text(&self, value: &RawAny) -> Result<String, String> {
        let bytes = match value.type_index {
            index::SMALL_STR => {
                let length = usize::try_from(value.aux).unwrap_or(usize::MAX);
                let word = value.bits().to_le_bytes();
                word.get(..length).unwrap_or(&word).to_vec()
            }
            index::STR => {
                let header = match self.interface {
                    RuntimeInterface::Ffi21 => 16,
                    _ => 24,
                };
                let content: *const ByteArray = value.ptr().wrapping_byte_add(header).cast();
                // SAFETY: a string object has its bytes there, and is kept.
                let content = unsafe { &*content };
                // SAFETY: the bytes of a string that is kept.
                unsafe { content.as_slice() }.to_vec()
            }
            other => return Err(format!("a name of a function has type index {other}")),
        };
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
