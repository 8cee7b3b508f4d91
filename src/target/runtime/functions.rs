//! The registry functions that list kinds for frontends (TGT-74), as in the newest release.

use super::registered_targets;
use crate::function::{Function, Result, registry};
use crate::object::{Array, Map};
use crate::release::Release;
use crate::rule::Kind;
use crate::target::{OptionType, TGT_74, TargetKind};
use crate::value::Any;

/// Registers the functions, unless a compiler in the same process has: a C++ library has its own.
pub(crate) fn provide() {
    registry::provide("target.ListTargetKinds", Function::named(None, list_kinds));
    registry::provide(
        "target.ListTargetKindOptionsFromName",
        Function::named(None, list_options),
    );
}

/// Returns the kinds of the release that every build has, and those of the process.
fn kinds() -> Vec<TargetKind> {
    // TGT-74: kinds are listed without asking a device, so that no driver is loaded.
    let mut kinds = registered_targets(Release::LAST, false).kinds();
    kinds.retain(|kind| kind.built_with.is_none());
    kinds
}

fn list_kinds() -> Array {
    let names: Vec<Any> = kinds()
        .into_iter()
        .map(|kind| kind.name.as_str().into())
        .collect();
    Array::new(names)
}

fn list_options(name: String) -> Result<Map> {
    let found = kinds().into_iter().find(|kind| kind.name == name);
    let Some(kind) = found else {
        let message = format!("`{name}` is not a kind of targets");
        // TGT-74: 0.27 answers with the error of a failed access to an empty option, which names neither the kind nor the mistake.
        return Err(TGT_74.rejected(Kind::Missing, message).into());
    };
    let types = kind.options.iter().map(|option| {
        let of = type_name(&option.option_type);
        (option.name.as_str().into(), of.as_str().into())
    });
    Map::from_pairs(types.collect())
}

/// Returns the name of a type as 0.24 and later write it. A bool is a separate type since then, and text is `str`.
fn type_name(of: &OptionType) -> String {
    match of {
        OptionType::Int => "int".into(),
        OptionType::Bool => "bool".into(),
        OptionType::Str => "str".into(),
        OptionType::Target => "target.Target".into(),
        OptionType::List(inner) => format!("Array<{}>", type_name(inner)),
        OptionType::Map => "Map<str, Any>".into(),
    }
}
