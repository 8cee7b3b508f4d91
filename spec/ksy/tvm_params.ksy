meta:
  id: tvm_params
  title: Apache TVM, a parameter file
  file-extension: params
  license: Apache-2.0
  endian: le
  encoding: UTF-8
  ks-version: 0.11
  imports:
    - tvm_wire
    - tvm_tensor
doc: Chapter `tensor` of the specification, TEN-40 to TEN-45.
seq:
  - id: magic
    contents: [0xb7, 0x9c, 0x04, 0x05, 0x4f, 0x8d, 0xe5, 0xf7]
    doc: TEN-40
  - id: reserved
    type: u8
    doc: TEN-42
  - id: names
    type: tvm_wire::texts
    doc: TEN-41
  - id: count
    type: u8
    valid: names.num_items
    doc: TEN-43
  - id: tensor
    type: tvm_tensor
    repeat: expr
    repeat-expr: count
