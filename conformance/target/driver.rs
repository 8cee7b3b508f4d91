//! The operation `target.generate` on libraries with a compiler. Their generator compiles the graph; the answer is what can be seen
//! of the module.
//!
//! | part         | for host code                                             | for kernels                                       |
//! |--------------|-----------------------------------------------------------|---------------------------------------------------|
//! | `functions`  | symbols that the module has, or that its LLVM text defines | names in the stored metadata that occur in the text |
//! | `kernels`    | none                                                      | the stored metadata, as the chapter payload reads it |
//! | `repeatable` | two texts are the same                                    | two payloads are the same                         |
//!
//! Kernels are stored as a library stores them, together with host code without functions. A fault of the payload (TGT-86) becomes
//! a part `stored`, which no expected answer has.

use super::compiler::{Compiler, CompilerArgument};
use crate::blob::Blob;
use crate::conformance::adapter::{Rejection, Reply};
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::{bytes, unsupported};
use crate::conformance::runtime::legacy::LegacyApi;
use crate::payload;
use crate::rule::Findings;
use crate::target::LoweredModule;
use crate::wire::Cursor;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The kinds that have a generator in no release (TGT-80).
const WITHOUT: [&str; 3] = ["ext_dev", "composite", "test"];

/// The device type of the CPU. A target of another type is for a device.
const CPU: i64 = 1;

/// The names of the function through which a library is entered (TGT-90).
const ENTRIES: [&str; 2] = ["__tvm_main__", "__tvm_ffi_main"];

/// Error messages of generators that miss another part of TVM, and so cannot compile any module.
const LACKING: [&str; 5] = [
    "header_generator is not defined",
    "tvm_callback_",
    "link_shared does not",
    "No available targets are compatible with triple",
    "offline compilation error",
];

/// Error messages for an operator without code, with its name (TGT-88).
const NO_CODE: [&str; 2] = ["Unresolved call", "unknown intrinsic"];

/// Runs `target.generate` on a compiler with the tvm-ffi C interface.
pub(super) fn generate(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    generated(&api, args)
}

/// Runs `target.generate` on a compiler with the C interface of 0.20 and before.
pub(in crate::conformance) fn generate_before_0_21(
    api: &'static LegacyApi,
    args: &Value,
) -> Result<Reply, Reply> {
    generated(&api, args)
}

/// Returns whether a generator rejects a module because of an operator that it has no code for, as TGT-88 demands.
pub(in crate::conformance) fn declines(op: &str, rejection: &Rejection) -> bool {
    let named = || NO_CODE.iter().any(|text| rejection.message.contains(text));
    // A testee that states rules is judged by them.
    op == "target.generate" && rejection.rule.is_none() && named()
}

/// Builds the module twice (TGT-87), with the generator of the case or with the one under test for the target of the case. Returns
/// the properties that every generator must have. A kind without a generator in this build is unsupported.
fn generated<C: Compiler>(compiler: &C, args: &Value) -> Result<Reply, Reply> {
    let data = bytes(args)?;
    let graph = std::str::from_utf8(&data).map_err(|_| unsupported("the graph is not text"))?;
    let named = match args.get("target") {
        Some(Value::String(text)) => text.clone(),
        other => other.cloned().unwrap_or_default().to_string(),
    };
    if !compiler.has("target.Target")? {
        return Err(unsupported("none of the libraries has a compiler"));
    }
    let chosen = Chosen::of(compiler, &named)?;
    let made = chosen.build(compiler, graph)?;
    let again = chosen.build(compiler, graph)?;
    let mut value = if chosen.is_host {
        host(compiler, &data, [&made, &again])?
    } else {
        kernels(compiler, [&made, &again])?
    };
    if chosen.is_stand_in {
        return Ok(Reply::Shown {
            view: "generated".to_owned(),
            value,
        });
    }
    let kind = compiler.call(C::NAMES.kind, &[CompilerArgument::Returned(&made)])?;
    value["kind"] = compiler.text(&kind)?.into();
    Ok(Reply::Ok {
        value,
        findings: None,
    })
}

/// The target whose generator is tested with a case.
struct Chosen<C: Compiler> {
    target: C::Value,
    /// The name of its generator.
    generator: String,
    is_host: bool,
    /// Whether the user chose it instead of the case's own generator.
    is_stand_in: bool,
}

