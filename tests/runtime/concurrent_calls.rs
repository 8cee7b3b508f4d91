//! Pairs of safe functions on shared objects: every two functions that two threads may call at the same time.
//!
//! Without a race detector, this test finds only crashes. `.ci/sanitize` runs it under ThreadSanitizer, which reports every unordered
//! access.
#![cfg(feature = "frontend")]
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use tvmspec::function::{Error, Function, registry};
use tvmspec::module::{Module, ModuleKind};
use tvmspec::object::{self, Array, Dict, List, Map, Shape, Tensor, construct};
use tvmspec::tensor::Dtype;
use tvmspec::value::{Any, AnyView, ObjectRef, cast, index, types};

/// The number of calls of each thread of a pair.
const ROUNDS: usize = if cfg!(miri) { 2 } else { 10 };

struct Plain;

impl ModuleKind for Plain {
    fn kind(&self) -> &str {
        "plain"
    }

    fn function(&self, _module: &Module, _name: &str) -> Result<Option<Function>, Error> {
        Ok(None)
    }
}

/// A named function that works on objects shared by all threads.
type Call = (String, Box<dyn Fn() + Send + Sync>);

/// Runs each function at the same time as each function, including itself.
fn run_in_pairs(calls: &[Call]) {
    for (at, (left_name, left)) in calls.iter().enumerate() {
        for (right_name, right) in &calls[at..] {
            println!("{left_name} | {right_name}");
            let start = Barrier::new(2);
            let turn = |call: &(dyn Fn() + Send + Sync)| {
                start.wait();
                (0..ROUNDS).for_each(|_| call());
            };
            std::thread::scope(|scope| {
                scope.spawn(|| turn(left));
                turn(right);
            });
        }
    }
}

fn call(name: &str, body: impl Fn() + Send + Sync + 'static) -> Call {
    (name.to_owned(), Box::new(body))
}

#[test]
fn methods_run_beside_each_other() {
    object::init();
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = || NEXT.fetch_add(1, Ordering::Relaxed);
    let text = || Any::from("a text that lies on the heap");
    let list = List::new([text(), text()]);
    let dict = Dict::new();
    dict.set(1i64, text()).unwrap();
    let float32 = Dtype::FLOAT32;
    let tensor = Tensor::empty(&[4], float32).unwrap();
    let error = Error::new("ValueError", "an error");
    let (module, other) = (Module::new(Plain), Module::new(Plain));
    let step = construct::make_object(&[
        Any::from("ffi.reflection.AccessStep").view(),
        Any::from("kind").view(),
        1i64.into(),
        Any::from("key").view(),
        Any::from(list.clone()).view(),
    ]);
    let step = step.unwrap().as_object().unwrap().clone();
    let own = types::register("pairs.Attributed", index::OBJECT).unwrap();
    macro_rules! calls {
        ($($name:literal ($($held:ident: $type:ty),*) $body:expr;)*) => {
            vec![$({
                $(let $held = Any::from($held.clone());)*
                call($name, move || {
                    // Any thread may have the value, and each thread makes its own view of it.
                    $(let $held: $type = cast($held.view()).unwrap();)*
                    let _answer = black_box($body);
                })
            }),*]
        };
    }
    let calls = calls! {
        "list.push" (list: List) list.push(text());
        "list.set" (list: List) list.set(0, text());
        "list.insert" (list: List) list.insert(0, vec![text()]);
        "list.remove" (list: List) list.remove(0, 1);
        "list.reserve" (list: List) list.try_reserve(64);
        "list.reverse" (list: List) list.reverse();
        "list.clear" (list: List) list.clear();
        "list.at" (list: List) list.at(0);
        "list.to_vec" (list: List) list.to_vec();
        "list.len" (list: List) list.len();
        "dict.set" (dict: Dict) dict.set(next() as i64 % 64, text());
        "dict.remove" (dict: Dict) dict.remove(Any::from(next() as i64 % 64).view());
        "dict.clear" (dict: Dict) dict.clear();
        "dict.get" (dict: Dict) dict.get(1i64.into());
        "dict.to_vec" (dict: Dict) dict.to_vec();
        "dict.len" (dict: Dict) dict.len();
        "tensor.fill" (tensor: Tensor) tensor.fill(&[1; 16]);
        "tensor.to_bytes" (tensor: Tensor) tensor.to_bytes();
        "tensor.to_vec" (tensor: Tensor) tensor.to_vec::<f32>();
        "tensor.shape" (tensor: Tensor) tensor.shape().to_vec();
        "error.add_frame" (error: Error) error.add_frame("a.rs", 1, "f");
        "error.update_backtrace" (error: Error) error.update_backtrace("  File \"b\"\n", 0);
        "error.backtrace" (error: Error) error.backtrace();
        "error.message" (error: Error) error.message().to_owned();
        "error.clone" (error: Error) error.clone();
        "module.import" (module: Module, other: Module) module.import(other.clone());
        "module.clear_imports" (module: Module) module.clear_imports();
        "module.imports" (module: Module) module.imports();
        "module.function" (module: Module) module.function("nothing", true);
        "field" (step: ObjectRef) object::field(&step, "key");
        "types.register" () types::register(&format!("pairs.{}", next()), index::OBJECT);
        "types.set_attr" (own: i32) types::set_attr(own, &format!("pairs_{}", next()), 1i64.into());
        "types.column" (own: i32) types::column("__ffi_repr__").and_then(|column| column.value(own).map(|value| value.type_index()));
        "types.keys" () types::keys();
        "registry.register" () registry::register("pairs.function", Function::from_typed(|| 1i64), true);
        "registry.remove" () registry::remove("pairs.function");
        "registry.lookup" () registry::lookup("pairs.function").map(|found| found.call(()));
        "registry.names" () registry::names();
        "hash of list" (list: List) object::recursive::hash(Any::from(list.clone()).view());
        "repr of dict" (dict: Dict) object::repr::repr(Any::from(dict.clone()).view());
    };
    run_in_pairs(&calls);
}

