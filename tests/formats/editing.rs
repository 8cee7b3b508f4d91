//! Editing of libraries: content that an edit keeps or rejects, and reports on invalid content.
#![cfg(all(feature = "suite", feature = "inspect"))]
#![allow(missing_docs)]

use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs;
use tvmspec::blob::{self, Blob, LibraryModule, StoredModule};
use tvmspec::examine::unpack::{pack, unpack};
use tvmspec::examine::{Subject, Unit};
use tvmspec::payload::relax_vm::{
    RelaxExecutable, RelaxInstruction, RelaxOperand, VM_REGISTER, VOID_REGISTER,
};
use tvmspec::payload::{Field, Payload};
use tvmspec::release::{Layout, Release};
use tvmspec::rule::{Kind, Violation};
use tvmspec::tensor::{Device, Dtype, Sizing, TensorRecord};

const GRAPH: &str = "golden/graph/models/v0.8/mlp.so";
const RELAX: &str = "golden/blob/containers/relax_vm-0.27.so";

/// Returns the first library binary of a golden.
fn library(path: &str) -> Blob<'static> {
    let file = fs::read(path).unwrap();
    let library = blob::open(&file).unwrap().remove(0);
    library.blob.unwrap().into_owned()
}

/// Returns its module whose kind begins with `kind`.
fn module_of<'b>(blob: &'b mut Blob<'static>, kind: &str) -> &'b mut StoredModule<'static> {
    let modules = blob.modules.iter_mut();
    let mut modules = modules.filter_map(LibraryModule::stored_mut);
    modules
        .find(|module| module.kind.starts_with(kind))
        .unwrap()
}

fn edit<R>(
    blob: &mut Blob<'static>,
    kind: &str,
    change: impl FnOnce(&mut Payload<'_>) -> R,
) -> Result<R, Violation> {
    let edited = module_of(blob, kind).edit(|payload| Ok::<_, Violation>(change(payload)))?;
    Ok(edited.value)
}

/// Returns the library with this text as its graph, which no edit would accept.
fn with_graph(text: &str) -> Blob<'static> {
    let mut blob = library(GRAPH);
    let layout = blob.layout;
    let module = module_of(&mut blob, "Graph");
    let mut payload = module.decode().unwrap().value;
    *payload.field_mut("graph_json").unwrap() = Field::Text(text.to_owned().into());
    let bytes = payload.to_bytes(layout).unwrap();
    drop(payload);
    module.payload = bytes.into();
    blob
}

#[test]
fn an_edit_that_fails_leaves_the_module_as_it_was() {
    let mut blob = library(GRAPH);
    let before = blob.clone();
    let module = module_of(&mut blob, "Graph");
    let failed = module.edit(|payload| {
        let Some(Field::Tensors(params)) = payload.field_mut("params") else {
            panic!("a factory has parameters")
        };
        params.pop();
        Err::<(), Box<dyn std::error::Error>>("none of these".into())
    });
    assert_eq!(failed.unwrap_err().to_string(), "none of these");
    assert_eq!(blob, before);
}

#[test]
fn an_edit_keeps_the_rules_of_what_the_payload_stores() {
    let mut blob = library(RELAX);
    let before = blob.clone();
    let named = |payload: &mut Payload<'_>| {
        for function in &mut payload.relax_vm_mut().unwrap().functions {
            function.params.push("extra".to_owned().into());
        }
    };
    let broken = edit(&mut blob, "relax.", named).unwrap_err();
    assert_eq!(
        (broken.rule().id(), broken.kind()),
        ("VM-04", Kind::Malformed)
    );
    assert_eq!(blob, before);
    let mut blob = library(GRAPH);
    let before = blob.clone();
    let cut = |payload: &mut Payload<'_>| {
        *payload.field_mut("graph_json").unwrap() = Field::Text("{\"nodes\": [".into());
    };
    let broken = edit(&mut blob, "Graph", cut).unwrap_err();
    assert_eq!(
        (
            broken.rule().id(),
            broken.kind(),
            broken.offset(),
            broken.field()
        ),
        ("GRF-01", Kind::Truncated, Some(8 + 11), "graph_json")
    );
    assert_eq!(blob, before);
    // A file with an older fault may still be changed, and the fault may be repaired.
    let mut blob = with_graph("{");
    edit(&mut blob, "Graph", cut).unwrap();
}

