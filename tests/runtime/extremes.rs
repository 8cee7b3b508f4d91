//! Every global function with extreme arguments, and values that are deeper or collide more than any program makes them.
//!
//! Nothing ends the process, whatever the arguments; what is rejected is an error. The calls run in a process of their own,
//! whose last line says which call it was about to make.
#![cfg(feature = "frontend")]

use std::ffi::c_void;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tvmspec::capi::ffi::error::TVMFFIErrorCreateWithCauseAndExtraContext;
use tvmspec::capi::ffi::function::{TVMFFIFunctionCreate, TVMFFIFunctionGetGlobal};
use tvmspec::capi::ffi::object::TVMFFIObjectDecRef;
use tvmspec::function::{Error, Function, registry};
use tvmspec::module::{Module, ModuleKind};
use tvmspec::object::hash::any_hash;
use tvmspec::object::json_graph::{ffi, json};
use tvmspec::object::{Array, Dict, List, Map, Shape, Tensor};
use tvmspec::value::header::ObjectRef;
use tvmspec::value::{Any, AnyView, ByteArray, Bytes, DLDataType, DLDevice, RawAny, Str, index};

/// Set in the process that calls: how many calls there are for each function.
const CALLS: &str = "TVMSPEC_EXTREME_CALLS";

/// What a chain of imports is made of.
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

/// One of each form that an argument has, with the extremes of those that have some.
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
    all.push(
        Tensor::empty(&[2, 2], DLDataType::scalar(2, 32))
            .unwrap()
            .into(),
    );
    all.push(
        Tensor::empty(&[0], DLDataType::scalar(0, 8))
            .unwrap()
            .into(),
    );
    all.push(Error::new("ValueError", "an argument").into());
    all.push(Function::from_packed(|_| Ok(Any::none())).into());
    all.push(Function::from_packed(|_| Err(Error::new("TypeError", "never"))).into());
    all.push(Module::new(Link).into());
    all.push(
        DLDataType {
            code: 255,
            bits: 255,
            lanes: 65535,
        }
        .into(),
    );
    all.push(
        DLDevice {
            device_type: -1,
            device_id: -1,
        }
        .into(),
    );
    all.push(
        DLDevice {
            device_type: i32::MAX,
            device_id: i32::MAX,
        }
        .into(),
    );
    all
}

/// A small generator: the sequence is the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// A function of the C interface's own. The first call of the interface registers them.
fn builtin(name: &str) -> Function {
    let bytes = ByteArray::of(name.as_bytes());
    let mut found = std::ptr::null_mut();
    // SAFETY: the name is readable and the place for the handle writable, as the function requires.
    let code = unsafe { TVMFFIFunctionGetGlobal(&bytes, &mut found) };
    assert!(code == 0 && !found.is_null(), "{name}");
    // SAFETY: the call returned a reference of a function.
    let object = unsafe { ObjectRef::from_raw(found) };
    Function::from_object(object).unwrap_or_else(|_| panic!("{name} is no function"))
}

/// Functions whose work is to change what later calls see, to end, or to wait.
fn is_left_out(name: &str) -> bool {
    ["sleep", "exit", "ffi.FunctionRemoveGlobal"]
        .iter()
        .any(|part| name.contains(part))
}

/// The process that calls.
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
        // Some work on addresses, and safe code does not get them.
        let Some(function) = registry::lookup(name) else {
            continue;
        };
        for call in 0..calls {
            // All single arguments first, then mixtures.
            let chosen: Vec<usize> = match call.checked_sub(1) {
                None => vec![],
                Some(one) if one < pool.len() => vec![one],
                Some(_) => (0..2 + dice.below(3))
                    .map(|_| dice.below(pool.len()))
                    .collect(),
            };
            println!("\n{name} {chosen:?}");
            let args: Vec<AnyView<'_>> = chosen.iter().map(|&at| pool[at].view()).collect();
            match function.call(&args) {
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
            "ulimit -v 8000000; exec \"$0\" victim --exact --nocapture",
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

/// More than any stack holds, were each ended inside the one before.
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
            // SAFETY: the texts are readable; the cause is null or an error, of which the call counts its own reference.
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
            // SAFETY: the reference of `inner`, which is ours.
            unsafe { TVMFFIObjectDecRef(cause.cast()) };
            // SAFETY: the call succeeded, so this is an error, whose reference is ours.
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
                // SAFETY: the context is the object that the chain ended with so far, or null.
                unsafe { TVMFFIObjectDecRef(context.cast()) };
            }
            let mut made = std::ptr::null_mut();
            let context = inner.into_raw().ptr().cast();
            // SAFETY: the context is a reference that the deleter drops; the place for the handle is writable.
            let code = unsafe { TVMFFIFunctionCreate(context, answer, Some(ended), &mut made) };
            assert_eq!(code, 0);
            // SAFETY: the call succeeded, so this is a function, whose reference is ours.
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
        // A new import is looked for below the module, so a chain of them is made from the far end.
        let links = if what == "modules" { 2_000 } else { LINKS };
        for _ in 0..links {
            chain = link(chain);
        }
        drop(chain);
    }
}

