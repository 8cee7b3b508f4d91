meta:
  id: tvm_library
  title: Apache TVM, the library binary
  license: Apache-2.0
  endian: le
  encoding: UTF-8
  ks-version: 0.11
  imports:
    - tvm_wire
    - tvm_import_tree
    - tvm_payload
doc: |
  Chapter `blob` of the specification: the imported modules of a library, under one of the symbols of BLOB-50.
params:
  - id: layout
    type: u1
    doc: 2 for 0.2 to 0.6, 7 for 0.7 to 0.20, 21, or 22 for 0.22 and later. The symbol says which, else see BLOB-18.
  - id: form
    type: u1
    doc: The form of those modules whose kind has several in this layout, as in tvm_payload.
seq:
  - id: nbytes
    type: u8
    doc: BLOB-01
  - id: body
    size: nbytes
    type:
      switch-on: layout
      cases:
        22: framed
        _: streamed
  - id: trailing
    size-eos: true
    doc: BLOB-02
types:
  streamed:
    doc: Layouts 0.2, 0.7 and 0.21.
    seq:
      - id: count
        type: u8
        doc: BLOB-03
      - id: entry
        type: entry
        repeat: expr
        repeat-expr: count
      - id: trailing
        size-eos: true
        doc: BLOB-16
  entry:
    seq:
      - id: key
        type: tvm_wire::text
        doc: BLOB-04
      - id: body
        type:
          switch-on: key.content
          cases:
            '"_import_tree"': tvm_import_tree
            _: tvm_payload(key.content, _root.layout, _root.form, false)
        if: key.content != "_lib"
        doc: BLOB-05, BLOB-07
  framed:
    doc: Layout 0.22.
    seq:
      - id: body
        type: tvm_import_tree
        doc: BLOB-10
      - id: module
        type: module
        repeat: expr
        repeat-expr: body.indptr.num_items - 1
      - id: trailing
        size-eos: true
        doc: WIRE-08
  module:
    seq:
      - id: kind
        type: tvm_wire::text
        doc: BLOB-04
      - id: payload
        type: u8
        if: kind.content != "_lib"
        doc: BLOB-11
      - id: body
        size: payload
        type: tvm_payload(kind.content, _root.layout, _root.form, true)
        if: kind.content != "_lib" and payload != 0
