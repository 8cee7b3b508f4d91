//! What shows of a value through an interface that does not show all of it.
//!
//! A foreign runtime loads a library binary but does not show its bytes. An adapter then answers with a *view*: a smaller
//! value, made of what can be seen. The same view is taken of the expected value, and the two are compared. What a view
//! leaves out is not compared, and reports say which view it was.
//!
//! | view       | of                          | holds                                                              |
//! |------------|-----------------------------|--------------------------------------------------------------------|
//! | `modules`  | a blob                      | modules with a payload in their order, their kinds, payloads and imports; the library's imports |
//! | `rows`     | an import tree              | the imports of each module, in order                               |
//! | `kinds`    | a blob, a loaded module     | kinds and imports of what the root reaches, in the order of a walk |
//! | `found`    | a lookup through modules    | where the function was found                                       |
//! | `entry`    | the system library          | which of the registered symbols was found                          |
//! | `function` | the symbols of a library    | the function found and the slots filled                            |
//! | `opened`   | a library in a file         | kinds and imports, which functions were found, what they returned  |
//! | `called`   | the same, on a server       | which functions were found, what they returned                     |
//! | `released` | the life of an object       | the flags of the deleter as the last strong reference goes         |
//! | `home`     | a hash                      | where an element with it is in a map of 4096 slots             |
//! | `kind`     | a payload                   | the kind                                                           |
//! | `generated` | generated code             | all but its kind, which is that of another generator               |
//! | `tensors`  | a parameter file            | by name: dtype, shape, data                                        |
//! | `tensor`   | a tensor record             | dtype, shape, data                                                 |

use serde_json::{Map, Value, json};

/// How many slots the map has in which the view `home` places a hash.
pub(crate) const HOME_SLOTS: u64 = 4096;

/// The view `name` of an expected value; `None` where no view has that name, or the value is not of its form.
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

/// A module as it shows: those with a payload went through a loader, so their order shows; a library has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShownModule {
    /// Kind and payload in base64; `None` for the library itself.
    pub stored: Option<(String, String)>,
    /// Places of its imports.
    pub imports: Vec<usize>,
}

/// The view `modules`: loaded modules are named by their order, libraries by the order in which they are reached from
/// the root and then from each loaded module, so that it does not matter where in the list a library stands.
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
            // Reversed: the first import is on top, and is visited first.
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

/// The view `kinds`: each module that the first reaches, by kind, before what it imports.
pub(crate) fn kinds_of(modules: &[(String, Vec<usize>)]) -> Value {
    let mut order: Vec<usize> = Vec::new();
    let mut stack = vec![0];
    while let Some(at) = stack.pop() {
        if at < modules.len() && !order.contains(&at) {
            order.push(at);
            // Reversed: the first import is on top, and is visited first.
            stack.extend(modules[at].1.iter().rev());
        }
    }
    let place = |at: &usize| order.iter().position(|known| known == at);
    let walk = order.iter().map(|at| {
        let (kind, imports) = &modules[*at];
        // A library is `_lib` in a blob and `library` once it is loaded.
        let kind = if kind == "_lib" { "library" } else { kind };
        json!({"kind": kind, "imports": imports.iter().map(place).collect::<Vec<_>>()})
    });
    walk.collect()
}

/// The view `opened`: layout, slots and the list of functions are left out.
fn opened(expected: &Value) -> Option<Value> {
    let part = |name: &str| expected.get(name).cloned();
    Some(json!({"modules": part("modules")?, "found": part("found")?, "results": part("results")?}))
}

/// The view `kinds`, of a loaded module (which has a context) or of a blob.
fn kinds(expected: &Value) -> Option<Value> {
    let kind = |module: &Value| {
        module
            .get("kind")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let list = expected.get("modules")?.as_array()?;
    // What was loaded has a context; a blob that was only read has none.
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
            // BLOB-14: layout 0.2 stores no library: the one that carries the blob imports every entry in order.
            let mut modules = vec![("_lib".to_owned(), (1..=kinds.len()).collect())];
            modules.extend(kinds.into_iter().map(|kind| (kind, Vec::new())));
            modules
        }
    };
    Some(kinds_of(&modules))
}

/// The view `modules` of a blob.
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
        // Without a tree the library that is loaded is the root and imports all that is stored.
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

/// The imports of each module, which `indptr` cuts out of `indices`; none where it cuts behind the end.
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

/// Fibonacci hashing: the upper bits of the product.
fn home(hash: &Value) -> Option<Value> {
    let hash = u64::from_str_radix(hash.as_str()?.strip_prefix("0x")?, 16).ok()?;
    let product = hash.wrapping_mul(11_400_714_819_323_198_485);
    Some(json!(product >> (64 - HOME_SLOTS.trailing_zeros())))
}

/// The view `generated`: what holds of any code generator for the same module.
fn generated(expected: &Value) -> Option<Value> {
    let mut parts = expected.as_object()?.clone();
    parts.remove("kind")?;
    Some(Value::Object(parts))
}

/// The view `tensors`: by name, so that the order of the file does not count.
fn tensors(params: &Value) -> Option<Value> {
    let mut named = Map::new();
    for tensor in params.get("tensors")?.as_array()? {
        let name = tensor.get("name")?.as_str()?.to_owned();
        named.insert(name, self::tensor(tensor)?);
    }
    Some(Value::Object(named))
}

/// The view `tensor`: device and reserved word are left out, which no runtime shows.
fn tensor(tensor: &Value) -> Option<Value> {
    let parts = ["dtype", "shape", "data"];
    let parts = parts.map(|key| (key.to_owned(), tensor.get(key).cloned().unwrap_or_default()));
    tensor
        .is_object()
        .then(|| Value::Object(parts.into_iter().collect()))
}
