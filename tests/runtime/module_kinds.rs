//! Module kinds written by a user: their own answers, and the default answers (MOD-14, MOD-15).
#![cfg(feature = "frontend")]

use std::sync::Mutex;
use tvmspec::capi::ffi::function::TVMFFIFunctionGetGlobal;
use tvmspec::function::{Error, Function, registry};
use tvmspec::module::{Module, ModuleKind};
use tvmspec::value::{Any, AnyView, ByteArray};

/// A module that answers every question itself.
struct Own {
    written: Mutex<Vec<(String, String)>>,
}

impl ModuleKind for Own {
    fn kind(&self) -> &str {
        "own"
    }

    fn function(&self, _: &Module, name: &str) -> Result<Option<Function>, Error> {
        match name {
            "fails" => Err(Error::new("KeyError", "fails")),
            "add" => Ok(Some(Function::from_packed(|args| {
                Ok((args.len() as i64).into())
            }))),
            _ => Ok(None),
        }
    }

    fn source(&self, format: &str) -> Result<String, Error> {
        Ok(format!("as <{format}>"))
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        Ok(b"own bytes".to_vec())
    }

    fn write_to_file(&self, path: &str, format: &str) -> Result<(), Error> {
        let written = (path.to_owned(), format.to_owned());
        self.written.lock().unwrap().push(written);
        Ok(())
    }

    fn write_formats(&self) -> Vec<String> {
        vec!["one".into(), "two".into()]
    }

    fn metadata(&self, _: &Module, name: &str) -> Result<Option<String>, Error> {
        Ok((name == "add").then(|| "metadata of add".into()))
    }

    fn doc(&self, _: &Module, name: &str) -> Result<Option<String>, Error> {
        Ok((name == "add").then(|| "documentation of add".into()))
    }
}

/// A module that answers only its name.
struct Bare;

impl ModuleKind for Bare {
    fn kind(&self) -> &str {
        "bare"
    }

    fn function(&self, _: &Module, _: &str) -> Result<Option<Function>, Error> {
        Ok(None)
    }
}

/// Registers the builtins for modules, which come with the C interface.
fn ready() {
    let mut found = std::ptr::null_mut();
    let name = ByteArray::of(b"ffi.ModuleGetKind");
    // SAFETY: the name and the place are both alive.
    let code = unsafe { TVMFFIFunctionGetGlobal(&name, &mut found) };
    assert!(code == 0 && !found.is_null());
}

fn ask(name: &str, args: &[Any]) -> Result<Any, Error> {
    let views: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
    registry::require(name).unwrap().call_packed(&views)
}

fn text(value: Result<Any, Error>) -> Option<String> {
    String::try_from(&value.unwrap()).ok()
}

#[test]
fn a_module_of_a_user_answers_for_itself() {
    ready();
    let module = Module::new(Own {
        written: Mutex::default(),
    });
    let own = || Any::from(module.clone());
    assert_eq!(text(ask("ffi.ModuleGetKind", &[own()])).unwrap(), "own");
    for (name, has) in [("add", true), ("none", false)] {
        let implements = ask(
            "ffi.ModuleImplementsFunction",
            &[own(), name.into(), false.into()],
        );
        assert_eq!(bool::try_from(&implements.unwrap()).unwrap(), has, "{name}");
        let found = ask("ffi.ModuleGetFunction", &[own(), name.into(), false.into()]);
        assert_eq!(!found.unwrap().is_none(), has, "{name}");
        let of = |what: &str| {
            let name = format!("ffi.ModuleGetFunction{what}");
            text(ask(
                &name,
                &[own(), if has { "add" } else { "none" }.into(), false.into()],
            ))
        };
        assert_eq!(of("Metadata"), has.then(|| "metadata of add".to_owned()));
        assert_eq!(of("Doc"), has.then(|| "documentation of add".to_owned()));
    }
    let fails = ask(
        "ffi.ModuleGetFunction",
        &[own(), "fails".into(), false.into()],
    );
    assert_eq!(fails.unwrap_err().kind(), "KeyError");
    for format in ["", "ll"] {
        let source = text(ask("ffi.ModuleInspectSource", &[own(), format.into()]));
        assert_eq!(source.unwrap(), format!("as <{format}>"));
    }
    ask(
        "ffi.ModuleWriteToFile",
        &[own(), "a path".into(), "a format".into()],
    )
    .unwrap();
    let kind: &dyn std::any::Any = module.implementation().unwrap();
    let written = kind.downcast_ref::<Own>().unwrap().written.lock().unwrap();
    assert_eq!(*written, [("a path".to_owned(), "a format".to_owned())]);
}

#[test]
fn the_defaults_answer_that_there_is_nothing() {
    ready();
    let module = Module::new(Bare);
    let own = || Any::from(module.clone());
    assert_eq!(
        text(ask("ffi.ModuleInspectSource", &[own(), "ll".into()])).unwrap(),
        ""
    );
    for name in ["Metadata", "Doc"] {
        let name = format!("ffi.ModuleGetFunction{name}");
        assert!(
            ask(&name, &[own(), "f".into(), false.into()])
                .unwrap()
                .is_none()
        );
    }
    let error = ask("ffi.ModuleWriteToFile", &[own(), "p".into(), "f".into()]).unwrap_err();
    assert_eq!(error.kind(), "RuntimeError");
    assert!(
        error.message().contains("bare") && error.message().contains("WriteToFile"),
        "{error}"
    );
}

#[test]
fn a_module_is_equal_to_itself_alone() {
    let (one, two) = (Module::new(Bare), Module::new(Bare));
    assert!(one == one.clone());
    assert!(one != two);
    one.import(two.clone()).unwrap();
    assert!(one.imports() == vec![two.clone()]);
    assert!(two.import(one.clone()).is_err(), "MOD-13: a cycle");
    one.clear_imports().unwrap();
    assert!(one.imports().is_empty());
    two.import(one).unwrap();
}
