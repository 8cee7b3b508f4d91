meta:
  id: tvm_relax_vm
  title: Apache TVM, Relax VM code
  file-extension: vmexec
  license: Apache-2.0
  endian: le
  encoding: UTF-8
  ks-version: 0.11
  imports:
    - tvm_wire
    - tvm_tensor
doc: |
  Chapter `payload` of the specification, PAY-82 to PAY-96. Before layout 0.22 a u64 length stands in front (PAY-81).
params:
  - id: layout
    type: u1
    doc: 7 for 0.16 to 0.20, 21, or 22 for 0.22 and later. The tags of constants differ, and nothing in the bytes says which.
seq:
  - id: magic
    size: 8
    valid:
      expr: |
        _ == [0x1d, 0x15, 0x14, 0x42, 0x2f, 0xde, 0x25, 0xd2]
        or (layout == 22 and _ == [0x1e, 0x15, 0x14, 0x42, 0x2f, 0xde, 0x25, 0xd2])
    doc: PAY-82
  - id: version
    type: tvm_wire::text
    valid:
      expr: _.content == "0.14"
    doc: PAY-83
  - id: functions
    type: functions
  - id: memory_scopes
    type: memory_scopes
    if: magic[0] == 0x1e
    doc: PAY-85
  - id: constants
    type: constants
  - id: instr_offset
    type: tvm_wire::i64s
    doc: PAY-88
  - id: instr_data
    type: tvm_wire::i64s
    doc: PAY-88
types:
  functions:
    seq:
      - id: num_items
        type: u8
      - id: items
        type: function
        repeat: expr
        repeat-expr: num_items
  function:
    doc: PAY-84
    seq:
      - id: kind
        type: s4
        valid:
          min: 0
          max: 2
        doc: 0 packed, 1 VM, 2 VMTIR
      - id: name
        type: tvm_wire::text
      - id: start
        type: s8
      - id: end
        type: s8
      - id: num_args
        type: s8
      - id: registers
        type: s8
      - id: params
        type: tvm_wire::texts
  memory_scopes:
    seq:
      - id: num_items
        type: u8
      - id: items
        type: memory_scope
        repeat: expr
        repeat-expr: num_items
  memory_scope:
    seq:
      - id: constant
        type: s8
      - id: scope
        type: tvm_wire::text
  constants:
    seq:
      - id: num_items
        type: u8
      - id: items
        type: constant
        repeat: expr
        repeat-expr: num_items
  constant:
    doc: PAY-86
    seq:
      - id: tag
        type: s4
        valid:
          expr: is_tensor or is_dtype or is_shape or is_text or is_int or is_float
      - id: body
        type: tvm_tensor
        if: is_tensor
      - id: dtype
        type: tvm_tensor::dtype
        if: is_dtype
      - id: shape
        type: tvm_wire::i64s
        if: is_shape
      - id: text
        type: tvm_wire::text
        if: is_text
      - id: int
        type: s8
        if: is_int
      - id: float
        type: f8
        if: is_float
    instances:
      is_tensor:
        value: 'tag == (_root.layout == 22 ? 70 : _root.layout == 21 ? 72 : 0)'
      is_dtype:
        value: 'tag == (_root.layout >= 21 ? 5 : 1)'
      is_shape:
        value: 'tag == (_root.layout == 22 ? 69 : _root.layout == 21 ? 71 : 2)'
      is_text:
        value: 'tag == (_root.layout >= 21 ? 65 : 3)'
      is_int:
        value: 'tag == (_root.layout >= 21 ? 1 : 4)'
      is_float:
        value: 'tag == (_root.layout >= 21 ? 3 : 5)'
