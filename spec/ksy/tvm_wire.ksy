meta:
  id: tvm_wire
  title: Apache TVM, values that every binary format is made of
  license: Apache-2.0
  endian: le
  encoding: UTF-8
  ks-version: 0.11
doc: |
  Chapter `wire` of the specification. Nothing stands between values, and nothing in front of one says what it is.

  Names are those of the specification. What has none there, because it is a part of the value itself, is called `num_bytes`,
  `content`, `num_items`, `items`, or something that begins with `body`.
params:
  - id: kind
    type: str
    doc: What the file is. A wire value alone says nothing of its type.
seq:
  - id: value
    type:
      switch-on: kind
      cases:
        '"u8"': plain_u8
        '"u16"': plain_u16
        '"u32"': plain_u32
        '"u64"': plain_u64
        '"i32"': plain_i32
        '"i64"': plain_i64
        '"f64"': plain_f64
        '"bool"': plain_bool
        '"string"': text
        '"bytes"': octets
        '"vector<u8>"': u8s
        '"vector<u16>"': u16s
        '"vector<u32>"': u32s
        '"vector<u64>"': u64s
        '"vector<i32>"': i32s
        '"vector<i64>"': i64s
        '"vector<string>"': texts
        '"map<string,vector<string>>"': map_of_texts
        '"map<string,u64>"': map_of_u64
        '"map<u8,u8>"': map_of_u8
  - id: trailing
    size-eos: true
    doc: WIRE-08
types:
  plain_u8:
    seq:
      - id: content
        type: u1
        doc: WIRE-02
  plain_u16:
    seq:
      - id: content
        type: u2
        doc: WIRE-02
  plain_u32:
    seq:
      - id: content
        type: u4
        doc: WIRE-02
  plain_u64:
    seq:
      - id: content
        type: u8
        doc: WIRE-02
  plain_i32:
    seq:
      - id: content
        type: s4
        doc: WIRE-02
  plain_i64:
    seq:
      - id: content
        type: s8
        doc: WIRE-02
  plain_f64:
    seq:
      - id: content
        type: f8
        doc: WIRE-02
  plain_bool:
    seq:
      - id: content
        type: u1
        valid:
          max: 1
        doc: WIRE-03
  text:
    doc: WIRE-04, WIRE-05
    seq:
      - id: num_bytes
        type: u8
      - id: content
        type: str
        size: num_bytes
  octets:
    doc: WIRE-04
    seq:
      - id: num_bytes
        type: u8
      - id: content
        size: num_bytes
  texts:
    doc: WIRE-06
    seq:
      - id: num_items
        type: u8
      - id: items
        type: text
        repeat: expr
        repeat-expr: num_items
  u8s:
    doc: WIRE-06
    seq:
      - id: num_items
        type: u8
      - id: items
        type: u1
        repeat: expr
        repeat-expr: num_items
  u16s:
    doc: WIRE-06
    seq:
      - id: num_items
        type: u8
      - id: items
        type: u2
        repeat: expr
        repeat-expr: num_items
  u32s:
    doc: WIRE-06
    seq:
      - id: num_items
        type: u8
      - id: items
        type: u4
        repeat: expr
        repeat-expr: num_items
  u64s:
    doc: WIRE-06
    seq:
      - id: num_items
        type: u8
      - id: items
        type: u8
        repeat: expr
        repeat-expr: num_items
  i32s:
    doc: WIRE-06
    seq:
      - id: num_items
        type: u8
      - id: items
        type: s4
        repeat: expr
        repeat-expr: num_items
  i64s:
    doc: WIRE-06
    seq:
      - id: num_items
        type: u8
      - id: items
        type: s8
        repeat: expr
        repeat-expr: num_items
  map_of_texts:
    doc: WIRE-07
    seq:
      - id: num_items
        type: u8
      - id: items
        type: entry_of_texts
        repeat: expr
        repeat-expr: num_items
  entry_of_texts:
    seq:
      - id: key
        type: text
      - id: item
        type: texts
  map_of_u64:
    doc: WIRE-07
    seq:
      - id: num_items
        type: u8
      - id: items
        type: entry_of_u64
        repeat: expr
        repeat-expr: num_items
  entry_of_u64:
    seq:
      - id: key
        type: text
      - id: item
        type: u8
  map_of_u8:
    doc: WIRE-07
    seq:
      - id: num_items
        type: u8
      - id: items
        type: entry_of_u8
        repeat: expr
        repeat-expr: num_items
  entry_of_u8:
    seq:
      - id: key
        type: u1
      - id: item
        type: u1
