//! The first call into the library of a process: it must find the registrations of every chapter, although nothing ran before
//! (FUN-11).
use super::HOOK;
use crate::support;
use tvmspec::function::registry;
use tvmspec::value::{index, types};

/// Looks up a function that does not exist, as a measuring allocator might.
fn look_up() {
    assert!(registry::lookup("test.no_such_function").is_none());
}

/// Creates the command that runs one of the tests below in a separate process.
fn alone(name: &str) {
    let out = support::separate_process::alone(concat!(module_path!(), "::first"), name)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_builtin_is_found_first() {
    alone("lookup");
}

#[test]
fn an_allocator_looks_up_while_the_builtins_come() {
    alone("curious");
}

#[test]
fn the_names_are_listed_first() {
    alone("names");
}

#[test]
fn the_details_are_known_first() {
    alone("details");
}

#[test]
fn a_type_is_known_first() {
    alone("info");
    alone("key");
    alone("index_of");
}

#[test]
fn a_name_of_a_builtin_is_taken_first() {
    alone("register");
    alone("remove");
}

mod first {
    use super::*;

    #[test]
    #[ignore = "runs in a separate process"]
    fn lookup() {
        assert!(registry::lookup("vm.builtin.copy").is_some());
    }

    #[test]
    #[ignore = "runs in a separate process"]
    fn curious() {
        std::thread::spawn(|| {
            std::thread::sleep(std::time::Duration::from_secs(60));
            eprintln!("a lookup waits for itself");
            std::process::abort();
        });
        HOOK.set(Some(look_up));
        let found = registry::lookup("vm.builtin.copy");
        HOOK.set(None);
        assert!(found.is_some());
    }

    #[test]
    #[ignore = "runs in a separate process"]
    fn names() {
        let names = registry::names();
        assert!(names.contains(&"vm.builtin.copy"), "{names:?}");
    }

    #[test]
    #[ignore = "runs in a separate process"]
    fn details() {
        assert!(registry::details("vm.builtin.shape_of").is_some());
    }

    #[test]
    #[ignore = "runs in a separate process"]
    fn info() {
        let info = types::info(index::ARRAY).unwrap();
        assert_eq!(info.key(), "ffi.Array");
    }

    #[test]
    #[ignore = "runs in a separate process"]
    fn key() {
        assert_eq!(types::key_of(index::OBJECT), "ffi.Object");
    }

    #[test]
    #[ignore = "runs in a separate process"]
    fn index_of() {
        assert_eq!(types::index_of("ffi.Map"), Some(index::MAP));
    }

    #[test]
    #[ignore = "runs in a separate process"]
    fn register() {
        let own = || tvmspec::function::Function::from_packed(|_| Ok(7i64.into()));
        // A registration replaces a default.
        registry::register("vm.builtin.copy", own(), false).unwrap();
        assert!(registry::register("vm.builtin.copy", own(), false).is_err());
        let found = registry::require("vm.builtin.copy").unwrap();
        assert_eq!(i64::try_from(found.call(()).unwrap()).unwrap(), 7);
    }

    #[test]
    #[ignore = "runs in a separate process"]
    fn remove() {
        assert!(registry::remove("vm.builtin.copy"));
        assert!(registry::lookup("vm.builtin.copy").is_none());
    }
}
