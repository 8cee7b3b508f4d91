// Function: addone_kernel
__kernel void addone_kernel(__global float* restrict A, __global float* restrict B, int n, int stride, int stride_1);
__kernel void addone_kernel(__global float* restrict A, __global float* restrict B, int n, int stride, int stride_1) {
  if ((convert_int(get_group_id(0))) < (n >> 6)) {
    B[((((convert_int(get_group_id(0))) * 64) + (convert_int(get_local_id(0)))) * stride)] = (A[((((convert_int(get_group_id(0))) * 64) + (convert_int(get_local_id(0)))) * stride_1)] + 1.000000e+00f);
  } else {
    if ((((convert_int(get_group_id(0))) * 64) + (convert_int(get_local_id(0)))) < n) {
      B[((((convert_int(get_group_id(0))) * 64) + (convert_int(get_local_id(0)))) * stride)] = (A[((((convert_int(get_group_id(0))) * 64) + (convert_int(get_local_id(0)))) * stride_1)] + 1.000000e+00f);
    }
  }
}

