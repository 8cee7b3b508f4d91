meta:
  id: tvm_payload
  title: Apache TVM, what a module stores of itself in a library
  license: Apache-2.0
  endian: le
  encoding: UTF-8
  ks-version: 0.11
  imports:
    - tvm_wire
    - tvm_tensor
    - tvm_relay_vm
    - tvm_relax_vm
doc: |
  Chapter `payload` of the specification. The bytes say neither their kind nor their form: a caller does.
params:
  - id: kind
    type: str
    doc: The kind of the module, such as `cuda`; `type_key` before 0.22.
  - id: layout
    type: u1
    doc: 2 for 0.2 to 0.6, 7 for 0.7 to 0.20, 21, or 22 for 0.22 and later.
  - id: form
    type: u1
    doc: |
      Which form, for kinds that have several in a layout: metal 2, 13 or 24, opencl 2 or 13, vulkan 3 or 24, ethos-n 7 or 10,
      mrvl_sim 16 or 17. Another number is the next lower one of the kind, or the lowest; for opencl it is 2.
  - id: is_window
    type: bool
    doc: Whether the stream is the payload. Otherwise it goes on behind it, as it does in libraries before layout 0.22.
seq:
  - id: body
    type:
      switch-on: kind
      cases:
        '"cuda"': device_code
        '"hip"': device_code
        '"hsaco"': device_code
        '"hexagon"': device_code
        '"hex"': device_code
        '"nki"': device_code
        '"sdaccel"': device_code
        '"aocl"': device_code
        '"opencl"': opencl
        '"metal"': metal
        '"vulkan"': vulkan
        '"webgpu"': webgpu
        '"opengl"': opengl
        '"c"': c_source
        '"static_library"': static_library
        '"metadata"': constants
        '"const_loader"': constants
        '"metadata_module"': nothing
        '"GraphRuntimeFactory"': graph_factory
        '"GraphExecutorFactory"': graph_factory
        '"AotExecutorFactory"': aot_factory
        '"VMExecutable"': relay_executable
        '"relax.Executable"': relax_executable
        '"relax.VMExecutable"': relax_executable
        '"stackvm"': stackvm
        '"dnnl_json"': json_runtime
        '"arm_compute_lib"': json_runtime
        '"tensorrt"': json_runtime
        '"bnns_json"': json_runtime
        '"verilator"': json_runtime
        '"clml"': json_runtime
        '"cublas_json"': json_runtime
        '"cudnn_json"': json_runtime
        '"msc_tensorrt"': json_runtime
        '"nnapi"': json_runtime
        '"hipblas_json"': json_runtime
        '"example_npu_json"': json_runtime
        '"examplejson"': example_json
        '"coreml"': coreml
        '"ethos-n"': ethos_n
        '"VitisAIRuntime"': vitis_ai
        '"torch"': torch
        '"mrvl_sim"': mrvl_sim
        '"mrvl_hw"': mrvl_hw
        _: opaque
  - id: trailing
    size-eos: true
    if: is_window
    doc: WIRE-08
