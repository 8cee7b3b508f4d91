//! `legacy:LIB[,LIB..]`: a runtime behind the C interface of 0.7 to 0.20. The first library exports it; the others are
//! loaded after it.
//!
//! | operation            | asked by                                                      | what is compared    |
//! |----------------------|---------------------------------------------------------------|---------------------|
//! | `blob.decode`        | loading a library around the bytes (layout 0.7)                | the view `kinds`    |
//! | `module.load`        | the same                                                      | the view `kinds`    |
//! | `import_tree.decode` | the same, with one module of ours for each row                 | the view `rows`     |
//! | `payload.decode`     | the same, with the payload as the only module                  | the view `kind`     |
//! | `module.import`      | `TVMModImport` on libraries with nothing in them               | the value           |
//! | `module.find`        | `TVMModGetFunction` on libraries of a few functions            | the view `found`    |
//! | `tensor.decode`      | `runtime.LoadParams`                                           | `tensors`, `tensor` |
//! | `tensor.encode`      | `runtime.SaveParams`                                           | the bytes           |
//! | `tensor.dtype_parse` | making a tensor of the type                                    | the value           |
//! | `tensor.dtype_text`  | a call that gives the type back                                | the text            |
//! | `value.legacy`       | a call that gives its argument back                            | the value           |
//! | `value.legacy_code`  | the code of a result, and the message about a wrong argument   | the value           |
//! | `function.legacy`    | its steps: `TVMFuncCall`, `TVMFuncRegisterGlobal` and so on     | the value           |
//! | `graph.script`       | `tvm.graph_executor.create` and its kin, with kernels of ours  | the value           |
//!
//! Loaders of that time read a C++ stream, and a payload ends where its loader stops: no loader of ours can stand in for
//! one that the runtime lacks. A library that needs such a loader is *unsupported*, not refused.
//!
//! The interface does not tell its release. What the runtime has and lacks narrows it down, see `Stands`; where that
//! contradicts itself the runtime stands for all of 0.8 to 0.20.

mod api;
mod calls;
mod graphs;
mod modules;
mod tensors;

use super::library;
use super::{Identity, Rejection, Reply, Testee};
use crate::conformance::op::{Refusal, data};
use crate::release::Release;
use crate::value::legacy::code;
use api::{Api, text_arg};
use serde_json::Value;
use std::path::Path;

/// A foreign runtime.
pub struct Legacy {
    name: String,
    stands: Stands,
    api: &'static Api,
}

impl Legacy {
    /// Loads the libraries, given as paths between commas.
    ///
    /// # Errors
    ///
    /// Says which cannot be loaded, or what it lacks.
    pub fn open(libraries: &str) -> Result<Legacy, String> {
        let paths: Vec<&Path> = libraries.split(',').map(Path::new).collect();
        let api: &'static Api = Box::leak(Box::new(Api::open(&paths)?));
        Ok(Legacy {
            name: library::names(&paths),
            stands: Stands::of(api),
            api,
        })
    }
}

impl Testee for Legacy {
    fn identity(&self) -> Identity {
        let Stands { first, last } = self.stands;
        Identity {
            name: self.name.clone(),
            version: match first == last {
                true => format!("C interface of {first}"),
                false => format!("C interface of {first} to {last}"),
            },
            releases: (8..=20)
                .map(Release::of)
                .filter(|release| (first..=last).contains(release))
                .map(|release| release.to_string())
                .collect(),
            // Not listed: what is not done is said with its reason.
            ops: Vec::new(),
        }
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        let (api, stands) = (self.api, self.stands);
        let reply = match op {
            "blob.decode" | "module.load" => modules::walk(api, args),
            "import_tree.decode" => modules::import_tree(api, args),
            "payload.decode" => modules::payload(api, args),
            "module.import" => modules::import(api, args),
            "module.find" => modules::find(api, args),
            "tensor.decode" => tensors::decode(api, stands, args),
            "tensor.encode" => tensors::encode(api, stands, args),
            "tensor.dtype_parse" => tensors::dtype_parse(api, stands, args),
            "tensor.dtype_text" => tensors::dtype_text(api, stands, args),
            "value.legacy" => calls::value(api, args),
            "value.legacy_code" => calls::code_of(api, stands, args),
            "graph.script" => graphs::script(api, args),
            "function.legacy" => calls::script(api, args),
            _ => Err(unsupported(why_not(op))),
        };
        reply.unwrap_or_else(|reply| reply)
    }
}

