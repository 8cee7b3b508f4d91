//! The functions that a client may call by name: those of every server, and those that match a pattern in the options (RPC-89).

use super::super::{RPC_89, RPC_90};
use super::directory::Directory;
use super::link::library_of;
use super::{ServerOptions, test_functions, timing};
use crate::function::{Error, ErrorKind, Function, Result, registry};
use crate::module::{self, Module};
use crate::rule::Kind;
use crate::value::{Any, AnyView, Bytes, bytes_bytes, str_bytes};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The functions of a session.
pub(super) struct Functions {
    own: BTreeMap<&'static str, Function>,
    allow: Arc<[String]>,
}

impl Functions {
    /// Creates the functions of a session with these options.
    pub(super) fn new(options: &ServerOptions) -> Functions {
        let directory = Directory::new(options.directory.clone(), options.uploads);
        let directory = Arc::new(directory);
        let allow: Arc<[String]> = options.allow.clone().into();
        let mut own = BTreeMap::new();
        files(&directory, &mut own);
        modules(&directory, options, &mut own);
        test_functions::add(&mut own);
        let (patterns, named) = (allow.clone(), own.clone());
        own.insert(
            "runtime.RPCTimeEvaluator",
            Function::from_packed(move |args| {
                // RPC-89: an evaluator also calls by name, and finds only functions that the client itself may call.
                let global = |name: &str| match named.get(name) {
                    Some(function) => Ok(function.clone()),
                    None => match global(name, &patterns)? {
                        Some(function) => Ok(function),
                        None => registry::require(name),
                    },
                };
                Ok(timing::evaluator(args, global)?.into())
            }),
        );
        // Clients split copies to fit this value. If the function were missing, they would look it up again for every copy.
        let largest = i64::try_from(options.largest).unwrap_or(i64::MAX);
        own.insert(
            "tvm.rpc.server.GetCRTMaxPacketSize",
            Function::from_packed(move |_| Ok(largest.into())),
        );
        Functions { own, allow }
    }

    /// Returns the function with this name, or `None` if there is no such function.
    pub(super) fn lookup(&self, name: &str) -> Result<Option<Function>> {
        match self.own.get(name) {
            Some(function) => Ok(Some(function.clone())),
            None => global(name, &self.allow),
        }
    }
}

/// Returns a function of the process, if the patterns allow it.
fn global(name: &str, allow: &[String]) -> Result<Option<Function>> {
    // RPC-89: looked up before the patterns are checked. The answer is 0 for a missing name, and an exception for a function that is
    // not allowed.
    let Some(function) = registry::lookup(name) else {
        return Ok(None);
    };
    // RPC-89: upstream calls every registered function, including those that start processes or load files.
    let allowed = allow.iter().any(|pattern| matches_pattern(pattern, name));
    RPC_89.demand(Kind::Unsupported, allowed, || {
        format!(
            "this server does not allow `{name}` to be called: its option `allow` does not name it"
        )
    })?;
    Ok(Some(function))
}

/// Returns whether `text` matches `pattern`. In a pattern, `*` matches any text and `?` matches any character.
pub(super) fn matches_pattern(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut read) = (0, 0);
    // Position of the last star, and the end of the text that it covers: backtracking only ever returns to the last star.
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || text.get(read) == Some(wanted) => {
                at += 1;
                read += 1;
            }
            _ => match star {
                Some((place, until)) => {
                    star = Some((place, until + 1));
                    (at, read) = (place + 1, until + 1);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == '*')
}

