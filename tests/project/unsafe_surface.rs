//! Tests that every safe function that reaches an `unsafe` block has a reason why no caller can break it.
//!
//! The functions are found in the source. They are functions that other files can name: `pub` of any reach, methods of traits, macros.
//! They contain an `unsafe` block, or call a private safe helper in the same file that does. Tables count as other files. The reasons
//! are in `tests/unsafe_surface/<room>.txt`, one line each: `path: reason`. The test fails for a function without a line, a line
//! without a function, and a line without a reason. `BLESS=1` adds lines with an empty reason and removes stale ones. A line for
//! `module::*` stands for all functions below that module, if one reason applies to all.

use crate::support::source;
use crate::support::source::{is_test, type_name};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};
use syn::visit::{self, Visit};
use syn::{Block, ImplItem, Item, Signature, TraitItem, Visibility};

/// A function of one file.
struct Found {
    path: String,
    /// Its own name, with which the rest of the file calls it.
    name: String,
    /// `true` if code in other files can name it.
    public: bool,
    /// `true` for an `unsafe fn`, which has a contract that its callers must keep.
    contract: bool,
    has_unsafe: bool,
    calls: BTreeSet<String>,
}

#[test]
fn every_safe_function_over_unsafe_code_has_a_reason_why_no_caller_can_break_it() {
    let found = surface();
    assert!(
        found.len() > 50,
        "the search found {} functions",
        found.len()
    );
    let mut rooms: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for path in &found {
        let room = path.split("::").next().unwrap_or(path);
        rooms.entry(room).or_default().insert(path);
    }
    let bless = env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut names: BTreeSet<String> = rooms.keys().map(|room| (*room).to_owned()).collect();
    names.extend(rooms_with_a_file());
    let mut problems = Vec::new();
    for room in &names {
        let nothing = BTreeSet::new();
        let functions = rooms.get(room.as_str()).unwrap_or(&nothing);
        let reasons = reasons(room);
        if bless {
            write(room, functions, &reasons);
        } else {
            compare(functions, &reasons, &mut problems);
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Lists the differences between the functions of a room and its lines.
fn compare(
    functions: &BTreeSet<&str>,
    reasons: &BTreeMap<String, String>,
    problems: &mut Vec<String>,
) {
    for path in functions {
        if covering(path, reasons).is_none() {
            problems.push(format!("{path}: has no line; BLESS=1 adds it"));
        }
    }
    for (line, reason) in reasons {
        if reason.is_empty() {
            problems.push(format!("{line}: has no reason"));
        }
        if !functions.iter().any(|path| covers(line, path)) {
            problems.push(format!("{line}: no such function reaches unsafe code"));
        }
    }
}

/// Returns whether a line covers the function at `path`.
fn covers(line: &str, path: &str) -> bool {
    match line.strip_suffix('*') {
        Some(module) => module.ends_with("::") && path.starts_with(module),
        None => line == path,
    }
}

/// Returns the line that covers the function at `path`.
fn covering<'a>(path: &str, reasons: &'a BTreeMap<String, String>) -> Option<&'a str> {
    let mut lines = reasons.keys();
    lines.find(|line| covers(line, path)).map(String::as_str)
}

#[test]
fn a_line_that_is_missing_stale_or_empty_is_a_problem() {
    let functions = BTreeSet::from(["m::a", "m::b", "m::deep::c", "m::deep::d"]);
    let line = |path: &str, reason: &str| (path.to_owned(), reason.to_owned());
    let good = BTreeMap::from([
        line("m::a", "because"),
        line("m::b", "because"),
        line("m::deep::*", "because"),
    ]);
    let problems = |reasons: &BTreeMap<String, String>| {
        let mut problems = Vec::new();
        compare(&functions, reasons, &mut problems);
        problems
    };
    assert_eq!(problems(&good), Vec::<String>::new());
    let mut missing = good.clone();
    missing.remove("m::deep::*");
    assert_eq!(problems(&missing).len(), 2);
    let mut stale = good.clone();
    stale.extend([line("m::gone", "because"), line("m::other::*", "because")]);
    assert_eq!(problems(&stale).len(), 2);
    let mut empty = good;
    empty.extend([line("m::a", "")]);
    assert_eq!(problems(&empty), ["m::a: has no reason"]);
}

#[test]
fn the_search_sees_blocks_helpers_and_macros() {
    let source = r#"
        pub fn direct() { let _ = unsafe { read() }; }
        pub fn through() { helper(); }
        pub fn far() { through_helper(); }
        fn through_helper() { helper() }
        fn helper() { assert!(unsafe { read() }) }
        pub unsafe fn contract() { unsafe { read() } }
        pub fn clean() { contract_of_nobody() }
        pub(crate) fn inside() { unsafe { read() } }
        pub struct S;
        impl S { pub fn method(&self) { self.own() } fn own(&self) { unsafe { read() } } }
        impl Drop for S { fn drop(&mut self) { unsafe { read() } } }
        macro_rules! made { () => { unsafe { read() } } }
        #[cfg(test)] mod tests { pub fn test() { unsafe { read() } } }
        pub mod inner { pub fn deep() { unsafe { read() } } }
        const TABLE: &[fn()] = &[entered];
        fn entered() { unsafe { read() } }
    "#;
    let file = syn::parse_file(source).expect("the example parses");
    let mut all = Vec::new();
    let here = Path::new("m");
    source::inline(file.items, "m", here, here, |module, list| {
        items(list, module, &mut all);
    });
    let seen: Vec<String> = reaching(all).into_iter().collect();
    let wanted = [
        "m::<S as Drop>::drop",
        "m::S::method",
        "m::direct",
        "m::entered",
        "m::far",
        "m::inner::deep",
        "m::inside",
        "m::made!",
        "m::through",
    ];
    assert_eq!(seen, wanted);
}

fn root() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR")
        .expect("cargo sets it")
        .into()
}