impl<C: Compiler> Chosen<C> {
    /// Chooses the user's generator if it is for a host or a device, as that of the case is; otherwise that of the case.
    fn of(compiler: &C, named: &str) -> Result<Chosen<C>, Reply> {
        let instead = compiler.runtime().generator();
        // A case for a kind without a generator keeps that kind.
        let instead = instead.filter(|_| !WITHOUT.contains(&named));
        let text = instead.unwrap_or(named);
        let target = compiler.call("target.Target", &[CompilerArgument::Text(text)]);
        let target = target.map_err(|reply| not_here(text, reply))?;
        let device = compiler.call(
            "target.TargetGetDeviceType",
            &[CompilerArgument::Returned(&target)],
        )?;
        let is_host = compiler.int(&device) == CPU;
        if instead.is_some() && is_host != (named == "c") {
            let of = if is_host { "hosts" } else { "devices" };
            return Err(unsupported(format!("`{text}` is for {of}")));
        }
        let kind = text.split_whitespace().next().unwrap_or_default();
        let generator = format!("target.build.{kind}");
        if !compiler.has(&generator)? && !WITHOUT.contains(&kind) {
            return Err(unsupported(format!(
                "none of the libraries has `{generator}`"
            )));
        }
        Ok(Chosen {
            target,
            generator,
            is_host,
            is_stand_in: instead.is_some_and(|instead| instead != named),
        })
    }

    /// Compiles a graph with the generator.
    fn build(&self, compiler: &C, graph: &str) -> Result<C::Value, Reply> {
        let module = compiler.call(C::NAMES.graph, &[CompilerArgument::Text(graph)])?;
        let args = [
            CompilerArgument::Returned(&module),
            CompilerArgument::Returned(&self.target),
        ];
        // The function that looks for the generator reports that there is none.
        let name = if compiler.has(&self.generator)? {
            &self.generator
        } else {
            "target.Build"
        };
        let made = compiler.call(name, &args);
        made.map_err(|reply| match &reply {
            Reply::Reject(rejection)
                if LACKING.iter().any(|text| rejection.message.contains(text)) =>
            {
                not_here(&self.generator, reply)
            }
            _ => reply,
        })
    }
}

/// Converts a rejection to unsupported, with the library's message.
fn not_here(what: &str, reply: Reply) -> Reply {
    match reply {
        Reply::Reject(rejection) => {
            let message = rejection.message;
            let last = message.lines().last().unwrap_or_default();
            unsupported(format!("`{what}` makes nothing here: {last}"))
        }
        other => other,
    }
}

/// Returns the visible properties of host code.
fn host<C: Compiler>(compiler: &C, graph: &[u8], made: [&C::Value; 2]) -> Result<Value, Reply> {
    let [text, again] = [source(compiler, made[0])?, source(compiler, made[1])?];
    let module = LoweredModule::read(graph).ok();
    let symbols = module.iter().flat_map(LoweredModule::symbols);
    let mut functions = Vec::new();
    for symbol in symbols.chain(ENTRIES) {
        // TGT-81: from 0.22 on an LLVM module is asked for the name without the prefix of its symbol.
        let plain = symbol.strip_prefix("__tvm_ffi_").unwrap_or(symbol);
        let is_found = has_function(compiler, made[0], symbol)?
            || has_function(compiler, made[0], plain)?
            // TGT-90: the library has the symbol, but the module cannot be asked for it.
            || ENTRIES.contains(&symbol) && defines(&text, symbol);
        if is_found {
            functions.push(symbol.to_owned());
        }
    }
    functions.sort();
    functions.dedup();
    Ok(json!({"functions": functions, "kernels": [], "repeatable": text == again}))
}

fn has_function<C: Compiler>(compiler: &C, module: &C::Value, name: &str) -> Result<bool, Reply> {
    let args = [
        CompilerArgument::Returned(module),
        CompilerArgument::Text(name),
        CompilerArgument::Flag(false),
    ];
    let found = compiler.call(C::NAMES.implements, &args)?;
    Ok(compiler.int(&found) != 0)
}

/// Returns whether an LLVM text defines this symbol.
fn defines(text: &str, symbol: &str) -> bool {
    let (function, value) = (format!("@{symbol}("), format!("@{symbol} = "));
    text.lines().any(|line| {
        line.starts_with("define ") && line.contains(&function) || line.starts_with(&value)
    })
}

/// Returns the visible properties of kernels.
fn kernels<C: Compiler>(compiler: &C, made: [&C::Value; 2]) -> Result<Value, Reply> {
    let text = source(compiler, made[0])?;
    let [stored, again] = [stored(compiler, made[0])?, stored(compiler, made[1])?];
    let is_repeatable = stored == again;
    let (kernels, wrong) = match stored {
        Ok(stored) => match described::<C>(&stored) {
            Ok(kernels) => (kernels, wrong_again(compiler, &stored)?),
            Err(why) => (BTreeMap::new(), Some(why)),
        },
        Err(why) => (BTreeMap::new(), Some(why)),
    };
    let names = kernels.keys().filter(|name| has_word(&text, name));
    let functions: Vec<&String> = names.collect();
    let mut value = json!({
        "functions": functions,
        "kernels": kernels.values().collect::<Vec<_>>(),
        "repeatable": is_repeatable,
    });
    if let Some(why) = wrong {
        value["stored"] = why.into();
    }
    Ok(value)
}

