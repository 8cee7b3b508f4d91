"""Times the VM of the installed apache-tvm, in seconds: `vm.py CHAIN.so CONSTANTS.vmexec`, for benches/vm.rs."""

import sys
import time
import numpy as np
import tvm
import tvm_ffi
from tvm import relax


def fastest(runs, body):
    body()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        body()
        times.append(time.perf_counter() - start)
    return min(times)


machine = relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
value = tvm.runtime.tensor(np.zeros(4, "float32"))
main = machine["main"]
print("chain", fastest(200, lambda: main(value)))

load_file = tvm_ffi.get_global_func("ffi.Module.load_from_file.relax.VMExecutable")


def load():
    module = load_file(sys.argv[2])
    module.get_function("vm_load_executable")().get_function("vm_initialization")(1, 0, 2)


print("load", fastest(5, load))