#[test]
fn a_graph_that_is_none_is_found_wherever_the_library_is_looked_at() {
    let blob = with_graph("{\"nodes\": [");
    let bytes = blob.write().unwrap();
    let text = bytes.windows(11).position(|part| part == b"{\"nodes\": [");
    let end = text.unwrap() as u64 + 11;
    let subject = Subject::open("mlp.bin", &bytes, None).unwrap();
    let found = subject.verify().unwrap();
    let wrong = found.violations.iter();
    let wrong: Vec<_> = wrong
        .map(|located| {
            (
                located.what.rule().id(),
                located.what.offset(),
                &*located.field,
            )
        })
        .collect();
    let field = wrong[0].2.to_owned();
    assert_eq!(wrong, [("GRF-01", Some(end), &*field)]);
    assert!(
        field.starts_with("entry[") && field.ends_with("].graph_json"),
        "{field}"
    );
    let seen = subject.inspect().unwrap();
    let report = seen.clone().into_json();
    let violation = report.pointer("/parts/0/libraries/0/violation");
    assert_eq!(violation.unwrap()["rule"], "GRF-01");
    assert_eq!(violation.unwrap()["offset"], end);
    assert_eq!(seen.broken.len(), 1);
    let account = subject.explain_for(Some(Release::of(8))).unwrap().remove(0);
    assert!(!account.is_good());
    let why = &account.loads[0].1.why;
    assert!(
        why.contains("when it creates an executor") && why.contains("GRF-01"),
        "{why}"
    );
    let dumped = subject.dump().unwrap();
    let shown = serde_json::to_value(&dumped).unwrap();
    assert!(dumped.is_broken());
    assert_eq!(&shown[0]["broken"], violation.unwrap());
    assert_eq!((dumped.units().len(), dumped.from()), (1, 0));
    let (_, reading) = dumped.readings().next().unwrap();
    assert_eq!(reading.broken.unwrap().rule().id(), "GRF-01");
    assert!(format!("{dumped:?}").len() < 200);
}

#[test]
fn what_a_plan_of_storage_breaks_is_at_the_graph() {
    let mut payload = library(GRAPH);
    let module = module_of(&mut payload, "Graph").clone();
    let payload = module.decode().unwrap().value;
    let Some(Field::Text(text)) = payload.field("graph_json") else {
        panic!("a factory has a graph")
    };
    let mut graph: Value = serde_json::from_str(text).unwrap();
    // GRF-23: a shape whose size in bytes exceeds 64 bits.
    graph["attrs"]["shape"][1][0] = json!([i64::MAX, i64::MAX]);
    let blob = with_graph(&graph.to_string());
    let module = blob
        .modules
        .iter()
        .find(|module| module.kind().starts_with("Graph"))
        .unwrap();
    let bytes = module.payload().unwrap();
    let unit = Unit::payload("graph", bytes, module.kind(), Layout::V0_7).unwrap();
    let broken = unit.judge().broken.unwrap();
    assert_eq!(
        (broken.rule().id(), broken.offset(), broken.field()),
        ("GRF-23", Some(8), "graph_json")
    );
}

/// Returns the executables of several goldens.
fn executables() -> Vec<(String, StoredModule<'static>)> {
    let paths = [
        RELAX,
        "golden/eras/0.16/relax-vm.so",
        "golden/eras/0.22/relax-vm.so",
        "golden/vm/chain1000.so",
    ];
    let modules = paths.map(|path| {
        let mut blob = library(path);
        (path.to_owned(), module_of(&mut blob, "relax.").clone())
    });
    modules.into()
}

#[test]
fn instructions_of_releases_are_encoded_as_they_were() {
    for (path, mut module) in executables() {
        let before = module.payload.clone();
        let encoded = module.edit(|payload| {
            let code = payload.relax_vm_mut().unwrap();
            let mut words = Vec::new();
            for index in 0..code.offsets.len().min(50) {
                let instruction = code.instruction(index)?;
                words.extend(instruction.encode()?);
                code.replace_instruction(index, &instruction)?;
            }
            assert_eq!(words, code.words.to_vec()[..words.len()], "{path}");
            Ok::<usize, Violation>(words.len())
        });
        assert!(encoded.unwrap().value > 3, "{path}");
        assert_eq!(module.payload, before, "{path}");
    }
}

