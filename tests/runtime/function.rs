//! Functions and the registry, through the public interface.
#![cfg(feature = "runtime")]

use tvmspec::function::rules::FUN_11;
use tvmspec::function::{Error, ErrorKind, Function, registry};
use tvmspec::object::Array;
use tvmspec::rule::Kind;
use tvmspec::value::{Any, AnyPayload, AnyView, Header, ObjectRef, RawAny, Str, index};

#[test]
fn a_typed_function_converts_and_checks() {
    let add = Function::named(Some("add"), |a: i64, b: f64| a as f64 + b);
    let sum = add.call((2i64, 0.5)).unwrap();
    assert_eq!(f64::try_from(&sum).unwrap(), 2.5);

    let few = add.call((2i64,)).unwrap_err();
    assert_eq!(few.kind(), "TypeError");
    assert_eq!(
        few.message(),
        "Mismatched number of arguments when calling: `add(0: int, 1: float) -> float`. Expected 2 but got 1 arguments"
    );
    let text = Any::from("x");
    let wrong = add.call_packed(&[1i64.into(), text.view()]).unwrap_err();
    assert_eq!(
        wrong.message(),
        "Mismatched type on argument #1 when calling: `add(0: int, 1: float) -> float`. Expected `float` but got `ffi.SmallStr`"
    );
}

#[test]
fn errors_keep_kind_message_and_cause() {
    let fails = Function::from_packed(|_| {
        Err(Error::new("ValueError", "no").caused_by(Error::new("KeyError", "k")))
    });
    let error = fails.call(()).unwrap_err();
    assert_eq!(
        (error.kind().as_str(), error.message()),
        ("ValueError", "no")
    );
    assert_eq!(error.cause().unwrap().kind(), "KeyError");
    assert!(error.kind() == *"ValueError" && error.kind() != *"KeyError");
    assert_eq!(error.kind(), ErrorKind::Value);
    error.add_frame("a.rs", 3, "f");
    assert_eq!(error.backtrace(), "  File \"a.rs\", line 3, in f\n");
}

#[test]
fn a_panic_becomes_an_error() {
    let panics = Function::from_packed(|_| panic!("as planned"));
    let error = panics.call(()).unwrap_err();
    assert_eq!(error.kind(), "InternalError");
    assert!(error.message().contains("as planned"));
}

#[test]
fn functions_travel_as_arguments_and_results() {
    let apply = Function::from_typed(|f: Function, x: i64| f.call((x,)));
    let make = Function::from_typed(|by: i64| Function::from_typed(move |x: i64| x + by));
    let add3 = make.call((3i64,)).unwrap();
    let answer = apply.call_packed(&[add3.view(), 4i64.into()]).unwrap();
    assert_eq!(i64::try_from(&answer).unwrap(), 7);
}

#[test]
fn names_register_once_unless_overridden() {
    let one = || Function::from_typed(|| 1i64);
    registry::register("test.names", one(), false).unwrap();
    let again = registry::register("test.names", one(), false).unwrap_err();
    assert!(again.message().contains("already registered"));
    let old = registry::lookup("test.names").unwrap();
    registry::register("test.names", Function::from_typed(|| 2i64), true).unwrap();
    assert_eq!(i64::try_from(&old.call(()).unwrap()).unwrap(), 1);
    let new = registry::lookup("test.names").unwrap();
    assert_eq!(i64::try_from(&new.call(()).unwrap()).unwrap(), 2);
    assert!(registry::names().contains(&"test.names"));
    assert!(registry::remove("test.names"));
    assert!(!registry::remove("test.names"));
    assert!(registry::lookup("test.names").is_none());
}

#[test]
fn readers_and_a_writer_at_once() {
    // Miri runs few rounds, and a machine many.
    let rounds = if cfg!(miri) { 10 } else { 500 };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(move || {
                for _ in 0..4 * rounds {
                    if let Some(found) = registry::lookup("test.race") {
                        assert_eq!(i64::try_from(&found.call(()).unwrap()).unwrap(), 5);
                    }
                }
            });
        }
        for _ in 0..rounds {
            registry::register("test.race", Function::from_typed(|| 5i64), true).unwrap();
            registry::remove("test.race");
        }
    });
}

#[test]
fn small_and_heap_strings() {
    for text in ["", "a", "1234567", "12345678", "a longer one, on the heap"] {
        let value = Str::new(text);
        assert_eq!(value.as_bytes(), text.as_bytes());
        assert_eq!(
            value.as_any().type_index(),
            if text.len() < 8 { 11 } else { 65 }
        );
        let view: AnyView<'_> = (&value).into();
        assert_eq!(String::try_from(view).unwrap(), text);
    }
}

/// Takes a backtrace. It has its own name and is not inlined, so that it is on the stack.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn calls_for_a_backtrace(out: &mut String) {
    use tvmspec::capi::ffi::backtrace::TVMFFIBacktrace;
    let [file, function] = [c"a.cc", c"f"].map(std::ffi::CStr::as_ptr);
    // SAFETY: both arguments are C strings.
    let text = unsafe { TVMFFIBacktrace(file, 7, function, 0) };
    // SAFETY: the text lives until the next call.
    let text = unsafe { &*text };
    // SAFETY: the text is copied before the next call.
    let text = unsafe { text.as_slice() };
    *out = String::from_utf8_lossy(text).into_owned();
}