/// The releases that a runtime may be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stands {
    first: Release,
    last: Release,
}

impl Stands {
    /// What came with a release and stayed is there or not: the last that is there, and the first that is not, bound it.
    fn of(api: &'static Api) -> Stands {
        let has = |name: &str| api.global(name).is_ok_and(|found| found.is_some());
        let enabled = api.call_global("runtime.RuntimeEnabled", &[text_arg(c"cpu")]);
        Stands::between(&[
            (9, has("runtime.ModuleGetFormat")),
            (12, has("runtime.ModuleGetPropertyMask")),
            (14, has("runtime.module.loadbinary_static_library")),
            (15, api.has_backtraces),
            (16, has("runtime.ModuleClearImports")),
            (18, enabled.is_ok_and(|enabled| enabled.code == code::BOOL)),
            (19, has("vm.builtin.kv_cache_disagg_mark_send")),
            (20, has("runtime.module.loadbinary_relax.VMExecutable")),
        ])
    }

    fn between(marks: &[(u8, bool)]) -> Stands {
        let there = marks.iter().take_while(|(_, there)| *there).count();
        let rest = marks.get(there..).unwrap_or_default();
        if rest.iter().any(|(_, there)| *there) {
            return Stands {
                first: Release::of(8),
                last: Release::of(20),
            };
        }
        let first = marks
            .get(there.wrapping_sub(1))
            .map_or(8, |(minor, _)| *minor);
        let last = rest.first().map_or(20, |(minor, _)| minor - 1);
        Stands {
            first: Release::of(first),
            last: Release::of(last),
        }
    }

    /// For what differs from release to release: only a runtime whose release is known can be asked.
    fn for_one_release(self, args: &Value) -> Result<(), Reply> {
        if self.first != self.last {
            return Err(unsupported(
                "it does not show which release this runtime is of",
            ));
        }
        self.for_release_of(args)
    }

    /// A case may ask for what another release does.
    fn for_release_of(self, args: &Value) -> Result<(), Reply> {
        let named = args.get("release").and_then(Value::as_str);
        match named.and_then(|name| name.parse::<Release>().ok()) {
            Some(release) if !(self.first..=self.last).contains(&release) => Err(unsupported(
                format!("the case asks for what {release} does"),
            )),
            _ => Ok(()),
        }
    }
}

/// Why an operation cannot be asked through this interface.
fn why_not(op: &str) -> String {
    if let Some(why) = library::why_not(op) {
        return why.to_owned();
    }
    match op {
        "module.system" | "module.environment" => {
            "what is registered stays for the life of the process, and would show in the next case"
                .to_owned()
        }
        "module.symbols" | "module.call" | "module.life" | "module.launch" | "module.constants"
            | "module.barrier" | "module.once" | "module.workspace" => "the case looks into the loader or at compiled code, which has no way through this interface"
            .to_owned(),
        "module.properties" => "modules of most kinds cannot be made from nothing".to_owned(),
        _ if op.starts_with("graph.") => "an executor does not show the graph that it read".to_owned(),
        _ => format!("`{op}` has no way through the C interface of 0.20 and before"),
    }
}

fn bytes(args: &Value) -> Result<Vec<u8>, Reply> {
    data(args).map_err(|refusal| match refusal {
        Refusal::Unsupported(why) => Reply::Unsupported(why),
        Refusal::Rejected(broken) => Reply::ProtocolError(broken.to_string()),
    })
}

fn unsupported(why: impl Into<String>) -> Reply {
    Reply::Unsupported(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_bound_the_release() {
        let bounds = |there: &[bool]| {
            let minors = [9, 12, 15];
            let marks: Vec<(u8, bool)> = minors.into_iter().zip(there.iter().copied()).collect();
            let Stands { first, last } = Stands::between(&marks);
            (first.to_string(), last.to_string())
        };
        let pair = |first: &str, last: &str| (first.to_owned(), last.to_owned());
        assert_eq!(bounds(&[false, false, false]), pair("0.8", "0.8"));
        assert_eq!(bounds(&[true, false, false]), pair("0.9", "0.11"));
        assert_eq!(bounds(&[true, true, true]), pair("0.15", "0.20"));
        assert_eq!(bounds(&[false, true, true]), pair("0.8", "0.20"));
    }
}
