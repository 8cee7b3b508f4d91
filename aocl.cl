__kernel void add1_gpu_kernel(__global float* restrict X, __global float* restrict Y);
__kernel void sub1_gpu_kernel(__global float* restrict X, __global float* restrict Y);
__kernel void add1_gpu_kernel(__global float* restrict X, __global float* restrict Y) {
  Y[(((convert_int(get_group_id(0))) * 4) + (convert_int(get_local_id(0))))] = (X[(((convert_int(get_group_id(0))) * 4) + (convert_int(get_local_id(0))))] + 1.000000e+00f);
}

__kernel void sub1_gpu_kernel(__global float* restrict X, __global float* restrict Y) {
  Y[(((convert_int(get_group_id(0))) * 4) + (convert_int(get_local_id(0))))] = (X[(((convert_int(get_group_id(0))) * 4) + (convert_int(get_local_id(0))))] - 1.000000e+00f);
}

