// Function: addone_kernel
#include <metal_stdlib>
using namespace metal;

union __TVMArgUnion {
 int v_int[2];
};

struct addone_kernel_args_t {
  int n[2];
  int stride[2];
  int stride_1[2];
};

kernel void addone_kernel(  device float* A [[ buffer(0) ]],
  device float* B [[ buffer(1) ]],
  constant addone_kernel_args_t& arg [[ buffer(2) ]],
  uint blockIdx [[threadgroup_position_in_grid]],
  uint threadIdx [[thread_position_in_threadgroup]]
) {
  if (((int)blockIdx) < (arg.n[0] >> 6)) {
    B[(((((int)blockIdx) * 64) + ((int)threadIdx)) * arg.stride[0])] = (A[(((((int)blockIdx) * 64) + ((int)threadIdx)) * arg.stride_1[0])] + 1.000000e+00f);
  } else {
    if (((((int)blockIdx) * 64) + ((int)threadIdx)) < arg.n[0]) {
      B[(((((int)blockIdx) * 64) + ((int)threadIdx)) * arg.stride[0])] = (A[(((((int)blockIdx) * 64) + ((int)threadIdx)) * arg.stride_1[0])] + 1.000000e+00f);
    }
  }
}


