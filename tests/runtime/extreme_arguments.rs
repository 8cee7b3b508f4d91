//! Every global function with extreme arguments, and values that nest or collide more than those of any program.
//!
//! No argument may end the process, and a rejection must be an error. The calls run in a separate process, whose last line names the next
//! call.
#![cfg(feature = "frontend")]

mod collisions;
mod shared_objects;

use std::ffi::c_void;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tvmspec::capi::ffi::error::TVMFFIErrorCreateWithCauseAndExtraContext;
use tvmspec::capi::ffi::function::{TVMFFIFunctionCreate, TVMFFIFunctionGetGlobal};
use tvmspec::capi::ffi::object::TVMFFIObjectDecRef;
use tvmspec::function::{Error, Function, registry};
use tvmspec::module::{Module, ModuleKind};
use tvmspec::object::{Array, Dict, List, Map, Shape, Tensor};
use tvmspec::tensor::{Device, Dtype};
use tvmspec::value::header::ObjectRef;
use tvmspec::value::{Any, AnyView, ByteArray, Bytes, RawAny, Str};

/// Environment variable of the process that calls. Its value is the number of calls for each function.
const CALLS: &str = "TVMSPEC_EXTREME_CALLS";

/// A link in a chain of imports.
struct Link;

impl ModuleKind for Link {
    fn kind(&self) -> &str {
        "link"
    }

    fn function(&self, _module: &Module, _name: &str) -> Result<Option<Function>, Error> {
        Ok(None)
    }
}

fn ints() -> [i64; 12] {
    let narrow = i64::from(i32::MAX);
    [
        0,
        1,
        -1,
        7,
        narrow,
        -narrow - 1,
        narrow + 1,
        1 << 32,
        1 << 62,
        i64::MAX,
        i64::MIN,
        255,
    ]
}

/// Returns one argument of each form, with the extreme values of the forms that have some.
fn arguments() -> Vec<Any> {
    let mut all: Vec<Any> = ints().map(Any::from).to_vec();
    all.extend([
        Any::none(),
        true.into(),
        f64::NAN.into(),
        f64::INFINITY.into(),
        (-0.0).into(),
        1e300.into(),
    ]);
    let long = "n".repeat(70_000);
    for text in [
        "",
        "a",
        "x\0y",
        "float32",
        "ffi.Array",
        "{\"a\": [1, {}]}",
        "%s%n",
        "../../x",
        long.as_str(),
    ] {
        all.push(Str::new(text.as_bytes()).into());
    }
    all.push(Bytes::new([0xff, 0, 0x80]).into());
    all.push(Bytes::new([]).into());
    let mut nested = Any::from(Array::new([]));
    for _ in 0..5_000 {
        nested = Array::new([nested]).into();
    }
    all.push(nested);
    all.push(Array::new([]).into());
    all.push(Array::new([Any::from(1), Any::from("x")]).into());
    all.push(List::new([Any::from(2)]).into());
    let around = List::new([]);
    around.push(around.clone().into());
    all.push(around.into());
    let mut map = Map::new();
    for key in 0..6 {
        map.set(key, "value").unwrap();
    }
    all.push(map.into());
    all.push(Map::new().into());
    let dict = Dict::new();
    dict.set("self", dict.clone()).unwrap();
    all.push(dict.into());
    all.push(Shape::new(&[]).into());
    all.push(Shape::new(&[-1, i64::MAX, i64::MAX]).into());
    all.push(Tensor::empty(&[2, 2], Dtype::FLOAT32).unwrap().into());
    all.push(Tensor::empty(&[0], Dtype::INT8).unwrap().into());
    all.push(Error::new("ValueError", "an argument").into());
    all.push(Function::from_packed(|_| Ok(Any::none())).into());
    all.push(Function::from_packed(|_| Err(Error::new("TypeError", "never"))).into());
    all.push(Module::new(Link).into());
    all.push(
        Dtype {
            code: 255,
            bits: 255,
            lanes: 65535,
        }
        .into(),
    );
    all.push(Device { kind: -1, id: -1 }.into());
    all.push(
        Device {
            kind: i32::MAX,
            id: i32::MAX,
        }
        .into(),
    );
    all
}

/// A small random generator. Its sequence is the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// Returns a builtin function of the C interface. The first call of the interface registers them.
fn builtin(name: &str) -> Function {
    let bytes = ByteArray::of(name.as_bytes());
    let mut found = std::ptr::null_mut();
    // SAFETY: the name is readable and the place for the handle is writable, as the function requires.
    let code = unsafe { TVMFFIFunctionGetGlobal(&bytes, &mut found) };
    assert!(code == 0 && !found.is_null(), "{name}");
    // SAFETY: the call returned a reference to a function.
    let object = unsafe { ObjectRef::from_raw(found) };
    Function::from_object(object).unwrap_or_else(|_| panic!("{name} is no function"))
}

/// Returns whether a function is skipped, because it changes the results of later calls, ends the process, or waits.
fn is_left_out(name: &str) -> bool {
    ["sleep", "exit", "ffi.FunctionRemoveGlobal"]
        .iter()
        .any(|part| name.contains(part))
}

