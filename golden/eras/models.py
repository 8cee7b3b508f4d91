"""Artifacts of models, by each executor and machine."""

import os
import pathlib

import numpy as np
import tvm

from release import HOST, LINK, array, module, relax, relay, save


def perceptron():
    rng = np.random.RandomState(7)
    x, w1, b1, w2 = (relay.var(name, shape=shape) for name, shape in
                     (("x", (1, 16)), ("w1", (32, 16)), ("b1", (32,)), ("w2", (10, 32))))
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, w1), b1))
    y = relay.nn.softmax(relay.nn.dense(y, w2))
    weights = {name: array(rng.randn(*shape).astype("float32")) for name, shape in (("w1", (32, 16)), ("b1", (32,)), ("w2", (10, 32)))}
    mod = tvm.IRModule.from_expr(relay.Function([x, w1, b1, w2], y))
    return mod, weights, {"x": rng.randn(1, 16).astype("float32")}


def needs_relay():
    if relay is None:
        raise NotImplementedError("Relay was removed in 0.20")


def record(name, inputs, outputs):
    kept = {"in_" + key: value for key, value in inputs.items()}
    kept.update({f"out_{index}": output.numpy() for index, output in enumerate(outputs)})
    np.savez(name + ".io.npz", **kept)
    return name + ".io.npz"


def model(name, built, inputs):
    from tvm.contrib import graph_executor

    library = save(built, name + ".so")
    machine = graph_executor.GraphModule(tvm.runtime.load_module(os.path.abspath(library))["default"](tvm.cpu()))
    for key, value in inputs.items():
        machine.set_input(key, value)
    machine.run()
    outputs = [machine.get_output(index) for index in range(machine.get_num_outputs())]
    return [library], {"how": "run", "library": library, "io": record(name, inputs, outputs)}


def graph():
    """A model for the graph executor: one library, and graph, parameters and kernels apart"""
    needs_relay()
    mod, weights, inputs = perceptron()
    with tvm.transform.PassContext(opt_level=3):
        built = relay.build(mod, target=tvm.target.Target(HOST), params=weights)
    files, run = model("graph", built, inputs)
    pathlib.Path("graph.json").write_text(built.get_graph_json())
    pathlib.Path("graph.params").write_bytes(relay.save_param_dict(built.get_params()))
    return files + ["graph.json", "graph.params", save(built.get_lib(), "graph-kernels.so")], run


def aot():
    """A model for the AOT executor"""
    needs_relay()
    mod, weights, inputs = perceptron()
    executor = relay.backend.Executor("aot", {"interface-api": "packed", "unpacked-api": False})
    with tvm.transform.PassContext(opt_level=3):
        built = relay.build(mod, target=tvm.target.Target(HOST), params=weights, executor=executor)
    save(built, "aot.so")
    machine = tvm.runtime.executor.AotModule(tvm.runtime.load_module(os.path.abspath("aot.so"))["default"](tvm.cpu()))
    for key, value in inputs.items():
        machine.set_input(key, array(value))
    machine.run()
    record("aot", inputs, [machine.get_output(0)])
    return ["aot.so"], None


def relay_vm():
    """A Relay VM executable: in a library, and the bytecode apart"""
    needs_relay()
    from tvm.runtime.vm import VirtualMachine

    mod, weights, inputs = perceptron()
    with tvm.transform.PassContext(opt_level=3):
        built = relay.vm.compile(mod, target=tvm.target.Target(HOST), params=weights)
    code, _ = built.save()
    pathlib.Path("relay-vm.ro").write_bytes(code)
    save(built.mod, "relay-vm.so")
    machine = VirtualMachine(tvm.runtime.load_module(os.path.abspath("relay-vm.so")), tvm.cpu())
    record("relay-vm", inputs, [machine.run(*(array(value) for value in inputs.values()))])
    return ["relay-vm.so", "relay-vm.ro"], None


def relax_vm():
    """A Relax VM executable: in a library, and the bytecode apart"""
    if relax is None:
        raise NotImplementedError("Relax comes with 0.16")
    rng = np.random.RandomState(5)
    builder = relax.BlockBuilder()
    info = getattr(relax, "TensorStructInfo", None) or relax.TensorType
    x = relax.Var("x", info((2, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            weight = relax.const(rng.randn(4, 3).astype("float32"))
            y = builder.emit(relax.op.nn.relu(relax.op.matmul(x, weight)))
            z = builder.emit(relax.op.add(y, relax.const(np.ones((2, 3), "float32"))))
            out = builder.emit_output(relax.Tuple([y, z]))
        builder.emit_func_output(out)
    make = tvm.compile if hasattr(tvm, "compile") else relax.build
    built = make(builder.get(), target=tvm.target.Target(HOST))
    built.export_library("relax-vm.so", **LINK)
    mod = module(built)
    if hasattr(mod, "write_to_file"):
        mod.write_to_file("relax-vm.vmexec", "")
    else:
        mod.save("relax-vm.vmexec")
    inputs = {"x": rng.randn(2, 4).astype("float32")}
    machine = relax.VirtualMachine(tvm.runtime.load_module(os.path.abspath("relax-vm.so")), tvm.cpu())
    outputs = list(machine["main"](array(inputs["x"])))
    return ["relax-vm.so", "relax-vm.vmexec"], {"how": "run", "library": "relax-vm.so", "io": record("relax-vm", inputs, outputs)}