fn folder() -> PathBuf {
    root().join("tests/unsafe_surface")
}

fn rooms_with_a_file() -> BTreeSet<String> {
    let Ok(files) = fs::read_dir(folder()) else {
        return BTreeSet::new();
    };
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    let rooms = names.filter_map(|name| Some(name.strip_suffix(".txt")?.to_owned()));
    rooms.collect()
}

/// Reads the lines of a room: path and reason.
fn reasons(room: &str) -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder().join(format!("{room}.txt"))).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.is_empty());
    let pairs = lines.map(|line| match line.split_once(": ") {
        Some((path, reason)) => (path.to_owned(), reason.trim().to_owned()),
        None => (line.trim_end_matches(':').to_owned(), String::new()),
    });
    pairs.collect()
}

fn write(room: &str, functions: &BTreeSet<&str>, reasons: &BTreeMap<String, String>) {
    let needed = |line: &&String| functions.iter().any(|path| covers(line, path));
    let mut lines: BTreeSet<&str> = reasons.keys().filter(needed).map(String::as_str).collect();
    let bare = functions
        .iter()
        .filter(|path| covering(path, reasons).is_none());
    lines.extend(bare);
    let lines = lines.iter().map(|line| {
        let reason = reasons.get(*line).map_or("", String::as_str);
        format!("{}\n", format!("{line}: {reason}").trim_end())
    });
    let text: String = lines.collect();
    let file = folder().join(format!("{room}.txt"));
    fs::create_dir_all(folder()).expect("the folder is made");
    if text.is_empty() {
        drop(fs::remove_file(file))
    } else {
        fs::write(file, text).expect("the lines are written")
    }
}

/// Returns the paths of all safe functions of the library that others can name and that reach an `unsafe` block.
fn surface() -> BTreeSet<String> {
    let mut files: BTreeMap<PathBuf, Vec<Found>> = BTreeMap::new();
    source::modules(&root().join("src"), |file, module, list| {
        items(list, module, files.entry(file.to_owned()).or_default());
    });
    files.into_values().flat_map(reaching).collect()
}

/// Returns the functions of one file that must be listed.
fn reaching(functions: Vec<Found>) -> BTreeSet<String> {
    let mut helpers: BTreeSet<&str> = BTreeSet::new();
    loop {
        let more = functions.iter().filter(|one| {
            let reaches = one.has_unsafe || one.calls.iter().any(|name| helpers.contains(&**name));
            reaches && !one.public && !one.contract && !helpers.contains(&*one.name)
        });
        let more: Vec<&str> = more.map(|one| &*one.name).collect();
        if more.is_empty() {
            break;
        }
        helpers.extend(more);
    }
    let listed = functions.iter().filter(|one| {
        one.public
            && !one.contract
            && (one.has_unsafe || one.calls.iter().any(|name| helpers.contains(&**name)))
    });
    listed.map(|one| one.path.clone()).collect()
}