/// A module as a library stores it.
#[derive(PartialEq)]
struct StoredKernels {
    kind: String,
    payload: Vec<u8>,
}

/// Stores the module with host code without functions, as a library is stored, and extracts it again. Returns the fault if it
/// fails.
fn stored<C: Compiler>(
    compiler: &C,
    module: &C::Value,
) -> Result<Result<StoredKernels, String>, Reply> {
    let text = CompilerArgument::Text("");
    let nothing = [
        text,
        CompilerArgument::Text("c"),
        CompilerArgument::None,
        CompilerArgument::None,
    ];
    let library = compiler.call("runtime.CSourceModuleCreate", &nothing)?;
    compiler.import(&library, module)?;
    let tensor = match compiler.call(C::NAMES.pack, &[CompilerArgument::Returned(&library)]) {
        Ok(tensor) => compiler.tensor(&tensor)?,
        Err(Reply::Reject(rejection)) => return Ok(Err(rejection.message)),
        Err(other) => return Err(other),
    };
    let blob = match Blob::read(&tensor, C::NAMES.layout) {
        Ok(read) => read.value,
        Err(broken) => return Ok(Err(broken.to_string())),
    };
    let mut payloads = blob.modules.iter().filter_map(|module| {
        let payload = module.payload()?.to_vec();
        let kind = module.kind().to_string();
        Some(StoredKernels { kind, payload })
    });
    // BLOB-17: the library itself has no payload, so the only payload is that of the module under test.
    let only = payloads.next().filter(|_| payloads.next().is_none());
    Ok(only.ok_or_else(|| "it is not stored as one module".to_owned()))
}

/// Returns the kernels that the payload describes, by their names.
fn described<C: Compiler>(stored: &StoredKernels) -> Result<BTreeMap<String, Value>, String> {
    let (mut cursor, mut findings) = (Cursor::new(&stored.payload), Findings::default());
    let read = payload::read(&stored.kind, C::NAMES.layout, &mut cursor, &mut findings);
    let payload = read.map_err(|broken| broken.to_string())?;
    if cursor.remaining() > 0 {
        return Err("bytes follow the payload".to_owned());
    }
    let kernels = payload.functions().map(|(name, info)| {
        let types = info.arg_types.iter().map(ToString::to_string);
        // The additional tags of WebGPU kernels are not arguments.
        let tags = info.launch_param_tags.iter();
        let tags = tags.filter(|tag| !tag.starts_with("paramWriteAccess:"));
        let kernel = json!({
            "name": name,
            "arg_types": types.collect::<Vec<_>>(),
            "launch_param_tags": tags.collect::<Vec<_>>(),
        });
        (name.to_owned(), kernel)
    });
    Ok(kernels.collect())
}

/// Loads the payload and compares the module. Returns its fault; `None` also if there is no loader.
fn wrong_again<C: Compiler>(compiler: &C, stored: &StoredKernels) -> Result<Option<String>, Reply> {
    let loaded = match compiler.load(&stored.kind, &stored.payload) {
        // TGT-86: without a loader the payload cannot be checked, which is not a fault of the generator.
        Ok(None) => return Ok(None),
        Ok(Some(loaded)) => loaded,
        Err(Reply::Reject(rejection)) => return Ok(Some(rejection.message)),
        Err(other) => return Err(other),
    };
    Ok(match self::stored(compiler, &loaded)? {
        Ok(again) if again == *stored => None,
        Ok(_) => Some("it is another module when it is loaded".to_owned()),
        Err(why) => Some(why),
    })
}

/// Returns the text of a module; empty if it has none.
fn source<C: Compiler>(compiler: &C, module: &C::Value) -> Result<String, Reply> {
    let args = [
        CompilerArgument::Returned(module),
        CompilerArgument::Text(""),
    ];
    match compiler.call(C::NAMES.source, &args) {
        Ok(text) => compiler.text(&text),
        Err(Reply::Reject(_)) => Ok(String::new()),
        Err(other) => Err(other),
    }
}

/// Returns whether a name occurs in a text as a whole word.
fn has_word(text: &str, name: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + name.len()..].chars().next();
        !before.is_some_and(is_letter) && !behind.is_some_and(is_letter)
    })
}
