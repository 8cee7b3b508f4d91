"""Compiles kernels.cu to PTX with NVRTC. Needs: pip install nvidia-cuda-nvrtc-cu12==12.8.93. No GPU.
Run: python3 make.py"""
import ctypes
import glob
import os
import site

here = os.path.dirname(os.path.abspath(__file__))
paths = [p for root in site.getsitepackages() for p in glob.glob(os.path.join(root, "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"))]
nvrtc = ctypes.CDLL(paths[0])


def check(code):
    assert code == 0, f"NVRTC error {code}"


program = ctypes.c_void_p()
source = open(os.path.join(here, "kernels.cu"), "rb").read()
check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None))
options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_75")
check(nvrtc.nvrtcCompileProgram(program, 1, options))
size = ctypes.c_size_t()
check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)))
ptx = ctypes.create_string_buffer(size.value)
check(nvrtc.nvrtcGetPTX(program, ptx))
open(os.path.join(here, "kernels.ptx"), "wb").write(ptx.value)
print(size.value)
