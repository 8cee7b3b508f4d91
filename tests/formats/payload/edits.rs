//! Editing of payloads.

use super::{Accepted, accepted, golden, read};
use serde_json::json;
use std::borrow::Cow;
use tvmspec::blob::StoredModule;
use tvmspec::payload::{Field, Payload};
use tvmspec::release::Layout;
use tvmspec::rule::{Kind, Violation};

/// Returns the module of an accepted case.
fn module(case: &Accepted) -> StoredModule<'_> {
    let mut module = StoredModule::new(&case.kind, &case.bytes, case.layout);
    module.offset = 7;
    module
}

/// Wraps a change that does not fail.
fn done(
    change: impl FnOnce(&mut Payload<'_>),
) -> impl FnOnce(&mut Payload<'_>) -> Result<(), Violation> {
    |payload| {
        change(payload);
        Ok(())
    }
}

#[test]
fn a_payload_that_is_edited_back_and_forth_is_as_it_was() {
    let mut edited = [0; 4];
    for case in accepted() {
        let mut module = module(&case);
        let mut edit = |change: &mut dyn FnMut(&mut Payload<'_>)| {
            let changed = module.edit(|payload| {
                change(payload);
                Ok::<(), Violation>(())
            });
            changed.unwrap_or_else(|broken| panic!("{}: {broken}", case.id));
            module.payload.clone()
        };
        assert_eq!(edit(&mut |_| ()), case.bytes, "{}", case.id);
        edited[0] += 1;
        // Adds one argument to every function, and removes it.
        let mut seen = 0;
        let longer = edit(&mut |payload| {
            for function in payload.functions_mut().into_iter().flatten() {
                function.info.arg_types.push("float64".parse().unwrap());
                seen += 1;
            }
        });
        if seen > 0 {
            assert_eq!(longer.len(), case.bytes.len() + 4 * seen, "{}", case.id);
            edited[1] += 1;
        }
        let shorter = edit(&mut |payload| {
            for function in payload.functions_mut().into_iter().flatten() {
                function.info.arg_types.pop();
            }
        });
        assert_eq!(shorter, case.bytes, "{}", case.id);
        // Inverts the bytes of the parameters, and restores them.
        let mut upside_down = |payload: &mut Payload<'_>| {
            for slot in ["params", "variables"] {
                if let Some(Field::Tensors(list)) = payload.field_mut(slot) {
                    for (_, tensor) in list.iter_mut() {
                        let bytes: Vec<u8> = tensor.data().iter().map(|byte| !byte).collect();
                        *tensor = tensor.clone().with_data(bytes).unwrap();
                        edited[2] += 1;
                    }
                }
            }
        };
        edit(&mut upside_down);
        assert_eq!(edit(&mut upside_down), case.bytes, "{}", case.id);
        let mut code = Vec::new();
        edit(&mut |payload| {
            if let Some(data) = payload.data_mut().filter(|data| data.len() > 1) {
                code = data.to_vec();
                // PAY-22: the lines that separate OpenCL kernels stay.
                data.to_mut().extend_from_slice(b"\n");
            }
        });
        let back = edit(&mut |payload| {
            if let Some(data) = payload.data_mut().filter(|_| !code.is_empty()) {
                assert_eq!(data.len(), code.len() + 1);
                *data = Cow::Owned(code.clone());
                edited[3] += 1;
            }
        });
        assert_eq!(back, case.bytes, "{}", case.id);
    }
    println!("{edited:?} payloads, with functions, tensors, with one code");
    assert!(edited.iter().all(|count| *count > 10), "{edited:?}");
}