types:
  nothing: {}
  opaque:
    doc: PAY-01. Only layout 0.22, which states the length, can carry a kind of which nothing is known.
    seq:
      - id: payload
        size-eos: true
        valid:
          expr: _root.is_window and _root.layout == 22
  word:
    doc: PAY-11. One word, of which the length is looked at here.
    seq:
      - id: num_bytes
        type: u8
        valid:
          min: 1
      - id: content
        type: str
        size: num_bytes
        valid:
          expr: _.substring(0, 1) > " "
  version:
    doc: PAY-17
    seq:
      - id: num_bytes
        type: u8
        valid:
          min: 1
      - id: content
        type: str
        size: num_bytes
        valid:
          expr: _.substring(0, 1) == "." or (_.substring(0, 1) >= "0" and _.substring(0, 1) <= "9")
  dtypes:
    seq:
      - id: num_items
        type: u8
      - id: items
        type: tvm_tensor::named_dtype
        repeat: expr
        repeat-expr: num_items
  function_map:
    doc: PAY-02
    params:
      - id: is_silent
        type: bool
        doc: Whether no release that writes this form repeats the name of a function (PAY-07, PAY-09).
    seq:
      - id: num_items
        type: u8
      - id: items
        type: function(is_silent)
        repeat: expr
        repeat-expr: num_items
  function:
    params:
      - id: is_silent
        type: bool
    seq:
      - id: key
        type: tvm_wire::text
      - id: name
        type: tvm_wire::text
        valid:
          expr: not is_silent or _.num_bytes == 0
        doc: PAY-07
      - id: arg_types
        type: dtypes
      - id: launch_param_tags
        type: tvm_wire::texts
        doc: PAY-05, PAY-06
      - id: arg_extra_tags
        type: tvm_wire::i32s
        if: _root.layout >= 21
        doc: PAY-03
  kernel_map:
    seq:
      - id: num_items
        type: u8
      - id: items
        type: kernel
        repeat: expr
        repeat-expr: num_items
  kernel:
    seq:
      - id: name
        type: tvm_wire::text
      - id: code
        type: tvm_wire::octets
  shader_map:
    params:
      - id: is_framed
        type: bool
    seq:
      - id: num_items
        type: u8
      - id: items
        type: shader_entry(is_framed)
        repeat: expr
        repeat-expr: num_items
  shader_entry:
    params:
      - id: is_framed
        type: bool
    seq:
      - id: name
        type: tvm_wire::text
      - id: shader
        type: u8
        if: is_framed
        doc: PAY-15
      - id: body
        type: shader
        if: not is_framed
      - id: body_framed
        size: shader
        type: whole_shader
        if: is_framed
  shader:
    doc: PAY-14
    seq:
      - id: flags
        type: u4
      - id: spirv
        type: tvm_wire::u32s
  whole_shader:
    seq:
      - id: body
        type: shader
      - id: trailing
        size-eos: true
        valid:
          expr: _.length == 0
        doc: PAY-15
  device_code:
    doc: PAY-10
    seq:
      - id: format
        type: word
      - id: functions
        type: function_map(false)
      - id: data
        type: tvm_wire::octets
  silent_device_code:
    doc: PAY-10
    seq:
      - id: format
        type: word
      - id: functions
        type: function_map(true)
      - id: data
        type: tvm_wire::octets
  opencl:
    seq:
      - id: body
        type:
          switch-on: _root.form
          cases:
            13: opencl_0_13
            _: device_code
  opencl_0_13:
    doc: PAY-13
    seq:
      - id: functions
        type: function_map(true)
      - id: shaders
        type: shader_map(false)
  metal:
    seq:
      - id: body
        type:
          switch-on: '_root.form >= 24 ? 24 : _root.form >= 13 ? 13 : 2'
          cases:
            24: metal_0_24
            13: metal_0_13
            2: silent_device_code
  metal_0_13:
    doc: PAY-16
    seq:
      - id: version
        type: version
      - id: kernels
        type: kernel_map
      - id: functions
        type: function_map(true)
      - id: format
        type: word
  metal_0_24:
    doc: PAY-18
    seq:
      - id: format
        type: word
      - id: functions
        type: function_map(false)
      - id: kernels
        type: kernel_map
  vulkan:
    doc: PAY-19
    seq:
      - id: format
        type: word
      - id: functions
        type: function_map(_root.form < 24)
      - id: shaders
        type: shader_map(_root.form >= 24)
  webgpu:
    doc: PAY-20
    seq:
      - id: functions
        type: function_map(false)
      - id: kernels
        type: kernel_map
  opengl:
    doc: PAY-21
    seq:
      - id: format
        type: word
      - id: functions
        type: function_map(false)
      - id: shaders_json
        type: tvm_wire::text
  c_source:
    doc: PAY-30
    seq:
      - id: code
        type: tvm_wire::octets
      - id: format
        type: tvm_wire::text
      - id: function_names
        type: tvm_wire::texts
      - id: const_vars
        type: tvm_wire::texts
  static_library:
    doc: PAY-32
    seq:
      - id: object
        type: tvm_wire::octets
      - id: function_names
        type: tvm_wire::texts
  constants:
    doc: PAY-34
    seq:
      - id: variables
        type: tvm_wire::texts
      - id: variable_count
        type: u8
        valid: variables.num_items
        doc: PAY-35
      - id: tensors
        type: tvm_tensor
        repeat: expr
        repeat-expr: variable_count
      - id: symbols
        type: tvm_wire::texts
      - id: symbol_count
        type: u8
        valid: symbols.num_items
        doc: PAY-35
      - id: symbol_variables
        type: symbol_variables
        repeat: expr
        repeat-expr: symbol_count
  symbol_variables:
    seq:
      - id: variables
        type: tvm_wire::texts
  parameters:
    doc: PAY-40, PAY-42
    seq:
      - id: param_count
        type: u8
      - id: param_names
        type: tvm_wire::texts
        valid:
          expr: _.num_items == param_count
      - id: params
        type: tvm_tensor
        repeat: expr
        repeat-expr: param_count
  graph_factory:
    doc: PAY-40
    seq:
      - id: graph_json
        type: tvm_wire::text
      - id: body
        type: parameters
      - id: module_name
        type: tvm_wire::text
  aot_factory:
    doc: PAY-41
    seq:
      - id: body
        type: parameters
      - id: module_name
        type: tvm_wire::text
  relay_executable:
    doc: PAY-60
    seq:
      - id: code
        type: u8
      - id: body
        size: code
        type: relay_window
  relay_window:
    seq:
      - id: body
        type: tvm_relay_vm
      - id: trailing
        size-eos: true
  relax_executable:
    doc: PAY-81
    seq:
      - id: code
        type: u8
        if: _root.layout < 22
      - id: body
        size: code
        type: relax_window
        if: _root.layout < 22
      - id: body_alone
        type: tvm_relax_vm(22)
        if: _root.layout == 22
  relax_window:
    seq:
      - id: body
        type: tvm_relax_vm(_root.layout)
      - id: trailing
        size-eos: true
  stackvm:
    doc: PAY-55
    seq:
      - id: functions
        type: stackvm_functions
      - id: entry
        type: tvm_wire::text
      - id: imports
        type: stackvm_imports
  stackvm_functions:
    seq:
      - id: num_items
        type: u8
      - id: items
        type: stackvm_function
        repeat: expr
        repeat-expr: num_items
  stackvm_function:
    doc: PAY-56
    seq:
      - id: name
        type: tvm_wire::text
      - id: code
        type: tvm_wire::i32s
      - id: texts
        type: tvm_wire::texts
      - id: extern_functions
        type: tvm_wire::texts
      - id: heap_names
        type: tvm_wire::texts
      - id: heap_size
        type: u8
      - id: stack_size
        type: u8
  stackvm_imports:
    doc: PAY-57
    seq:
      - id: num_items
        type: u8
      - id: items
        type: stackvm_import
        repeat: expr
        repeat-expr: num_items
  stackvm_import:
    seq:
      - id: kind
        type: tvm_wire::text
        valid:
          expr: _.content != "stackvm"
      - id: body
        type: tvm_payload(kind.content, _root.layout, _root.form, false)
  json_runtime:
    doc: PAY-45
    seq:
      - id: symbol
        type: tvm_wire::text
      - id: graph_json
        type: tvm_wire::text
      - id: const_names
        type: tvm_wire::texts
  example_json:
    doc: PAY-46
    seq:
      - id: graph_json
        type: tvm_wire::text
  coreml:
    doc: PAY-47
    seq:
      - id: symbol
        type: tvm_wire::text
      - id: model
        type: tvm_wire::octets
  ethos_n:
    doc: PAY-48
    seq:
      - id: networks
        type: networks
  networks:
    seq:
      - id: num_items
        type: u8
      - id: items
        type: network
        repeat: expr
        repeat-expr: num_items
  network:
    seq:
      - id: name
        type: tvm_wire::text
      - id: compiled
        type: tvm_wire::octets
      - id: inputs
        type: tvm_wire::u32s
        valid:
          expr: _.num_items > 0
        doc: PAY-49
      - id: input_sizes
        type: u4
        repeat: expr
        repeat-expr: inputs.num_items
        if: _root.form >= 10
      - id: outputs
        type: tvm_wire::u32s
        valid:
          expr: _.num_items > 0
        doc: PAY-49
      - id: output_sizes
        type: u4
        repeat: expr
        repeat-expr: outputs.num_items
        if: _root.form >= 10
  vitis_ai:
    doc: PAY-50
    seq:
      - id: runtime_module
        type: tvm_wire::octets
      - id: export_path
        type: tvm_wire::text
      - id: symbol
        type: tvm_wire::text
      - id: const_names
        type: tvm_wire::texts
  torch:
    doc: PAY-51
    seq:
      - id: symbol
        type: tvm_wire::text
      - id: archive
        type: tvm_wire::octets
  mrvl_sim:
    doc: PAY-52
    seq:
      - id: symbol
        type: tvm_wire::text
      - id: nodes_json
        type: tvm_wire::text
      - id: binary
        type: tvm_wire::text
        if: _root.form >= 17
        doc: PAY-98
  mrvl_hw:
    doc: PAY-53
    seq:
      - id: symbol
        type: tvm_wire::text
      - id: nodes_json
        type: tvm_wire::text
      - id: binary
        type: tvm_wire::octets
      - id: inputs
        type: s4
      - id: outputs
        type: s4
      - id: batches
        type: s4