/// Adds the items in `list`, which belongs to the module `module`.
fn items(list: &[Item], module: &str, all: &mut Vec<Found>) {
    let joined = |name: &str| source::joined(module, name);
    let first = all.len();
    let mut listed = BTreeSet::new();
    for item in list {
        match item {
            Item::Fn(one) if !is_test(&one.attrs) => {
                let path = joined(&one.sig.ident.to_string());
                all.push(found(path, is_public(&one.vis), &one.sig, &one.block));
            }
            Item::Impl(block) if !is_test(&block.attrs) => {
                let own = type_name(&block.self_ty);
                let of = block.trait_.as_ref().map(|(_, path, _)| {
                    let last = path.segments.last();
                    last.map_or_else(String::new, |last| last.ident.to_string())
                });
                for item in &block.items {
                    let ImplItem::Fn(one) = item else { continue };
                    let name = &one.sig.ident;
                    let path = match &of {
                        Some(of) => joined(&format!("<{own} as {of}>::{name}")),
                        None => joined(&format!("{own}::{name}")),
                    };
                    let public = of.is_some() || is_public(&one.vis);
                    all.push(found(path, public, &one.sig, &one.block));
                }
            }
            Item::Trait(one) => {
                for item in &one.items {
                    let TraitItem::Fn(method) = item else {
                        continue;
                    };
                    let Some(body) = &method.default else {
                        continue;
                    };
                    let path = joined(&format!("{}::{}", one.ident, method.sig.ident));
                    all.push(found(path, true, &method.sig, body));
                }
            }
            // The functions in a table are called where the table is read.
            Item::Const(one) => listed.extend(Seen::of(&one.expr).calls),
            Item::Static(one) => listed.extend(Seen::of(&one.expr).calls),
            Item::Macro(one) => {
                let Some(name) = &one.ident else { continue };
                if one.mac.tokens.to_string().contains("unsafe {") {
                    all.push(Found {
                        path: joined(&format!("{name}!")),
                        name: format!("{name}!"),
                        public: true,
                        contract: false,
                        has_unsafe: true,
                        calls: BTreeSet::new(),
                    });
                }
            }
            _ => {}
        }
    }
    for one in all.iter_mut().skip(first) {
        one.public |= listed.contains(&one.name);
    }
}

fn found(path: String, public: bool, signature: &Signature, body: &Block) -> Found {
    let mut seen = Seen::default();
    seen.visit_block(body);
    Found {
        path,
        name: signature.ident.to_string(),
        public,
        contract: signature.unsafety.is_some(),
        has_unsafe: seen.has_unsafe,
        calls: seen.calls,
    }
}

/// The contents of a function body.
#[derive(Default)]
struct Seen {
    has_unsafe: bool,
    calls: BTreeSet<String>,
}

impl Seen {
    fn of(value: &syn::Expr) -> Seen {
        let mut seen = Seen::default();
        seen.visit_expr(value);
        seen
    }
}

impl<'ast> Visit<'ast> for Seen {
    fn visit_expr_unsafe(&mut self, one: &'ast syn::ExprUnsafe) {
        self.has_unsafe = true;
        visit::visit_expr_unsafe(self, one);
    }

    // A function that is passed by name may be called too.
    fn visit_expr_path(&mut self, one: &'ast syn::ExprPath) {
        let last = one.path.segments.last();
        self.calls.extend(last.map(|last| last.ident.to_string()));
        visit::visit_expr_path(self, one);
    }

    fn visit_expr_method_call(&mut self, one: &'ast syn::ExprMethodCall) {
        self.calls.insert(one.method.to_string());
        visit::visit_expr_method_call(self, one);
    }

    fn visit_macro(&mut self, one: &'ast syn::Macro) {
        // The arguments of a macro are tokens: `assert!(unsafe { .. })`.
        self.has_unsafe |= one.tokens.to_string().contains("unsafe {");
        visit::visit_macro(self, one);
    }

    // An `unsafe fn` inside a body has its own contract. A safe one counts for the body.
    fn visit_item_fn(&mut self, one: &'ast syn::ItemFn) {
        if one.sig.unsafety.is_none() {
            visit::visit_item_fn(self, one);
        }
    }
}

/// Returns whether code outside its file can name it: `pub`, or `pub` inside the crate, which public functions of the crate can reach.
fn is_public(visibility: &Visibility) -> bool {
    !matches!(visibility, Visibility::Inherited)
}
