//! Payloads: every golden reads, traces and writes back; what is written reads back.
#![cfg(feature = "suite")]
#![allow(missing_docs)]

#[path = "../support/folder.rs"]
mod folder;

use proptest::prelude::*;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fs;
use std::path::Path;
use tvmspec::blob::{LIBRARY, StoredModule};
use tvmspec::payload::{
    self, Field, FunctionInfo, KindInfo, Network, Payload, Shader, StackVm, relax_vm, relay_vm,
};
use tvmspec::release::Layout;
use tvmspec::rule::{Findings, Kind, Strictness};
use tvmspec::tensor::{Sizing, TensorRecord};
use tvmspec::wire::{Cursor, Trace, Writer};

/// What the accepted cases read: name, kind, layout, bytes, expected value.
struct Accepted {
    id: String,
    kind: String,
    layout: Layout,
    bytes: Vec<u8>,
    value: Value,
}

fn golden(path: &str) -> Vec<u8> {
    fs::read(format!("golden/{path}")).unwrap_or_else(|error| panic!("golden/{path}: {error}"))
}

fn accepted() -> Vec<Accepted> {
    let files = folder::files(Path::new("conformance/payload/cases"));
    let cases = files
        .iter()
        .flat_map(|file| serde_json::from_slice::<Vec<Value>>(&fs::read(file).unwrap()).unwrap());
    // Bytes behind the end are read over and not written back: such a case says so.
    let decoded = cases.filter(|case| {
        let whole = case["encode"] != false && case["op"] == "payload.decode";
        whole && case["expect"]["accept_file"].is_string()
    });
    decoded
        .map(|case| Accepted {
            id: case["id"].as_str().unwrap().to_owned(),
            kind: case["args"]["kind"].as_str().unwrap().to_owned(),
            layout: case["args"]["layout"].as_str().unwrap().parse().unwrap(),
            bytes: golden(case["input"]["file"].as_str().unwrap()),
            value: serde_json::from_slice(&golden(case["expect"]["accept_file"].as_str().unwrap()))
                .unwrap(),
        })
        .collect()
}

fn read<'a>(kind: &str, layout: Layout, bytes: &'a [u8]) -> (Payload<'a>, Findings) {
    let mut findings = Findings::default();
    let payload = payload::read(kind, layout, &mut Cursor::new(bytes), &mut findings);
    (
        payload.unwrap_or_else(|broken| panic!("{kind}: {broken}")),
        findings,
    )
}

/// The module of an accepted case.
fn module(case: &Accepted) -> StoredModule<'_> {
    StoredModule {
        kind: Cow::from(&case.kind),
        payload: Some(Cow::from(&case.bytes)),
        offset: 7,
    }
}

