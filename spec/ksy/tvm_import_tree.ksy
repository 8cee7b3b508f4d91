meta:
  id: tvm_import_tree
  title: Apache TVM, which module of a library imports which
  license: Apache-2.0
  endian: le
  ks-version: 0.11
  imports:
    - tvm_wire
doc: |
  Chapter `import_tree` of the specification (TREE-01): compressed sparse rows. Module i imports the modules
  `indices[indptr[i]]` up to, but not including, `indices[indptr[i + 1]]`.
seq:
  - id: indptr
    type: tvm_wire::u64s
  - id: indices
    type: tvm_wire::u64s
