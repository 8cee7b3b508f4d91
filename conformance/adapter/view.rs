//! Views: the part of a value that an interface shows.
//!
//! A foreign runtime loads a library binary but does not show its bytes. An adapter then answers with a *view*: a smaller value of
//! the visible parts. The same view is computed from the expected value, and the two are compared. A part outside of the view is
//! not compared, and reports name the view.
//!
//! | view       | of                          | content                                                            |
//! |------------|-----------------------------|--------------------------------------------------------------------|
//! | `modules`  | a blob                      | modules with a payload in order, with kinds, payloads and imports; the library's imports |
//! | `rows`     | an import tree              | the imports of each module, in order                               |
//! | `kinds`    | a blob, a loaded module     | kinds and imports of all modules that the root reaches, in the order of a walk |
//! | `found`    | a lookup through modules    | the place where the function was found                             |
//! | `entry`    | the system library          | the registered symbol that was found                               |
//! | `function` | the symbols of a library    | the function found and the slots filled                            |
//! | `opened`   | a library in a file         | kinds and imports, the functions that were found, and their results |
//! | `called`   | a library on a server       | the functions that were found, and their results                   |
//! | `released` | the life of an object       | the flags of the deleter when the last strong reference is dropped |
//! | `home`     | a hash                      | the slot of an element with it in a map of 4096 slots              |
//! | `kind`     | a payload                   | the kind                                                           |
//! | `generated` | generated code             | everything except its kind, which is that of another generator     |
//! | `tensors`  | a parameter file            | by name: dtype, shape, data                                        |
//! | `tensor`   | a tensor record             | dtype, shape, data                                                 |

use serde_json::{Map, Value, json};

/// The number of slots of the map in the view `home`.
pub(crate) const HOME_SLOTS: u64 = 4096;

/// Returns the view `name` of an expected value, or `None` for an unknown view or a value of another form.
pub(crate) fn view(name: &str, expected: &Value) -> Option<Value> {
    match name {
        "modules" => modules(expected),
        "rows" => rows(expected).map(|rows| json!(rows)),
        "kinds" => kinds(expected),
        "found" => expected.get("found_in").cloned(),
        "entry" => expected.get("found").cloned(),
        "function" => {
            Some(json!({"function": expected.get("function")?, "slots": expected.get("slots")?}))
        }
        "opened" => opened(expected),
        "called" => {
            Some(json!({"found": expected.get("found")?, "results": expected.get("results")?}))
        }
        "released" => Some(json!([expected.pointer("/flags/0")?])),
        "home" => home(expected),
        "kind" => expected.get("kind").cloned(),
        "generated" => generated(expected),
        "tensors" => tensors(expected),
        "tensor" => tensor(expected),
        _ => None,
    }
}

/// A module as an interface shows it. Modules with a payload went through a loader, which shows their order; a library has no
/// payload.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShownModule {
    /// The kind and the payload in base64; `None` for the library itself.
    pub stored: Option<(String, String)>,
    /// The positions of its imports.
    pub imports: Vec<usize>,
}

/// Returns the view `modules`. Loaded modules are named by their order. Libraries are named by the order in which they are reached,
/// first from the root and then from each loaded module. The position of a library in the list therefore does not matter.
pub(crate) fn modules_of(shown: &[ShownModule]) -> Value {
    let loaded: Vec<usize> = (0..shown.len())
        .filter(|at| shown[*at].stored.is_some())
        .collect();
    let mut names: Vec<Option<String>> = vec![None; shown.len()];
    for (order, at) in loaded.iter().enumerate() {
        names[*at] = Some(format!("module {order}"));
    }
    let mut libraries = Vec::new();
    let mut seen = vec![false; shown.len()];
    for start in (0..shown.len().min(1)).chain(loaded.iter().copied()) {
        let mut stack = vec![start];
        while let Some(at) = stack.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            if names[at].is_none() {
                names[at] = Some(format!("library {}", libraries.len()));
                libraries.push(at);
            }
            // Reversed, so that the first import is on top of the stack and visited first.
            stack.extend(shown[at].imports.iter().rev());
        }
    }
    let imports = |at: usize| -> Vec<Value> {
        let imports = shown[at].imports.iter();
        imports.map(|import| json!(names[*import])).collect()
    };
    let loaded = loaded.iter().map(|at| {
        let stored = shown[*at].stored.clone().unwrap_or_default();
        json!({"kind": stored.0, "payload": stored.1, "imports": imports(*at)})
    });
    let libraries: Vec<Value> = libraries.iter().map(|at| json!(imports(*at))).collect();
    json!({
        "root": names.first().cloned().flatten(),
        "modules": loaded.collect::<Vec<_>>(),
        "libraries": libraries,
    })
}

/// Returns the view `kinds`: the kind of each module that the first one reaches, before its imports.
pub(crate) fn kinds_of(modules: &[(String, Vec<usize>)]) -> Value {
    let mut order: Vec<usize> = Vec::new();
    let mut stack = vec![0];
    while let Some(at) = stack.pop() {
        if at < modules.len() && !order.contains(&at) {
            order.push(at);
            // Reversed, so that the first import is on top of the stack and visited first.
            stack.extend(modules[at].1.iter().rev());
        }
    }
    let place = |at: &usize| order.iter().position(|known| known == at);
    let walk = order.iter().map(|at| {
        let (kind, imports) = &modules[*at];
        // A library is `_lib` in a blob, and `library` after loading.
        let kind = if kind == "_lib" { "library" } else { kind };
        json!({"kind": kind, "imports": imports.iter().map(place).collect::<Vec<_>>()})
    });
    walk.collect()
}

