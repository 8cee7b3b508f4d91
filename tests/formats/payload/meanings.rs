//! The content of payloads by its meaning.

use super::{accepted, golden, read};
use tvmspec::payload::{
    self, Field, FunctionInfo, KindInfo, Network, Shader, StackVm, relax_vm, relay_vm,
};
use tvmspec::release::Layout;

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

/// Returns the field of a golden that `choose` selects.
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