#[test]
fn an_instruction_of_another_length_moves_what_is_behind_it() {
    let (_, mut module) = executables().remove(0);
    let nothing = RelaxInstruction::Goto { offset: 1 };
    let call = module.edit(|payload| {
        let code = payload.relax_vm_mut().unwrap();
        let (first, second) = (code.instruction(0)?, code.instruction(1)?);
        code.replace_instruction(0, &nothing)?;
        assert_eq!(
            (code.instruction(0)?, code.instruction(1)?),
            (nothing.clone(), second)
        );
        Ok::<_, Violation>(first)
    });
    let call = call.unwrap().value;
    assert!(call.length() > 2, "{call:?}");
    let words = |module: &StoredModule<'_>| {
        let payload = module.decode().unwrap().value;
        payload.relax_vm().unwrap().words.len()
    };
    let short = words(&module);
    let back = module.edit(|payload| {
        payload
            .relax_vm_mut()
            .unwrap()
            .replace_instruction(0, &call)
    });
    back.unwrap();
    assert_eq!(words(&module), short + call.length() - 2);
    // PAY-93: the function does not exist; PAY-88: there is no such instruction.
    let far = RelaxInstruction::Call {
        destination: VOID_REGISTER,
        function: 1 << 40,
        operands: Vec::new(),
    };
    let mut rejected = |index, instruction: &RelaxInstruction| {
        let broken = module.edit(|payload| {
            payload
                .relax_vm_mut()
                .unwrap()
                .replace_instruction(index, instruction)
        });
        broken.unwrap_err().rule().id()
    };
    assert_eq!(rejected(0, &far), "PAY-93");
    assert_eq!(rejected(1 << 40, &nothing), "PAY-88");
    let wide = RelaxOperand::Immediate(1 << 55);
    assert_eq!(wide.encode().unwrap_err().rule().id(), "PAY-89");
}

fn operand() -> impl Strategy<Value = RelaxOperand> {
    let value = -(1_i64 << 55)..1 << 55;
    prop_oneof![
        value.clone().prop_map(RelaxOperand::Register),
        value.clone().prop_map(RelaxOperand::Immediate),
        value.clone().prop_map(RelaxOperand::Constant),
        value.prop_map(RelaxOperand::Function),
        Just(RelaxOperand::Register(VM_REGISTER)),
    ]
}

