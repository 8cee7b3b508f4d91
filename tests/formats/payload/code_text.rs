//! Code of both VMs as text.

use tvmspec::payload::relax_vm::{
    FunctionKind, RelaxConstant, RelaxExecutable, RelaxFunction, VOID_REGISTER,
};
use tvmspec::payload::relay_vm::{
    OPCODES, RelayExecutable, RelayFunction, RelayInstruction, VirtualDevice,
};
use tvmspec::rule::Findings;
use tvmspec::tensor::Device;
use tvmspec::vm::Executable;
use tvmspec::wire::{Cursor, Writer};

/// Creates one function of these instructions, which calls one primitive.
fn executable(version: &str, names: [&str; 3], code: &[(i64, &[i64])]) -> RelayExecutable<'static> {
    let [function, param, primitive] = names.map(str::to_owned);
    let code = code.iter().map(|(opcode, fields)| RelayInstruction {
        opcode: *opcode,
        fields: fields.to_vec(),
    });
    RelayExecutable {
        version: version.to_owned().into(),
        virtual_devices: vec![VirtualDevice {
            device: Device { kind: 1, id: 0 },
            scope: "".into(),
        }],
        host_device: 0,
        globals: vec![function.clone().into()],
        constants: Vec::new(),
        constant_devices: Vec::new(),
        primitives: vec![primitive.into()],
        primitive_attrs: Vec::new(),
        functions: vec![RelayFunction {
            name: function.into(),
            registers: 9,
            params: vec![param.into()],
            param_devices: vec![0],
            code: code.collect(),
        }],
    }
}

#[test]
fn the_size_of_a_storage_is_a_register_where_no_shape_is() {
    let plain: &[i64] = &[3, 64, 2, 32, 1, 0, 0, 4];
    let shaped: &[i64] = &[77, 64, 2, 32, 1, 0, 2, 4, 8, 16];
    let made = executable(
        "0.14.0",
        ["main", "x", "add"],
        &[(16, plain), (16, shaped), (15, &[]), (1, &[4])],
    );
    // PAY-75 accepts both.
    let mut out = Writer::new();
    assert_eq!(made.write(&mut out), Ok(()));
    let bytes = out.into_bytes();
    let mut findings = Findings::default();
    let read = RelayExecutable::read(&mut Cursor::new(&bytes), &mut findings);
    assert_eq!(
        read.map(|read| read.disassemble()).as_deref(),
        Ok(
            "function main(x), 9 registers\n    0  %4 = AllocStorage size %3, alignment 64, float32, device 0\n    1  %4 = AllocStorage alignment 64, float32, device 0, shape [8, 16]\n    2  Fatal\n    3  Ret %4\npacked add\n"
        )
    );
}

#[test]
fn no_name_makes_a_line_of_its_own() {
    let names = ["ma\nin", "x\r", "f\n    6  Ret %0"];
    let call: &[i64] = &[0, 1, 0, 0];
    let made = executable("0.6.0", names, &[(4, call), (2, &[0, 0, 1]), (1, &[1])]);
    assert_eq!(
        made.disassemble(),
        "function ma\\nin(x\\r), 9 registers\n    0  InvokePacked f\\n    6  Ret %0, %0\n    1  %1 = Invoke @ma\\nin\n    2  Ret %1\npacked f\\n    6  Ret %0\n"
    );
}

#[test]
fn a_name_is_whole_once_and_cut_between_characters_elsewhere() {
    let call: &[i64] = &[0, 1, 0, 0];
    let lengths = |name: &str| -> Vec<usize> {
        let made = executable("0.6.0", ["main", "x", name], &[(4, call); 3]);
        made.disassemble().lines().map(str::len).collect()
    };
    assert_eq!(lengths(&"f".repeat(1000)), [29, 224, 224, 224, 1007]);
    assert_eq!(lengths(&"é".repeat(101)), [29, 224, 224, 224, 209]);
    assert_eq!(
        lengths(&format!("x{}", "\u{1f600}".repeat(60))),
        [29, 221, 221, 221, 248]
    );
}

#[test]
fn each_field_has_a_name() {
    for row in OPCODES {
        assert_eq!(row.fields.len(), row.names.len(), "{}", row.name);
    }
}

#[test]
fn the_hash_is_that_of_a_real_instruction() {
    let load = RelayInstruction {
        opcode: 11,
        fields: vec![0, 1],
    };
    assert_eq!(load.hash(), 0x28_cd93_08a6);
    let ret = RelayInstruction {
        opcode: 1,
        fields: vec![4],
    };
    assert_eq!(ret.hash(), 2_654_435_836);
}

/// Creates `main` with one call of function 1, which has these operands, and a return.
fn calling<'a>(name: &'a str, operands: &[u64], kind: FunctionKind) -> RelaxExecutable<'a> {
    let function = |kind, name: &'a str, params: &[&'a str]| RelaxFunction {
        kind,
        name: name.into(),
        start: 0,
        end: 2,
        num_args: 1,
        registers: 2,
        params: params.iter().map(|name| (*name).into()).collect(),
    };
    // PAY-88: opcode, destination, function, number of operands, the operands; then a ret of register 0.
    let mut words = vec![1, VOID_REGISTER.cast_unsigned(), 1, operands.len() as u64];
    words.extend_from_slice(operands);
    let behind = words.len() as u64;
    words.extend([2, 0]);
    RelaxExecutable {
        functions: vec![
            function(FunctionKind::Vm, "main", &[name]),
            function(kind, name, &[]),
        ],
        offsets: [0, behind].as_slice().into(),
        words: words.as_slice().into(),
        ..RelaxExecutable::default()
    }
}

fn lines(code: RelaxExecutable<'_>) -> Vec<String> {
    let text = Executable::new(code).unwrap().disassemble();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn no_name_of_relax_code_makes_a_line_of_its_own() {
    // PAY-89: kind 3, a function, in the top byte, and its number 1 below.
    let mut code = calling("f\n    6  return %0", &[3 << 56 | 1], FunctionKind::Packed);
    code.constants = vec![RelaxConstant::Int(1)];
    assert_eq!(
        lines(code),
        [
            "constants",
            "  c0 = 1",
            "function main(f\\n    6  return %0), 2 registers",
            "    0  f\\n    6  return %0(@f\\n    6  return %0)",
            "    1  return %0",
            "packed f\\n    6  return %0",
        ]
    );
}

#[test]
fn an_operand_repeats_a_name_up_to_200_bytes() {
    let name = "\u{1f600}".repeat(1000);
    let code = calling(&name, &[3 << 56 | 1; 10], FunctionKind::Packed);
    let text = lines(code).swap_remove(1);
    // 200 bytes are 50 characters, of the callee and of each of ten operands.
    assert_eq!(text.matches('\u{1f600}').count(), 550);
}

#[test]
fn a_compiled_function_repeats_no_code() {
    let code = calling("add", &[0], FunctionKind::VmTir);
    assert_eq!(
        lines(code),
        [
            "function main(add), 2 registers",
            "    0  add(%0)",
            "    1  return %0",
            "compiled add(), 2 registers",
        ]
    );
}
