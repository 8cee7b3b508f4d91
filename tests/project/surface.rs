//! Every public item of the library is used by code outside of it.
//!
//! What no test, example, bench, fuzz target, command, C header, README or documentation example names is either not for
//! users, and becomes `pub(crate)`, or wants an example. The search is one for whole words in those places. Items that stay
//! for another reason have a line in `tests/surface/<room>.txt`, `path: reason`; a line that is not needed any more, or that
//! has no reason, fails. `BLESS=1` adds lines with an empty reason and takes stale ones out.

use crate::support::skip::skipped;
use crate::support::source;
use crate::support::source::{is_test, type_name};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::{env, fs};
use syn::{ImplItem, Item, TraitItem, Visibility};

#[test]
fn every_public_item_is_named_outside() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    if !root.join("fuzz").is_dir() {
        return skipped("the package leaves fuzz/ out, which names some items alone");
    }
    let words = words_outside(&root);
    assert!(words.len() > 1000, "{} words outside", words.len());
    let items = public_items(&root.join("src"));
    assert!(items.len() > 300, "{} public items", items.len());
    let mut rooms: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for path in &items {
        let room = path.split("::").next().unwrap_or(path);
        let unnamed = rooms.entry(room.to_owned()).or_default();
        if path
            .rsplit("::")
            .next()
            .is_some_and(|name| !words.contains(name))
        {
            unnamed.insert(path);
        }
    }
    let count: usize = rooms.values().map(BTreeSet::len).sum();
    println!(
        "{count} of {} public items are named nowhere outside",
        items.len()
    );
    let bless = env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut problems = Vec::new();
    for (room, unnamed) in &rooms {
        let file = root.join("tests/surface").join(format!("{room}.txt"));
        let reasons = reasons(&file);
        if bless {
            write(&file, unnamed, &reasons);
        } else {
            compare(unnamed, &reasons, &mut problems);
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn compare(
    unnamed: &BTreeSet<&str>,
    reasons: &BTreeMap<String, String>,
    problems: &mut Vec<String>,
) {
    let missing = unnamed.iter().filter(|path| !reasons.contains_key(**path));
    problems.extend(missing.map(|path| format!("{path}: public, and not named outside")));
    for (path, reason) in reasons {
        if !unnamed.contains(path.as_str()) {
            problems.push(format!("{path}: needs no line"));
        } else if reason.is_empty() {
            problems.push(format!("{path}: has no reason"));
        }
    }
}

#[test]
fn an_item_that_is_missing_stale_or_without_reason_is_a_problem() {
    let unnamed = BTreeSet::from(["m::a", "m::b"]);
    let line = |path: &str, reason: &str| (path.to_owned(), reason.to_owned());
    let problems = |lines: &[(String, String)]| {
        let mut problems = Vec::new();
        compare(&unnamed, &lines.iter().cloned().collect(), &mut problems);
        problems
    };
    let (a, b) = (line("m::a", "because"), line("m::b", "because"));
    assert_eq!(problems(&[a.clone(), b.clone()]), Vec::<String>::new());
    assert_eq!(
        problems(std::slice::from_ref(&a)),
        ["m::b: public, and not named outside"]
    );
    assert_eq!(
        problems(&[a.clone(), b, line("m::c", "because")]),
        ["m::c: needs no line"]
    );
    assert_eq!(problems(&[a, line("m::b", "")]), ["m::b: has no reason"]);
}

#[test]
fn the_search_sees_what_is_public() {
    let source = r#"
        pub fn function() {}
        pub(crate) fn inside() {}
        pub struct Type { pub field: i32 }
        impl Type { pub fn method(&self) {} fn own(&self) {} pub const ONE: i32 = 1; }
        impl Drop for Type { fn drop(&mut self) {} }
        pub trait Trait { fn asked(&self); }
        pub const NUMBER: i32 = 1;
        #[cfg(test)] pub mod tests { pub fn test() {} }
        pub mod inner { pub static DEEP: i32 = 1; }
    "#;
    let file = syn::parse_file(source).expect("the example parses");
    let mut all = BTreeSet::new();
    let here = Path::new("m");
    source::inline(file.items, "m", here, here, |module, items| {
        list(items, module, &mut all);
    });
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let wanted = [
        "m::NUMBER",
        "m::Trait",
        "m::Trait::asked",
        "m::Type",
        "m::Type::ONE",
        "m::Type::method",
        "m::function",
        "m::inner::DEEP",
    ];
    assert_eq!(all, wanted);
    let documented = "/// Adds.\n/// ```\n/// use_me();\n/// ```\nfn not_me() {}\n";
    assert_eq!(examples(documented), "use_me();\n");
}

fn reasons(file: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.is_empty());
    let pairs = lines.map(|line| match line.split_once(": ") {
        Some((path, reason)) => (path.to_owned(), reason.trim().to_owned()),
        None => (line.trim_end_matches(':').to_owned(), String::new()),
    });
    pairs.collect()
}

fn write(file: &Path, unnamed: &BTreeSet<&str>, reasons: &BTreeMap<String, String>) {
    if unnamed.is_empty() {
        let _ = fs::remove_file(file);
        return;
    }
    let lines = unnamed.iter().map(|path| {
        let reason = reasons.get(*path).map_or("", String::as_str);
        format!("{}\n", format!("{path}: {reason}").trim_end())
    });
    fs::create_dir_all(file.parent().expect("a folder")).expect("the folder is made");
    fs::write(file, lines.collect::<String>()).expect("the lines are written");
}

/// All words of what lies outside of the library.
fn words_outside(root: &Path) -> HashSet<String> {
    let mut text = String::new();
    for place in ["tests", "examples", "benches", "fuzz", "include", "src/cli"] {
        for file in files(&root.join(place)) {
            // This file names things to test itself.
            if !file.ends_with("tests/project/surface.rs") {
                text.push_str(&fs::read_to_string(&file).unwrap_or_default());
                text.push('\n');
            }
        }
    }
    for file in ["README.md", "src/main.rs"] {
        text.push_str(&fs::read_to_string(root.join(file)).unwrap_or_default());
    }
    for place in ["src", "conformance"] {
        for file in files(&root.join(place)) {
            text.push_str(&examples(&fs::read_to_string(file).unwrap_or_default()));
        }
    }
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.map(str::to_owned).collect()
}

/// The code in the documentation of a file.
fn examples(source: &str) -> String {
    let mut code = String::new();
    let mut inside = false;
    for line in source.lines() {
        let line = line.trim_start();
        let Some(line) = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"))
        else {
            inside = false;
            continue;
        };
        let line = line.strip_prefix(' ').unwrap_or(line);
        if line.starts_with("```") {
            inside = !inside;
        } else if inside {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// Sources below a folder: Rust, C, Python.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            // What cargo builds for the fuzz targets; a chapter has the name of that folder.
            if path.is_dir() && !path.ends_with("fuzz/target") {
                open.push(path);
            } else if matches!(ending, Some("rs" | "c" | "h" | "cc" | "py")) {
                found.push(path);
            }
        }
    }
    found
}

/// The paths of all public items below `src`. That a `pub` item can be reached says the lint `unreachable_pub`.
fn public_items(src: &Path) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    source::modules(src, |_, module, items| list(items, module, &mut paths));
    paths
}

