meta:
  id: tvm_relay_vm
  title: Apache TVM, Relay VM code
  license: Apache-2.0
  endian: le
  encoding: UTF-8
  ks-version: 0.11
  imports:
    - tvm_wire
    - tvm_tensor
doc: |
  Chapter `payload` of the specification, PAY-61 to PAY-77: what `save` of 0.6 to 0.19 returns. A module of kind `VMExecutable`
  has a u64 length in front (PAY-60).
seq:
  - id: magic
    contents: [0x1d, 0x15, 0x14, 0x42, 0x2f, 0xde, 0x25, 0xd2]
    doc: PAY-61
  - id: version
    type: tvm_wire::text
    valid:
      expr: _.content.substring(0, 2) == "0."
    doc: PAY-62
  - id: virtual_devices
    type: virtual_devices
    if: minor >= 9
    doc: PAY-64
  - id: host_device
    type: s4
    if: minor >= 9
    doc: PAY-65
  - id: globals
    type: tvm_wire::texts
    doc: PAY-63
  - id: constants
    type: constants
    doc: PAY-66
  - id: constant_devices
    type: tvm_wire::i64s
    if: minor >= 7
    valid:
      expr: _.num_items == constants.num_items
    doc: PAY-67
  - id: primitives
    type: tvm_wire::texts
    doc: PAY-68
  - id: primitive_attrs
    type: primitive_attrs
    if: minor >= 8
    doc: PAY-68
  - id: functions
    type: functions
instances:
  minor:
    value: 'version.content.substring(3, 4) == "." ? version.content.substring(2, 3).to_i : version.content.substring(2, 4).to_i'
    doc: The release that wrote the code, without its 0.
types:
  virtual_devices:
    seq:
      - id: num_items
        type: u8
      - id: items
        type: virtual_device
        repeat: expr
        repeat-expr: num_items
  virtual_device:
    seq:
      - id: device
        type: tvm_tensor::device
      - id: scope
        type: tvm_wire::text
        if: _root.minor >= 14
  constants:
    seq:
      - id: num_items
        type: u8
      - id: items
        type: constant
        repeat: expr
        repeat-expr: num_items
  constant:
    seq:
      - id: tag
        type: u4
        valid:
          max: 1
        if: _root.minor >= 9
      - id: body
        type: tvm_tensor
        if: not is_late
      - id: late
        type: tvm_wire::text
        if: is_late
    instances:
      is_late:
        value: '_root.minor >= 9 ? tag == 1 : false'
  primitive_attrs:
    seq:
      - id: num_items
        type: u8
      - id: items
        type: primitive_attr
        repeat: expr
        repeat-expr: num_items
  primitive_attr:
    seq:
      - id: primitive
        type: u8
      - id: attrs
        type: attrs
  attrs:
    seq:
      - id: num_items
        type: u8
      - id: items
        type: attr
        repeat: expr
        repeat-expr: num_items
  attr:
    seq:
      - id: key
        type: tvm_wire::text
      - id: value
        type: tvm_wire::text
  functions:
    seq:
      - id: num_items
        type: u8
      - id: items
        type: function
        repeat: expr
        repeat-expr: num_items
  function:
    seq:
      - id: info
        type: u8
        valid: 3
        doc: PAY-69
      - id: name
        type: tvm_wire::text
      - id: registers
        type: tvm_wire::text
      - id: instructions
        type: tvm_wire::text
        doc: In decimal.
      - id: params
        type: tvm_wire::texts
        doc: PAY-70
      - id: param_devices
        type: tvm_wire::i64s
        if: _root.minor >= 7
        valid:
          expr: _.num_items == params.num_items
      - id: code
        type: instruction
        repeat: expr
        repeat-expr: instructions.content.to_i
  instruction:
    doc: PAY-71
    seq:
      - id: words
        type: u8
        valid:
          min: 2
      - id: hash
        type: u8
      - id: opcode
        type: s8
        doc: PAY-72
      - id: fields
        type: s8
        repeat: expr
        repeat-expr: words - 2
        doc: PAY-73