/// Runs in the process that calls.
#[test]
fn victim() {
    let Some(calls) = std::env::var_os(CALLS) else {
        return;
    };
    let calls: usize = calls.to_str().unwrap().parse().unwrap();
    builtin("ffi.json.Parse");
    let pool = arguments();
    let mut dice = Dice(27);
    let mut answered = [0; 2];
    for name in registry::names() {
        if is_left_out(name) {
            continue;
        }
        // Some functions work on addresses, so safe code cannot look them up.
        let Some(function) = registry::lookup(name) else {
            continue;
        };
        for call in 0..calls {
            // Each argument is first tried alone, and mixtures follow.
            let chosen: Vec<usize> = match call.checked_sub(1) {
                None => vec![],
                Some(one) if one < pool.len() => vec![one],
                Some(_) => (0..2 + dice.below(3))
                    .map(|_| dice.below(pool.len()))
                    .collect(),
            };
            println!("\n{name} {chosen:?}");
            let args: Vec<AnyView<'_>> = chosen.iter().map(|&at| pool[at].view()).collect();
            match function.call_packed(&args) {
                Ok(_) => answered[0] += 1,
                Err(error) => {
                    // The text of an error is made at its first use.
                    assert!(!error.kind().as_str().is_empty());
                    answered[1] += 1;
                }
            }
        }
    }
    println!(
        "\nall made: {} answers, {} errors",
        answered[0], answered[1]
    );
}

#[test]
fn no_global_function_ends_the_process() {
    let started = Instant::now();
    let mut child = Command::new("sh")
        .args([
            "-c",
            "ulimit -v 8000000; exec \"$0\" extreme_arguments::victim --exact --nocapture",
        ])
        .arg(std::env::current_exe().unwrap())
        .env(CALLS, "150")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::copy(&mut output, &mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if started.elapsed() > Duration::from_secs(300) {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = reader.join().unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(4)..].join("\n");
    assert!(
        status.is_some_and(|status| status.success()),
        "{status:?} after\n{last}"
    );
    let summary = lines
        .iter()
        .find(|line| line.starts_with("all made"))
        .unwrap();
    println!("{summary}");
}

/// Number of links, more than any stack holds if the end of each link called the end of the next.
const LINKS: usize = 150_000;

#[test]
fn a_chain_of_any_kind_is_freed_without_recursion() {
    type Around = fn(Any) -> Any;
    let chains: [(&str, Around); 8] = [
        ("arrays", |inner| Array::new([inner]).into()),
        ("lists", |inner| List::new([inner]).into()),
        ("maps", |inner| {
            Map::from_pairs(vec![(1.into(), inner)]).unwrap().into()
        }),
        ("dicts", |inner| {
            let dict = Dict::new();
            dict.set(1, inner).unwrap();
            dict.into()
        }),
        ("functions", |inner| {
            Function::from_packed(move |_| Ok(inner.clone())).into()
        }),
        ("errors", |inner| {
            let text = ByteArray::of(b"text");
            let (cause, mut made) = (inner.into_raw().ptr(), std::ptr::null_mut());
            // SAFETY: the texts are readable, and the cause is null or an error. The call adds its own reference to the cause.
            let code = unsafe {
                TVMFFIErrorCreateWithCauseAndExtraContext(
                    &text,
                    &text,
                    &text,
                    cause.cast(),
                    std::ptr::null_mut(),
                    &mut made,
                )
            };
            assert_eq!(code, 0);
            // SAFETY: this test owns the reference of `inner`.
            unsafe { TVMFFIObjectDecRef(cause.cast()) };
            // SAFETY: the call succeeded, so this is an error, and the test owns its reference.
            unsafe { ObjectRef::from_raw(made) }.into()
        }),
        ("functions of C", |inner| {
            unsafe extern "C-unwind" fn answer(
                _: *mut c_void,
                _: *const RawAny,
                _: i32,
                _: *mut RawAny,
            ) -> i32 {
                0
            }
            unsafe extern "C-unwind" fn ended(context: *mut c_void) {
                // SAFETY: the context is null or the former end of the chain, with one reference.
                unsafe { TVMFFIObjectDecRef(context.cast()) };
            }
            let mut made = std::ptr::null_mut();
            let context = inner.into_raw().ptr().cast();
            // SAFETY: the context is a reference that the deleter drops, and the place for the handle is writable.
            let code = unsafe { TVMFFIFunctionCreate(context, answer, Some(ended), &mut made) };
            assert_eq!(code, 0);
            // SAFETY: the call succeeded, so this is a function, and the test owns its reference.
            unsafe { ObjectRef::from_raw(made) }.into()
        }),
        ("modules", |inner| {
            let module = Module::new(Link);
            if let Ok(below) = tvmspec::value::cast::<Module>(inner.view()) {
                module.import(below).unwrap();
            }
            module.into()
        }),
    ];
    for (what, link) in chains {
        let mut chain = Any::none();
        // Each import searches the modules below it for a cycle, so a chain of modules has fewer links, and is made from the far end.
        let links = if what == "modules" { 2_000 } else { LINKS };
        for _ in 0..links {
            chain = link(chain);
        }
        drop(chain);
    }
}

#[test]
fn an_indent_is_bounded() {
    let print = builtin("ffi.json.Stringify");
    let value = || Any::from(Array::new([Any::from(Array::new([]))]));
    assert!(print.call([value(), Any::from(1024)]).is_ok());
    for indent in [1025, 1 << 31, 1 << 62, i64::MAX] {
        let error = print.call([value(), Any::from(indent)]).unwrap_err();
        assert_eq!(error.kind(), "ValueError");
    }
    // OBJ-17: a negative indent breaks lines like any other indent, but adds no spaces.
    let lines = print.call([value(), Any::from(i64::MIN)]).unwrap();
    assert_eq!(String::try_from(lines.view()).unwrap(), "[\n[\n]\n]");
}
