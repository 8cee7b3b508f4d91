meta:
  id: tvm_tensor
  title: Apache TVM, a stored tensor
  license: Apache-2.0
  endian: le
  ks-version: 0.11
doc: |
  Chapter `tensor` of the specification: one record. How many bytes a shape stands for is not looked at: that differs by release
  (TEN-29 to TEN-31).
seq:
  - id: magic
    contents: [0x3f, 0xa1, 0xb4, 0x96, 0xf0, 0x40, 0x5e, 0xdd]
    doc: TEN-20
  - id: reserved
    type: u8
    doc: TEN-22
  - id: device
    type: device
    doc: TEN-23, TEN-24
  - id: ndim
    type: s4
    valid:
      min: 0
    doc: TEN-25
  - id: dtype
    type: dtype
  - id: shape
    type: s8
    repeat: expr
    repeat-expr: ndim
    doc: TEN-26
  - id: data_byte_size
    type: s8
    valid:
      min: 0
    doc: TEN-29, TEN-30, TEN-31
  - id: data
    size: data_byte_size
    doc: TEN-32
types:
  device:
    doc: TEN-10
    seq:
      - id: type
        type: s4
      - id: id
        type: s4
  dtype:
    doc: TEN-01
    seq:
      - id: code
        type: u1
      - id: bits
        type: u1
      - id: lanes
        type: u2
  named_dtype:
    doc: A dtype that is an element.
    seq:
      - id: dtype
        type: dtype