#[test]
#[cfg_attr(miri, ignore = "walks the stack of machine code")]
fn a_backtrace_begins_where_the_caller_says() {
    let mut text = String::new();
    calls_for_a_backtrace(std::hint::black_box(&mut text));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "  File \"a.cc\", line 7, in f");
    // The line that the caller passed stands for its own frame.
    assert!(!text.contains("calls_for_a_backtrace"), "{text}");
    for line in &lines[1..] {
        assert!(
            line.starts_with("  File \"<unknown>\", line 0, in "),
            "{line}"
        );
    }
}

/// Calls `function` with an r-value reference to a fresh array, and with `others`. Returns the answer and whether the array was taken.
fn with_rvalue(function: &Function, others: &[AnyView<'_>]) -> (Result<Any, Error>, bool) {
    let mut slot: *mut Header = Array::new(vec![Any::from(7i64)]).into_object().into_raw();
    let ptr = (&raw mut slot).cast();
    let raw = RawAny::of(index::RVALUE_REF, AnyPayload { ptr });
    // SAFETY: this is the address of a slot that owns its object.
    let mut args = vec![unsafe { AnyView::from_raw(raw) }];
    args.extend_from_slice(others);
    let answer = function.call_packed(&args);
    drop(args);
    // SAFETY: this function owns the object that is left in the slot.
    let left = unsafe { ObjectRef::from_nullable(slot) };
    assert!(
        left.as_ref().is_none_or(ObjectRef::is_unique),
        "a stray reference"
    );
    (answer, left.is_none())
}

#[test]
fn an_rvalue_is_taken_when_nothing_else_is_wrong() {
    let object = Function::from_typed(|_: ObjectRef| ());
    let (answer, taken) = with_rvalue(&object, &[]);
    assert!(answer.is_err() && !taken);
    // Nothing is taken if the number of arguments or another argument is wrong. A wrong number is reported first.
    let text = Any::from("x");
    let owned = Function::from_typed(|_: Any, _: i64| ());
    let borrowed = Function::from_typed(|_: AnyView<'_>, _: i64| ());
    let by = 3i64;
    let captures = Function::from_typed(move |_: Any, number: i64| number + by);
    for function in [&owned, &borrowed, &captures] {
        for (others, expected) in [
            (&[][..], "Expected 2 but got 1 arguments"),
            (&[text.view()], "Expected `int` but got `ffi.SmallStr`"),
        ] {
            let (answer, taken) = with_rvalue(function, others);
            let error = answer.unwrap_err();
            assert!(error.message().ends_with(expected), "{error}");
            assert!(!taken, "{expected}");
        }
        let (answer, taken) = with_rvalue(function, &[1i64.into()]);
        answer.unwrap();
        assert!(taken);
    }
    // If the number of arguments is wrong, a slot is not read, so an invalid one does no harm.
    let raw = RawAny::of(
        index::RVALUE_REF,
        AnyPayload {
            ptr: std::ptr::dangling_mut::<u8>().cast(),
        },
    );
    // SAFETY: no reader may read the slot of this view.
    let bad = unsafe { AnyView::from_raw(raw) };
    let error = borrowed.call_packed(&[bad, bad, bad]).unwrap_err();
    assert!(error.message().ends_with("but got 3 arguments"), "{error}");
}

/// The registration lives as long as the process, and Miri would report it as a leak.
#[test]
#[cfg_attr(miri, ignore = "the registry lives as long as the process")]
fn builtins_take_no_container_from_an_rvalue() {
    tvmspec::object::init();
    // Observed on the wheel of tvm-ffi 0.1.15.post2: a container is not taken from an r-value.
    for (name, count) in [
        ("MapSize", 0),
        ("ArraySize", 0),
        ("ArrayGetItem", 1),
        ("ListAppend", 1),
    ] {
        let function = registry::require(&format!("ffi.{name}")).unwrap();
        let (answer, taken) = with_rvalue(&function, &[AnyView::from(0i64)][..count]);
        let error = answer.unwrap_err();
        assert!(
            error.message().ends_with("but got `ObjectRValueRef`"),
            "{error}"
        );
        assert!(!taken, "{name}");
    }
    // The number of arguments is checked before any of them.
    let size = registry::require("ffi.ArraySize").unwrap();
    let (answer, taken) = with_rvalue(&size, &[AnyView::from(0i64)]);
    let error = answer.unwrap_err();
    assert!(
        error.message().ends_with("Expected 1 but got 2 arguments"),
        "{error}"
    );
    assert!(!taken);
}

#[test]
fn a_name_and_its_kind_are_the_same_thing() {
    for name in [
        "AttributeError",
        "ConnectionError",
        "EnvErrorAlreadySet",
        "IndexError",
        "InternalError",
        "KeyError",
        "MemoryError",
        "OSError",
        "RuntimeError",
        "TimeoutError",
        "TVMError",
        "TypeError",
        "ValueError",
    ] {
        let kind = ErrorKind::from(name);
        assert_eq!(kind.as_str(), name);
        assert!(
            !matches!(kind, ErrorKind::Other(_)),
            "{name} has a separate variant"
        );
        assert_eq!(kind, ErrorKind::Other(name));
    }
    for name in ["", "valueError", "a.b_c9"] {
        assert_eq!(ErrorKind::from(name), ErrorKind::Other(name));
    }
}

#[test]
fn a_violation_stays_with_its_error() {
    let broken = FUN_11.rejected(Kind::Duplicate, "taken");
    let error = Error::from(broken).caused_by(Error::new("KeyError", "why"));
    let rule = error.violation().map(|broken| broken.rule());
    assert_eq!(rule, Some(FUN_11));
    assert!(error.cause().unwrap().violation().is_none());
}