#[test]
fn global_functions_run_beside_each_other() {
    object::init();
    let list = List::new([Any::from("a text that lies on the heap"), Any::from(2i64)]);
    let dict = Dict::new();
    dict.set(1i64, list.clone()).unwrap();
    let mut map = Map::new();
    map.set(1i64, list.clone()).unwrap();
    let shared: Vec<Any> = vec![
        list.clone().into(),
        dict.into(),
        map.into(),
        Array::new([list.into()]).into(),
        Shape::new(&[2]).into(),
        Tensor::empty(&[2], Dtype::FLOAT32).unwrap().into(),
        Module::new(Plain).into(),
        Any::from("a text that lies on the heap"),
    ];
    let mut made = 0;
    for first in &shared {
        let mut calls: Vec<Call> = Vec::new();
        for name in registry::names() {
            // Some functions end the process, wait, or remove the data of the others.
            let is_left_out = [
                "sleep",
                "exit",
                "FunctionRemoveGlobal",
                "threadpool",
                "test",
            ];
            if is_left_out.iter().any(|part| name.contains(part)) {
                continue;
            }
            let Some(function) = registry::lookup(name) else {
                continue;
            };
            let (one, zero, text) = (1i64.into(), 0i64.into(), Any::from("a"));
            let first = first.view();
            let forms: [&[AnyView<'_>]; 5] = [
                &[first],
                &[first, first],
                &[first, zero],
                &[first, zero, one],
                &[first, text.view()],
            ];
            // A call that only fails touches no object.
            let Some(form) = forms.iter().find(|form| function.call_packed(form).is_ok()) else {
                continue;
            };
            let args: Vec<Any> = form.iter().map(|arg| arg.to_any()).collect();
            calls.push(call(name, move || {
                let args: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
                let _answer = black_box(function.call_packed(&args));
            }));
        }
        made += calls.len();
        run_in_pairs(&calls);
    }
    assert!(made > 100, "{made}");
}