/// Adds the functions for files.
fn files(directory: &Arc<Directory>, own: &mut BTreeMap<&'static str, Function>) {
    type File = fn(&Directory, &[AnyView<'_>]) -> Result<Any>;
    let all: [(&str, File); 5] = [
        ("tvm.rpc.server.workpath", |directory, args| {
            let path = directory.path_of(name(args)?)?;
            Ok(path.to_string_lossy().into_owned().into())
        }),
        ("tvm.rpc.server.upload", |directory, args| {
            let content = args.get(1).and_then(bytes_bytes);
            let content = content.ok_or_else(|| wrong_arguments("upload", "a name and bytes"))?;
            directory.write(name(args)?, content)?;
            Ok(Any::none())
        }),
        ("tvm.rpc.server.download", |directory, args| {
            Ok(Bytes::new(directory.read(name(args)?)?).into())
        }),
        ("tvm.rpc.server.remove", |directory, args| {
            directory.remove(name(args)?)?;
            Ok(Any::none())
        }),
        ("tvm.rpc.server.listdir", |directory, _| {
            Ok(directory.list()?.into())
        }),
    ];
    for (name, body) in all {
        let directory = directory.clone();
        own.insert(
            name,
            Function::from_packed(move |args| body(&directory, args)),
        );
    }
}

/// Adds the functions for modules.
fn modules(
    directory: &Arc<Directory>,
    options: &ServerOptions,
    own: &mut BTreeMap<&'static str, Function>,
) {
    let (of, allow_load) = (directory.clone(), options.allow_load);
    let compiler: Option<Arc<str>> = options.compiler.as_deref().map(Arc::from);
    let by = compiler.clone();
    let load = move |args: &[AnyView<'_>]| -> Result<Any> {
        let name = name(args)?;
        // RPC-92: checked before RPC-90, so that a path is rejected as such even if this server loads nothing.
        of.path_of(name)?;
        // RPC-90: loaded code runs with all rights of this process.
        RPC_90.demand(Kind::Unsupported, allow_load, || {
            format!("this server does not load what clients upload (`{name}`): its option `allow-load` is off")
        })?;
        let path = of.path_of(&library_of(&of, name, by.as_deref())?)?;
        // An upload that broke off would end the process of the session.
        module::Dso::check_length(&path)?;
        // SAFETY: the option is the promise that uploaded files are trusted code.
        let module = unsafe { module::load(&path) }?;
        Ok(module.into())
    };
    own.insert("tvm.rpc.server.load_module", Function::from_packed(load));
    let of = directory.clone();
    let download = move |args: &[AnyView<'_>]| -> Result<Any> {
        let name = name(args)?;
        let form = name.rsplit_once('.').map(|(_, form)| form);
        let is_linked = match form {
            Some("so" | "dylib") => true,
            Some("o" | "tar") => compiler.is_some(),
            _ => false,
        };
        if !is_linked {
            let message = format!("Do not know how to link {name}");
            return Err(Error::new(ErrorKind::Runtime, message));
        }
        let library = library_of(&of, name, compiler.as_deref())?;
        Ok(Bytes::new(of.read(&library)?).into())
    };
    own.insert(
        "tvm.rpc.server.download_linked_module",
        Function::from_packed(download),
    );
    own.insert(
        "tvm.rpc.server.ImportModule",
        Function::from_packed(|args| {
            module(args, 0)?.import(module(args, 1)?)?;
            Ok(Any::none())
        }),
    );
    own.insert(
        "tvm.rpc.server.ModuleGetFunction",
        Function::from_packed(|args| {
            let name = args.get(1).and_then(str_bytes);
            let name = name.and_then(|name| std::str::from_utf8(name).ok());
            // Up to 0.17 the third argument is an integer; 0.8 passes 0.
            let imports = args.get(2).and_then(|flag| bool::try_from(*flag).ok());
            let (Some(name), Some(imports)) = (name, imports) else {
                let wanted = "a module, a name, and whether imports are searched";
                return Err(wrong_arguments("ModuleGetFunction", wanted));
            };
            Ok(module(args, 0)?.function(name, imports)?.into())
        }),
    );
}

/// Returns the first argument as a name.
fn name<'a>(args: &'a [AnyView<'_>]) -> Result<&'a str> {
    let text = args.first().and_then(str_bytes);
    let text = text.and_then(|text| std::str::from_utf8(text).ok());
    text.ok_or_else(|| wrong_arguments("a function about files", "a name first"))
}

/// Returns the argument at `at` as a module.
fn module(args: &[AnyView<'_>], at: usize) -> Result<Module> {
    let module = args.get(at).and_then(|arg| Module::try_from(*arg).ok());
    module.ok_or_else(|| wrong_arguments("a function about modules", "a module"))
}

/// Creates the TypeError for a call whose arguments are not `wanted`.
fn wrong_arguments(what: &str, wanted: &str) -> Error {
    Error::new(ErrorKind::Type, format!("{what} takes {wanted}"))
}