/// Keys of 16 bytes with the same hash: a polynomial over two words modulo the prime 2^31 - 1.
fn colliding(count: usize) -> Vec<String> {
    const BASE: u64 = 1_099_511_628_211;
    const MODULUS: u64 = 2_147_483_647;
    const LETTERS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut dice = Dice(1);
    let mut second = |shifted: u64| {
        (0..2_000).find_map(|_| {
            // The upper half is any letters; 2^32 is 2 modulo the prime, so the lower half is what is left to a hash of 5.
            let upper = u32::from_le_bytes([(); 4].map(|()| LETTERS[dice.below(LETTERS.len())]));
            let sum = shifted.wrapping_add(u64::from(upper) << 32);
            let lower = u32::try_from((MODULUS + 5 - sum % MODULUS) % MODULUS).unwrap();
            let bytes = (u64::from(upper) << 32 | u64::from(lower)).to_le_bytes();
            let plain = bytes.iter().all(u8::is_ascii_alphanumeric);
            plain.then(|| String::from_utf8(bytes.to_vec()).unwrap())
        })
    };
    // Some first words leave no second one of letters.
    let key = |number: usize| {
        let first = format!("{number:08}");
        let word = u64::from_le_bytes(first.as_bytes().try_into().unwrap());
        let second = second((word % MODULUS).wrapping_mul(BASE))?;
        Some(first + &second)
    };
    (0..).filter_map(key).take(count).collect()
}

#[test]
fn names_that_collide_are_rejected_before_they_cost_time() {
    let keys = colliding(400);
    let hashes: Vec<u64> = keys
        .iter()
        .map(|key| tvmspec::object::hash::hash_bytes(key.as_bytes()))
        .collect();
    assert!(
        hashes.iter().all(|hash| *hash == hashes[0]),
        "the keys do not collide"
    );
    let text = |count: usize| {
        let members: Vec<String> = keys[..count]
            .iter()
            .map(|key| format!("\"{key}\": 1"))
            .collect();
        format!("{{{}}}", members.join(", "))
    };
    let parse = builtin("ffi.json.Parse");
    let parsed = |count| parse.call_with([Any::from(text(count).as_str())]);
    assert_eq!(parsed(256).unwrap().type_index(), index::MAP);
    let error = parsed(257).unwrap_err();
    assert!(
        error.message().contains("share a chain"),
        "{}",
        error.message()
    );
    // A repeated name is not one more.
    let twice = text(256).replace('}', &format!(", \"{}\": 2}}", keys[0]));
    assert!(parse.call_with([Any::from(twice.as_str())]).is_ok());
    // What a program chooses itself is not bounded.
    let pairs = keys
        .iter()
        .map(|key| (Any::from(key.as_str()), Any::from(1)))
        .collect();
    assert_eq!(Map::from_pairs(pairs).unwrap().len(), 400);
}

/// Names of one home in a dense map of that shift, all of different hashes.
fn neighbours(count: usize, shift: u32) -> Vec<String> {
    let is_at_home = |name: &String| {
        let hash = any_hash(Any::from(name.as_str()).view()).unwrap();
        hash.wrapping_mul(11_400_714_819_323_198_485) >> shift == 3
    };
    let names = (0..).map(|number| format!("{number:x}"));
    names.filter(is_at_home).take(count).collect()
}

#[test]
fn both_readers_of_json_count_the_names_of_a_chain_alike() {
    let rejected = |names: &[&String]| {
        let members: Vec<String> = names
            .iter()
            // The same name in other letters is the same name.
            .enumerate()
            .map(|(at, name)| match at % 7 {
                0 => format!("\"\\u{:04x}{}\":{at}", name.as_bytes()[0], &name[1..]),
                _ => format!("\"{name}\":{at}"),
            })
            .collect();
        let text = format!("[0, {{\"x\":{{{}}}}}]", members.join(","));
        let values = json::parse(text.as_bytes()).map(drop).err();
        let checked = ffi::check(text.as_bytes())
            .err()
            .map(|fault| fault.violation);
        let checked = checked.filter(|broken| broken.rule().id() == "OBJ-39");
        if let (Some(values), Some(checked)) = (&values, &checked) {
            assert!(values.message().contains(checked.message()), "{values:?}");
        }
        let count = names.len();
        assert_eq!(values.is_some(), checked.is_some(), "{count}: {values:?}");
        checked.is_some()
    };
    let (same, near) = (colliding(300), neighbours(300, 64 - 11));
    let plain: Vec<String> = (0..1_000).map(|number| format!("plain{number}")).collect();
    let mut dice = Dice(9);
    let (mut yes, mut no) = (0, 0);
    for round in 0..120 {
        let chain = if round % 2 == 0 { &same } else { &near };
        let mut names: Vec<&String> = chain.iter().take(250 + dice.below(14)).collect();
        // From 512 to 1,023 pairs a map has 2,048 slots: the neighbours are some in no other.
        names.extend(plain.iter().take(dice.below(1_000)));
        let repeated = dice.below(30);
        names.extend_from_within(..repeated);
        for at in (1..names.len()).rev() {
            names.swap(at, dice.below(at + 1));
        }
        match rejected(&names) {
            true => yes += 1,
            false => no += 1,
        }
    }
    assert!(yes > 20 && no > 20, "{yes} and {no}");
}

#[test]
fn an_indent_is_bounded() {
    let print = builtin("ffi.json.Stringify");
    let value = || Any::from(Array::new([Any::from(Array::new([]))]));
    assert!(print.call_with([value(), Any::from(1024)]).is_ok());
    for indent in [1025, 1 << 31, 1 << 62, i64::MAX] {
        let error = print.call_with([value(), Any::from(indent)]).unwrap_err();
        assert_eq!(error.kind(), "ValueError");
    }
    // OBJ-17: a negative indent breaks lines as any other does, without spaces.
    let lines = print.call_with([value(), Any::from(i64::MIN)]).unwrap();
    assert_eq!(String::try_from(lines.view()).unwrap(), "[\n[\n]\n]");
}