/// Adds the items of module `module`.
fn list(items: &[Item], module: &str, all: &mut BTreeSet<String>) {
    let joined = |name: &str| source::joined(module, name);
    for item in items {
        let (vis, name, attrs) = match item {
            Item::Fn(one) => (&one.vis, &one.sig.ident, &one.attrs),
            Item::Struct(one) => (&one.vis, &one.ident, &one.attrs),
            Item::Enum(one) => (&one.vis, &one.ident, &one.attrs),
            Item::Union(one) => (&one.vis, &one.ident, &one.attrs),
            Item::Const(one) => (&one.vis, &one.ident, &one.attrs),
            Item::Static(one) => (&one.vis, &one.ident, &one.attrs),
            Item::Type(one) => (&one.vis, &one.ident, &one.attrs),
            Item::Trait(one) => {
                for member in &one.items {
                    if let (TraitItem::Fn(method), true) = (member, is_public(&one.vis)) {
                        all.insert(joined(&format!("{}::{}", one.ident, method.sig.ident)));
                    }
                }
                (&one.vis, &one.ident, &one.attrs)
            }
            Item::Impl(block) if block.trait_.is_none() && !is_test(&block.attrs) => {
                let own = type_name(&block.self_ty);
                for member in &block.items {
                    let (vis, name) = match member {
                        ImplItem::Fn(one) => (&one.vis, &one.sig.ident),
                        ImplItem::Const(one) => (&one.vis, &one.ident),
                        _ => continue,
                    };
                    if is_public(vis) {
                        all.insert(joined(&format!("{own}::{name}")));
                    }
                }
                continue;
            }
            _ => continue,
        };
        if is_public(vis) && !is_test(attrs) {
            all.insert(joined(&name.to_string()));
        }
    }
}

fn is_public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}