#[test]
fn a_payload_that_is_edited_back_and_forth_is_as_it_was() {
    let mut edited = [0; 4];
    for case in accepted() {
        let mut module = module(&case);
        let mut edit = |change: &mut dyn FnMut(&mut Payload<'_>)| {
            let changed = module.edit(case.layout, &mut Findings::default(), |payload| {
                change(payload)
            });
            changed.unwrap_or_else(|broken| panic!("{}: {broken}", case.id));
            module.payload.clone().unwrap()
        };
        assert_eq!(edit(&mut |_| ()), case.bytes, "{}", case.id);
        edited[0] += 1;
        // One more argument of every function, and away with it.
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
        // Parameters upside down, and back.
        let mut upside_down = |payload: &mut Payload<'_>| {
            for slot in ["params", "variables"] {
                if let Some(Field::Tensors(list)) = payload.field_mut(slot) {
                    for (_, tensor) in list.iter_mut() {
                        let bytes: Vec<u8> = tensor.data().iter().map(|byte| !byte).collect();
                        let (reserved, device) = (tensor.reserved(), tensor.device());
                        let other =
                            TensorRecord::new(tensor.dtype(), tensor.shape(), bytes, Sizing::V0_7);
                        *tensor = other.unwrap().with_reserved(reserved).with_device(device);
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
                // What cuts OpenCL into kernels stays (PAY-22).
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
        let edited = module.edit(case.layout, &mut Findings::default(), change);
        assert_eq!(module, before);
        let broken = edited.unwrap_err();
        (broken.rule().id(), broken.kind())
    };
    // A field of another shape, and a format that is no word.
    assert_eq!(
        rejected(new, &|payload| *payload.field_mut("format").unwrap() =
            Field::Int(1)),
        ("PAY-18", Kind::Type)
    );
    let spaced = |payload: &mut Payload<'_>| {
        *payload.field_mut("format").unwrap() = Field::Text("two words".into());
    };
    assert_eq!(rejected(new, &spaced), ("PAY-11", Kind::Malformed));
    // Without code it is a payload of 0.24 without kernels.
    let emptied = |payload: &mut Payload<'_>| {
        *payload.field_mut("data").unwrap() = Field::Bytes(Cow::Borrowed(b""));
    };
    assert_eq!(rejected(old, &emptied), ("PAY-09", Kind::Malformed));
    let mut library = StoredModule {
        kind: LIBRARY.into(),
        payload: None,
        offset: 0,
    };
    let nothing = library.edit(Layout::V0_22, &mut Findings::default(), |_| ());
    assert_eq!(nothing.unwrap_err().rule().id(), "BLOB-17");
    assert_eq!(
        module(new).edit(new.layout, &mut Findings::default(), |payload| payload
            .data_mut()
            .is_none()),
        Ok(true)
    );
}

#[test]
fn goldens_read_as_the_second_reader_reads_them_and_write_back() {
    let accepted = accepted();
    assert!(accepted.len() > 20);
    for Accepted {
        id,
        kind,
        layout,
        bytes,
        value,
    } in accepted
    {
        let (payload, findings) = read(&kind, layout, &bytes);
        assert!(payload.to_json() == value, "{id}: {}", payload.to_json());
        let mut out = Writer::new();
        payload.write(layout, &mut out).unwrap();
        assert!(
            out.into_bytes() == bytes,
            "{id} is written differently; {findings:?}"
        );
        let again = Payload::from_json(&value).unwrap_or_else(|broken| panic!("{id}: {broken}"));
        let mut out = Writer::new();
        again.write(layout, &mut out).unwrap();
        assert!(
            out.into_bytes() == bytes,
            "{id} is written differently from its JSON"
        );
    }
}

#[test]
fn every_byte_of_a_golden_has_one_field() {
    for Accepted {
        id,
        kind,
        layout,
        bytes,
        ..
    } in accepted()
    {
        let trace = Trace::new();
        {
            let mut cursor = Cursor::traced(&bytes, &trace);
            payload::read(&kind, layout, &mut cursor, &mut Findings::default()).unwrap();
        }
        let mut end = 0;
        for span in trace.into_spans() {
            assert_eq!(
                span.start, end,
                "{id}: gap or overlap at {} ({})",
                end, span.field
            );
            assert!(
                !span.field.is_empty(),
                "{id}: byte {} has no name",
                span.start
            );
            end = span.end;
        }
        assert_eq!(end, bytes.len() as u64, "{id}: bytes behind the last field");
    }
}

#[test]
fn the_form_of_a_payload_is_that_of_its_json() {
    let mut several = 0;
    for case in accepted() {
        let (payload, _) = read(&case.kind, case.layout, &case.bytes);
        let Payload::Known(known) = &payload else {
            assert_eq!(payload.form(), None, "{}", case.id);
            continue;
        };
        assert_eq!(payload.form(), Some(known.form().name), "{}", case.id);
        assert_eq!(known.info().kind, case.kind, "{}", case.id);
        if let Some(form) = case.value["form"].as_str() {
            assert_eq!(payload.form(), Some(form), "{}", case.id);
            several += 1;
        }
    }
    assert!(
        several > 10,
        "{several} payloads of kinds with several forms"
    );
}

#[test]
fn what_a_payload_holds_is_found_by_its_meaning() {
    let mut found = [0; 5];
    for case in accepted() {
        let (payload, _) = read(&case.kind, case.layout, &case.bytes);
        let id = &case.id;
        assert_eq!(
            payload.relax_vm().is_some(),
            case.kind.starts_with("relax."),
            "{id}"
        );
        assert_eq!(
            payload.relay_vm().is_some(),
            case.kind == "VMExecutable",
            "{id}"
        );
        assert_eq!(payload.format(), case.value["format"].as_str(), "{id}");
        assert_eq!(
            payload.functions().count(),
            case.value["functions"]
                .as_array()
                .filter(|_| case.kind != "stackvm")
                .map_or(0, Vec::len),
            "{id}"
        );
        let lists =
            ["kernels", "shaders"].map(|list| case.value[list].as_array().map_or(0, Vec::len));
        assert_eq!(payload.kernels().count(), lists[0] + lists[1], "{id}");
        if let Some(source) = case.value["source"].as_str() {
            assert_eq!(payload.source(), Some(source), "{id}");
            assert_eq!(payload.data(), Some(source.as_bytes()), "{id}");
            found[4] += 1;
        }
        let counts = [
            payload.relax_vm().is_some(),
            payload.relay_vm().is_some(),
            payload.format().is_some(),
            lists[0] + lists[1] > 0,
        ];
        for (count, one) in found.iter_mut().zip(counts) {
            *count += usize::from(one);
        }
    }
    assert!(found.iter().all(|count| *count > 2), "{found:?}");
}

/// The field of a golden that `choose` wants.
fn field<T>(kind: &str, layout: Layout, file: &str, choose: impl Fn(&Field<'_>) -> Option<T>) -> T {
    let bytes = golden(&format!("payload/{file}"));
    let (payload, _) = read(kind, layout, &bytes);
    let found = payload.fields().iter().find_map(choose);
    found.unwrap_or_else(|| panic!("{file} has no such field"))
}

#[test]
fn a_shader_says_whether_it_takes_a_uniform_buffer() {
    let flags = |shader: &Shader<'_>| (shader.name.to_string(), shader.flags, shader.spirv.len());
    let shaders = field(
        "vulkan",
        Layout::V0_22,
        "vulkan-0.24.bin",
        |field| match field {
            Field::Shaders(list) => Some(list.iter().map(flags).collect::<Vec<_>>()),
            _ => None,
        },
    );
    assert_eq!(shaders, [("k".to_owned(), 1, 20)]);
    let bytes = golden("payload/vulkan-0.24.bin");
    let (payload, _) = read("vulkan", Layout::V0_22, &bytes);
    let (name, info): (_, &FunctionInfo<'_>) = payload.functions().next().unwrap();
    assert_eq!((name, &*info.name), ("k", "k"));
    assert_eq!(info.launch_param_tags, ["blockIdx.x", "threadIdx.x"]);
    let kind: &KindInfo = payload::kind_info("vulkan").unwrap();
    let forms: Vec<&str> = kind.forms.iter().map(|form| form.name).collect();
    assert_eq!(forms.last(), Some(&"0.3"));
    assert!(forms.contains(&"0.24"));
}

#[test]
fn networks_and_stack_code_say_what_they_need() {
    let sizes = |network: &Network<'_>| (network.input_sizes.clone(), network.output_sizes.clone());
    let of = |file: &str| {
        field("ethos-n", Layout::V0_7, file, |field| match field {
            Field::Networks(list) => Some(list.iter().map(sizes).collect::<Vec<_>>()),
            _ => None,
        })
    };
    assert_eq!(of("ethos-n-0.10.bin"), [(vec![16], vec![16])]);
    assert_eq!(of("ethos-n-0.7.bin"), [(vec![], vec![])]);
    let add1 = |(name, function): &(payload::Text<'_>, StackVm<'_>)| {
        assert_eq!(name, "add1");
        (function.code[..3].to_vec(), function.heap_size > 0)
    };
    let code = field(
        "stackvm",
        Layout::V0_7,
        "stackvm-0.8.bin",
        |field| match field {
            Field::StackVms(list) => list.first().map(add1),
            _ => None,
        },
    );
    assert_eq!(code, (vec![32, 2, 30], true));
}

#[test]
fn words_of_the_relax_vm_are_instructions() {
    use relax_vm::{
        MAGIC, MAGIC_WITH_SCOPES, RelaxInstruction, RelaxOperand, VM_REGISTER, VOID_REGISTER,
    };
    let file = "relax-executable-0.16.bin";
    let code = field(
        "relax.Executable",
        Layout::V0_7,
        file,
        |field| match field {
            Field::Relax(executable) => {
                Some([0, 1, 2, 3].map(|index| executable.instruction(index)))
            }
            _ => None,
        },
    );
    let operands = vec![
        RelaxOperand::Register(0),
        RelaxOperand::Immediate(-1),
        RelaxOperand::Constant(5),
        RelaxOperand::Function(0),
        RelaxOperand::Register(VM_REGISTER),
    ];
    let call = RelaxInstruction::Call {
        destination: 1,
        function: 1,
        operands,
    };
    let skip = RelaxInstruction::If {
        condition: 1,
        false_offset: 2,
    };
    let ret = RelaxInstruction::Ret { register: 1 };
    assert_eq!(
        code,
        [
            Ok(call),
            Ok(skip),
            Ok(RelaxInstruction::Goto { offset: 1 }),
            Ok(ret)
        ]
    );
    let nothing = RelaxOperand::decode(VOID_REGISTER as u64);
    assert_eq!(nothing, Some(RelaxOperand::Register(VOID_REGISTER)));
    assert_eq!(RelaxOperand::decode(4 << 56), None);
    for (file, magic, scopes) in [
        ("relax-vm-0.22.bin", MAGIC, false),
        ("relax-vm-0.27.bin", MAGIC_WITH_SCOPES, true),
    ] {
        let has = field(
            "relax.VMExecutable",
            Layout::V0_22,
            file,
            |field| match field {
                Field::Relax(executable) => Some(executable.memory_scopes.is_some()),
                _ => None,
            },
        );
        assert_eq!(has, scopes, "{file}");
        let bytes = golden(&format!("payload/{file}"));
        assert_eq!(bytes[..8], magic.to_le_bytes(), "{file}");
    }
}

#[test]
fn fields_of_the_relay_vm_mean_what_their_opcode_says() {
    use relay_vm::{OPCODES, Opcode, RelayInstruction, RelayOperand};
    let kind = |file: &str| {
        field("VMExecutable", Layout::V0_7, file, |field| match field {
            Field::Relay(executable) => {
                let devices = executable.virtual_devices.iter();
                let scopes = devices.map(|one: &relay_vm::VirtualDevice<'_>| one.scope.to_string());
                let attrs = executable.primitive_attrs.iter().map(
                    |(primitive, attrs): &(u64, relay_vm::RelayAttributes<'_>)| {
                        (*primitive, attrs[0].0.to_string())
                    },
                );
                let code = executable.functions[0].code.clone();
                Some((scopes.collect::<Vec<_>>(), attrs.collect::<Vec<_>>(), code))
            }
            _ => None,
        })
    };
    let (scopes, attrs, code) = kind("relay-vm-0.14.bin");
    assert_eq!(scopes, ["global"]);
    assert_eq!(attrs, [(0, "hash".to_owned())]);
    let row = |instruction: &RelayInstruction| -> &'static Opcode {
        let mut rows = OPCODES.iter();
        rows.find(|row| row.code == instruction.opcode && row.since <= 14)
            .unwrap()
    };
    for instruction in &code {
        assert_eq!(row(instruction).fields.len(), instruction.fields.len());
    }
    assert_eq!(row(code.last().unwrap()).fields, [RelayOperand::Register]);
    assert_eq!(row(code.last().unwrap()).name, "Ret");
}

#[test]
fn a_payload_that_is_cut_anywhere_is_rejected_in_a_framed_layout() {
    for Accepted {
        id,
        kind,
        layout,
        bytes,
        ..
    } in accepted()
    {
        if layout < Layout::V0_22 {
            continue;
        }
        for length in 0..bytes.len() {
            let mut findings = Findings::default();
            let mut cursor = Cursor::new(&bytes[..length]);
            let result = payload::read(&kind, layout, &mut cursor, &mut findings);
            assert!(result.is_err(), "{id} reads when cut to {length} bytes");
        }
    }
}

/// Bytes of accepted payloads with a few of them changed, and whatever else there may be behind.
fn damaged() -> impl Strategy<Value = (String, Layout, Vec<u8>)> {
    let all = accepted();
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (
        any::<prop::sample::Index>(),
        edits,
        any::<prop::sample::Index>(),
    )
        .prop_map(move |(which, edits, length)| {
            let Accepted {
                kind,
                layout,
                bytes,
                ..
            } = which.get(&all);
            let mut bytes = bytes.clone();
            for (at, byte) in edits {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            // Mostly whole, sometimes cut.
            if length.index(4) == 0 {
                bytes.truncate(length.index(bytes.len() + 1));
            }
            (kind.clone(), *layout, bytes)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_reads_writes_back((kind, layout, bytes) in damaged()) {
        let mut findings = Findings::default();
        let mut cursor = Cursor::new(&bytes);
        if let Ok(payload) = payload::read(&kind, layout, &mut cursor, &mut findings) {
            let read = &bytes[..bytes.len() - cursor.remaining()];
            let mut out = Writer::new();
            payload.write(layout, &mut out).unwrap();
            let written = out.into_bytes();
            prop_assert!(!findings.is_empty() || written == read, "{kind} is written as other bytes");
            let from_json = Payload::from_json(&payload.to_json()).unwrap();
            let mut out = Writer::new();
            from_json.write(layout, &mut out).unwrap();
            prop_assert!(out.into_bytes() == written, "the JSON form of {kind} is another payload");
        }
    }
}

/// PAY-01: the message names the place in the value, which is all that says where it is wrong.
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
    let said: Vec<String> = findings
        .into_iter()
        .map(|finding| finding.message.to_string())
        .collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("function `"), "{said:?}");
}

/// What a strict user does not accept is no change; a lenient one gets the finding.
#[test]
fn an_edit_shows_what_is_odd_in_what_it_made() {
    let cases = accepted();
    let case = cases
        .iter()
        .find(|case| case.id == "payload/opencl-minimal");
    let case = case.unwrap();
    // PAY-22: no delimiter line for the one function.
    let change = |payload: &mut Payload<'_>| {
        *payload.data_mut().unwrap() = Cow::Borrowed(b"__kernel void k() {}\n");
    };
    let mut strict = module(case);
    let before = strict.clone();
    let mut findings = Findings::new(Strictness::Strict);
    let broken = strict.edit(case.layout, &mut findings, change).unwrap_err();
    assert_eq!(broken.rule().id(), "PAY-22");
    assert_eq!(strict, before);
    let mut lenient = module(case);
    let mut findings = Findings::default();
    lenient.edit(case.layout, &mut findings, change).unwrap();
    let found: Vec<&str> = findings
        .into_iter()
        .map(|finding| finding.rule.id())
        .collect();
    assert_eq!(found, ["PAY-22"]);
    assert_ne!(lenient.payload, before.payload);
    // BLOB-04: a kind that no reader of a library takes.
    for kind in ["", "a\0b"] {
        let mut module = StoredModule {
            kind: kind.into(),
            payload: Some(Cow::Borrowed(b"x")),
            offset: 7,
        };
        let before = module.clone();
        let edited = module.edit(Layout::V0_22, &mut Findings::default(), |_| ());
        let broken = edited.unwrap_err();
        assert_eq!(
            (broken.rule().id(), broken.offset()),
            ("BLOB-04", None),
            "{kind:?}"
        );
        assert_eq!(module, before);
    }
}

/// What `save` of 0.16 wrote is written again byte for byte, by the code of dmlc's JSON as well as the code itself.
#[test]
fn module_files_of_a_release_are_written_as_they_were() {
    use tvmspec::payload::file::{self, ModuleFile};
    use tvmspec::release::Release;
    let read = |name: &str| std::fs::read(format!("golden/payload/files/{name}")).unwrap();
    let side = read("addone-0.16.tvm_meta.json");
    for name in ["addone-0.16.cl", "addone-0.16.metal"] {
        let code = read(name);
        let mut findings = Findings::default();
        let module = ModuleFile::read(name, "", &code, Some(&side), &mut findings).unwrap();
        assert!(findings.is_empty(), "{findings:?}");
        let (again, text) = file::write(&module.payload, name, "", Release::of(16)).unwrap();
        assert!(again == code && text.as_bytes() == side, "{name}: {text}");
        // 0.7 looks for the other list, and rejects what it does not know.
        let rejected = module
            .rejected
            .iter()
            .map(|(releases, _)| releases.to_string());
        assert!(rejected.clone().all(|releases| releases == "..0.7"));
        assert_eq!(rejected.count(), 2);
    }
}

/// A map of several functions has a line for each, one of more than ten numbers a line for each.
#[test]
fn side_files_break_lines_as_dmlc_does() {
    use tvmspec::payload::file::SideFile;
    use tvmspec::release::Release;
    let short =
        r#"{"name": "", "arg_types": [], "launch_param_tags": [], "arg_extra_tags": [0, 1]}"#;
    let text =
        format!(r#"{{"tvm_version": "0.1.0", "func_info": {{"a": {short}, "b": {short}}}}}"#);
    let side = SideFile::read(text.as_bytes(), &mut Findings::default()).unwrap();
    let lines = |name: &str| {
        format!(
            "    \"{name}\": {{\n      \"name\": \"\", \n      \"arg_types\": [], \n      \"launch_param_tags\": [], \n      \"arg_extra_tags\": [0, 1]\n    }}"
        )
    };
    let expected = format!(
        "{{\n  \"tvm_version\": \"0.1.0\", \n  \"func_info\": {{\n{}, \n{}\n  }}\n}}",
        lines("a"),
        lines("b")
    );
    assert_eq!(side.to_text(Release::of(21)), expected);
    let none = SideFile::default().to_text(Release::of(8));
    assert_eq!(
        none,
        "{\n  \"tvm_version\": \"0.1.0\", \n  \"func_info\": {}\n}"
    );
}