fn instruction() -> impl Strategy<Value = RelaxInstruction> {
    prop_oneof![
        any::<i64>().prop_map(|register| RelaxInstruction::Ret { register }),
        any::<i64>().prop_map(|offset| RelaxInstruction::Goto { offset }),
        any::<(i64, i64)>().prop_map(|(condition, false_offset)| RelaxInstruction::If {
            condition,
            false_offset
        }),
        (
            any::<i64>(),
            any::<i64>(),
            prop::collection::vec(operand(), 0..8)
        )
            .prop_map(|(destination, function, operands)| RelaxInstruction::Call {
                destination,
                function,
                operands
            }),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(code in prop::collection::vec(instruction(), 1..8), other in instruction(), at: prop::sample::Index) {
        let (mut words, mut offsets) = (Vec::new(), Vec::new());
        for instruction in &code {
            offsets.push(words.len() as u64);
            let encoded = instruction.encode().unwrap();
            prop_assert_eq!(encoded.len(), instruction.length());
            words.extend(encoded);
        }
        let mut made = RelaxExecutable {
            offsets: offsets.as_slice().into(),
            words: words.as_slice().into(),
            ..RelaxExecutable::default()
        };
        let mut expected = code;
        let at = at.index(expected.len());
        made.replace_instruction(at, &other).unwrap();
        expected[at] = other;
        for (index, instruction) in expected.iter().enumerate() {
            prop_assert_eq!(&made.instruction(index).unwrap(), instruction);
        }
    }
}

#[test]
fn a_tensor_with_other_data_keeps_the_rest() {
    let float: Dtype = "float32".parse().unwrap();
    let device = Device { kind: 2, id: 1 };
    let record = TensorRecord::new(float, &[2], vec![1; 8], Sizing::V0_7).unwrap();
    let record = record.with_device(device).with_reserved(7);
    let zeros = record.clone().with_data(vec![0; 8]).unwrap();
    assert_eq!(
        (
            zeros.data(),
            zeros.shape(),
            zeros.dtype(),
            zeros.device(),
            zeros.reserved()
        ),
        (&[0; 8][..], &[2][..], float, device, 7)
    );
    let broken = record.with_data(vec![0; 7]).unwrap_err();
    assert_eq!(
        (broken.rule().id(), broken.kind()),
        ("TEN-31", Kind::Malformed)
    );
    // TEN-30: in 0.4 to 0.6 a bool of one bit takes no byte.
    let bool1: Dtype = "uint1".parse().unwrap();
    let old = TensorRecord::new(bool1, &[3], vec![], Sizing::V0_4).unwrap();
    assert_eq!(old.with_data(vec![0; 3]).unwrap_err().rule().id(), "TEN-30");
}

#[test]
fn a_library_that_is_unpacked_is_packed_again() {
    let mut files = 0;
    for entry in fs::read_dir("golden/blob").unwrap() {
        let path = entry.unwrap().path();
        if !path.is_file() {
            continue;
        }
        let file = fs::read(&path).unwrap();
        for library in blob::open(&file).unwrap_or_default() {
            // A manifest cannot describe a second `_lib`, and bytes after the end are not stored.
            let Some(blob) = library.blob else {
                continue;
            };
            let bytes = blob.write().unwrap();
            let Ok(parts) = unpack(blob) else {
                continue;
            };
            let named = |name: &str| {
                let found = parts.files().find(|(own, _)| *own == name);
                found
                    .map(|(_, bytes)| bytes.to_vec())
                    .ok_or("there is none")
            };
            let again = pack(&parts.manifest(), named);
            let again = again.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(again.write().unwrap(), bytes, "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 20, "{files}");
    let none = |_: &str| Err::<Vec<u8>, _>("there is none");
    for (manifest, why) in [
        (json!([]), "it is not a table"),
        (json!({"modules": []}), "it has no modules"),
        (json!({"modules": [{"kind": "_lib"}]}), "it has no `layout`"),
        (
            json!({"layout": "0.22", "modules": [{"kind": "_lib"}], "extra": 1}),
            "unknown key `extra`",
        ),
        (
            json!({"layout": "0.22", "modules": [{"kind": "cuda"}]}),
            "module 0: kind `cuda` needs one of",
        ),
        (
            json!({"layout": "0.22", "modules": [{"kind": "cuda", "file": "x"}]}),
            "module 0: there is none",
        ),
        (
            json!({"layout": "0.22", "modules": [{"kind": "_lib", "code": "x.c"}]}),
            "`code` and `library` are more",
        ),
    ] {
        let error = pack(&manifest, none).unwrap_err().to_string();
        assert!(error.starts_with(why), "{error}");
    }
    let cycle = json!({"layout": "0.22", "modules": [{"kind": "_lib", "imports": [1]},
        {"kind": "x", "payload": "", "imports": [2]}, {"kind": "y", "payload": "", "imports": [1]}]});
    let broken = pack(&cycle, none).unwrap_err();
    assert_eq!(
        broken.broken().map(|broken| broken.kind()),
        Some(Kind::Cycle)
    );
}

#[test]
fn the_json_of_a_library_has_no_other_members() {
    for (value, member) in [
        (
            json!({"layout": "0.22", "modules": [{"kind": "cuda", "file": "1.cuda"}]}),
            "`file`",
        ),
        (
            json!({"layout": "0.22", "modules": [], "order": "0.8"}),
            "`order`",
        ),
        (
            json!({"layout": "0.22", "modules": [], "import_tree": {"indptr": [0], "indices": [], "x": 1}}),
            "`x`",
        ),
    ] {
        let broken = Blob::from_json(&value).unwrap_err();
        assert_eq!((broken.rule().id(), broken.kind()), ("BLOB-17", Kind::Type));
        assert!(broken.message().contains(member), "{broken}");
    }
}