/// Returns the view `opened`, without layout, slots and the list of functions.
fn opened(expected: &Value) -> Option<Value> {
    let part = |name: &str| expected.get(name).cloned();
    Some(json!({"modules": part("modules")?, "found": part("found")?, "results": part("results")?}))
}

/// Returns the view `kinds` of a loaded module, which has a context, or of a blob.
fn kinds(expected: &Value) -> Option<Value> {
    let kind = |module: &Value| {
        module
            .get("kind")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let list = expected.get("modules")?.as_array()?;
    // A loaded module has a context, and a blob that was only read has none.
    if expected.get("context").is_some() {
        let imports = |module: &Value| -> Option<Vec<usize>> {
            let list = module.get("imports")?.as_array()?.iter();
            list.map(|place| usize::try_from(place.as_u64()?).ok())
                .collect()
        };
        let modules = list
            .iter()
            .map(|module| Some((kind(module)?, imports(module)?)));
        return Some(kinds_of(&modules.collect::<Option<Vec<_>>>()?));
    }
    let kinds = list.iter().map(kind).collect::<Option<Vec<_>>>()?;
    let modules = match expected.get("import_tree").filter(|tree| !tree.is_null()) {
        Some(tree) => kinds.into_iter().zip(rows(tree)?).collect(),
        None => {
            // BLOB-14: layout 0.2 stores no library. The library that contains the blob imports every entry in order.
            let mut modules = vec![("_lib".to_owned(), (1..=kinds.len()).collect())];
            modules.extend(kinds.into_iter().map(|kind| (kind, Vec::new())));
            modules
        }
    };
    Some(kinds_of(&modules))
}

/// Returns the view `modules` of a blob.
fn modules(blob: &Value) -> Option<Value> {
    let list = blob.get("modules")?.as_array()?;
    let tree = blob.get("import_tree").filter(|tree| !tree.is_null());
    let rows = match tree {
        Some(tree) => rows(tree)?,
        None => vec![Vec::new(); list.len()],
    };
    let shown = list.iter().enumerate().map(|(at, module)| {
        let text = |key: &str| module.get(key).and_then(Value::as_str).map(str::to_owned);
        let stored = text("payload").map(|payload| (text("kind").unwrap_or_default(), payload));
        let imports = rows.get(at).cloned().unwrap_or_default();
        ShownModule { stored, imports }
    });
    let mut shown: Vec<ShownModule> = shown.collect();
    if tree.is_none() {
        // Without a tree the loaded library is the root and imports all stored modules.
        let imports = (1..=shown.len()).collect();
        shown.insert(
            0,
            ShownModule {
                stored: None,
                imports,
            },
        );
    }
    Some(modules_of(&shown))
}

/// Returns the imports of each module, which `indptr` selects from `indices`, or `None` if it selects past the end.
fn rows(tree: &Value) -> Option<Vec<Vec<usize>>> {
    let words = |key: &str| -> Option<Vec<usize>> {
        let list = tree.get(key)?.as_array()?.iter();
        list.map(|word| usize::try_from(word.as_u64()?).ok())
            .collect()
    };
    let (indptr, indices) = (words("indptr")?, words("indices")?);
    let row = |pair: &[usize]| indices.get(pair[0]..pair[1]).map(<[usize]>::to_vec);
    indptr.windows(2).map(row).collect()
}

/// Returns the slot of a hash by Fibonacci hashing: the upper bits of the product.
fn home(hash: &Value) -> Option<Value> {
    let hash = u64::from_str_radix(hash.as_str()?.strip_prefix("0x")?, 16).ok()?;
    let product = hash.wrapping_mul(11_400_714_819_323_198_485);
    Some(json!(product >> (64 - HOME_SLOTS.trailing_zeros())))
}

/// Returns the view `generated`: the parts that are equal for all code generators of the same module.
fn generated(expected: &Value) -> Option<Value> {
    let mut parts = expected.as_object()?.clone();
    parts.remove("kind")?;
    Some(Value::Object(parts))
}

/// Returns the view `tensors`: by name, so that the order of the file does not matter.
fn tensors(params: &Value) -> Option<Value> {
    let mut named = Map::new();
    for tensor in params.get("tensors")?.as_array()? {
        let name = tensor.get("name")?.as_str()?.to_owned();
        named.insert(name, self::tensor(tensor)?);
    }
    Some(Value::Object(named))
}

/// Returns the view `tensor`, without device and reserved word, which no runtime shows.
fn tensor(tensor: &Value) -> Option<Value> {
    let parts = ["dtype", "shape", "data"];
    let parts = parts.map(|key| (key.to_owned(), tensor.get(key).cloned().unwrap_or_default()));
    tensor
        .is_object()
        .then(|| Value::Object(parts.into_iter().collect()))
}