#[test]
fn an_edit_that_no_reader_accepts_leaves_the_module_as_it_was() {
    let cases = accepted();
    let device = |form| {
        let mut found = cases
            .iter()
            .filter(|case| case.layout == Layout::V0_22 && case.kind == "metal");
        found.find(|case| read(&case.kind, case.layout, &case.bytes).0.form() == Some(form))
    };
    let (new, old) = (device("0.24").unwrap(), device("0.2").unwrap());
    let rejected = |case: &Accepted, change: &dyn Fn(&mut Payload<'_>)| {
        let mut module = module(case);
        let before = module.clone();
        let edited = module.edit(done(change));
        assert_eq!(module, before);
        let broken = edited.unwrap_err();
        (broken.rule().id(), broken.kind())
    };
    // A field of another shape, and a format that is not a word.
    assert_eq!(
        rejected(new, &|payload| *payload.field_mut("format").unwrap() =
            Field::Int(1)),
        ("PAY-18", Kind::Type)
    );
    let spaced = |payload: &mut Payload<'_>| {
        *payload.field_mut("format").unwrap() = Field::Text("two words".into());
    };
    assert_eq!(rejected(new, &spaced), ("PAY-11", Kind::Malformed));
    // Without code, it is read as a payload of 0.24 without kernels.
    let emptied = |payload: &mut Payload<'_>| {
        *payload.field_mut("data").unwrap() = Field::Bytes(Cow::Borrowed(b""));
    };
    assert_eq!(rejected(old, &emptied), ("PAY-09", Kind::Malformed));
    let edited = module(new).edit(|payload| Ok::<_, Violation>(payload.data_mut().is_none()));
    assert!(edited.unwrap().value);
}

/// PAY-01: the message names the place in the value, because nothing else says where the fault is.
#[test]
fn a_value_of_another_form_is_rejected_at_its_place() {
    let metal = json!({"kind": "metal", "format": "metal", "functions": [], "sources": []});
    for (value, part) in [
        (json!({}), "payload has no `kind`"),
        (json!({"kind": 1}), "payload.kind"),
        (json!({"kind": "x", "opaque": 1}), "opaque is"),
        (json!({"kind": "x", "opaque": "?"}), "opaque is"),
        (json!({"kind": "x"}), "`x`"),
        (metal, "payload has no `"),
    ] {
        let broken = Payload::from_json(&value).unwrap_err();
        assert_eq!(
            (broken.rule().id(), broken.kind()),
            ("PAY-01", Kind::Type),
            "{value}"
        );
        assert!(broken.message().contains(part), "{part}: {broken}");
    }
}

#[test]
fn a_name_that_is_there_twice_is_shown_with_what_it_names() {
    let bytes = golden("payload/relax-vm-function-twice.bin");
    let (_, findings) = read("relax.VMExecutable", Layout::V0_22, &bytes);
    let texts: Vec<String> = findings
        .into_iter()
        .map(|finding| finding.message.to_string())
        .collect();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].starts_with("function `"), "{texts:?}");
}

/// The findings of an edit are those of the new payload. A strict user edits a copy.
#[test]
fn an_edit_shows_what_is_odd_in_what_it_made() {
    let cases = accepted();
    let case = cases
        .iter()
        .find(|case| case.id == "payload/opencl-minimal");
    let case = case.unwrap();
    // PAY-22: no delimiter line for the only function.
    let change = |payload: &mut Payload<'_>| {
        *payload.data_mut().unwrap() = Cow::Borrowed(b"__kernel void k() {}\n");
    };
    let mut module = module(case);
    let before = module.clone();
    let edited = module.edit(done(change)).unwrap();
    let found = edited.findings.iter().map(|finding| finding.rule.id());
    assert_eq!(found.collect::<Vec<_>>(), ["PAY-22"]);
    assert_eq!(edited.strict().unwrap_err().rule().id(), "PAY-22");
    assert_ne!(module.payload, before.payload);
    // BLOB-04: a kind that no reader of a library accepts.
    for kind in ["", "a\0b"] {
        let mut module = StoredModule::new(kind, b"x".as_slice(), Layout::V0_22);
        let before = module.clone();
        let edited = module.edit(done(|_| ()));
        let broken = edited.unwrap_err();
        assert_eq!(
            (broken.rule().id(), broken.offset()),
            ("BLOB-04", None),
            "{kind:?}"
        );
        assert_eq!(module, before);
    }
}
