//! The modules of the library, found in its source.

use std::fs;
use std::path::{Path, PathBuf};
use syn::{Attribute, Item, Type};

/// Calls `visit` for every module below `src` that is not a test, with the file, the path of the module, and its items.
pub(crate) fn modules(src: &Path, mut visit: impl FnMut(&Path, &str, &[Item])) {
    let mut open = vec![(src.join("lib.rs"), src.to_owned(), String::new())];
    while let Some((file, folder, module)) = open.pop() {
        let text =
            fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let beside = file.parent().unwrap_or(&folder).to_owned();
        let found = |module: &str, items: &[Item]| visit(&file, module, items);
        open.extend(inline(parsed.items, &module, &folder, &beside, found));
    }
}

/// A module in a separate file: the file, the folder for the files of its modules, its path.
type Apart = (PathBuf, PathBuf, String);

/// Calls `visit` for `module` and its inline modules. Returns the modules in separate files, which are in `folder`. A module with a
/// `#[path]` attribute is relative to `beside` instead.
pub(crate) fn inline(
    items: Vec<Item>,
    module: &str,
    folder: &Path,
    beside: &Path,
    mut visit: impl FnMut(&str, &[Item]),
) -> Vec<Apart> {
    let mut apart = Vec::new();
    let mut lists = vec![(
        items,
        module.to_owned(),
        folder.to_owned(),
        beside.to_owned(),
    )];
    while let Some((items, module, folder, beside)) = lists.pop() {
        visit(&module, &items);
        for item in items {
            let Item::Mod(one) = item else { continue };
            if is_test(&one.attrs) {
                continue;
            }
            let name = one.ident.to_string();
            // The formats share one module only for their lints. Paths leave it out.
            let path = match name.as_str() {
                "formats" => module.clone(),
                name => joined(&module, name),
            };
            let named = path_of(&one.attrs).map(|named| beside.join(named));
            if let Some((_, inner)) = one.content {
                let below = named.unwrap_or_else(|| folder.join(&name));
                lists.push((inner, path, below.clone(), below));
                continue;
            }
            let (file, below) = file_of(named, &folder, &name);
            apart.push((file, below, path));
        }
    }
    apart
}

/// Returns the file of module `name`, and the folder for the files of its modules.
fn file_of(named: Option<PathBuf>, folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let own = folder.join(name).join("mod.rs");
    let is_named = named.is_some();
    let file = match named {
        Some(named) => named,
        None if own.exists() => own,
        None => folder.join(format!("{name}.rs")),
    };
    // The modules of a file that `#[path]` names are beside it, as those of a `mod.rs` are.
    let is_mod = is_named || file.file_name().is_some_and(|file| file == "mod.rs");
    let below = match file.parent() {
        Some(parent) if is_mod => parent.to_owned(),
        _ => folder.join(name),
    };
    (file, below)
}

/// Returns the path of `name` in `module`.
pub(crate) fn joined(module: &str, name: &str) -> String {
    match module {
        "" => name.to_owned(),
        module => format!("{module}::{name}"),
    }
}

pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|one| {
        let is_cfg = one.path().is_ident("cfg");
        let tests = is_cfg
            && one
                .parse_args::<syn::Path>()
                .is_ok_and(|name| name.is_ident("test"));
        tests || one.path().is_ident("test")
    })
}

/// Returns the text of `#[path = ".."]`.
fn path_of(attributes: &[Attribute]) -> Option<String> {
    let named = attributes.iter().find(|one| one.path().is_ident("path"))?;
    let syn::Meta::NameValue(value) = &named.meta else {
        return None;
    };
    let syn::Expr::Lit(literal) = &value.value else {
        return None;
    };
    match &literal.lit {
        syn::Lit::Str(text) => Some(text.value()),
        _ => None,
    }
}

pub(crate) fn type_name(own: &Type) -> String {
    match own {
        Type::Path(path) => {
            let last = path.path.segments.last();
            last.map_or_else(String::new, |last| last.ident.to_string())
        }
        Type::Reference(reference) => format!("&{}", type_name(&reference.elem)),
        Type::Ptr(pointer) => format!("*{}", type_name(&pointer.elem)),
        Type::Slice(slice) => format!("[{}]", type_name(&slice.elem)),
        Type::TraitObject(_) => "dyn".to_owned(),
        _ => "_".to_owned(),
    }
}
