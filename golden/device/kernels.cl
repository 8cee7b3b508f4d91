// Function: add_one
__kernel void add_one(__global float* out, __global const float* in, int n) {
    int i = get_global_id(0);
    if (i < n) {
        out[i] = in[i] + 1.0f;
    }
}
// Function: scalars
__kernel void scalars(__global float* out, long a, int b, uint c, float e) {
    if (get_global_id(0) == 0) {
        out[0] = (float)a;
        out[1] = (float)b;
        out[2] = (float)c;
        out[3] = e;
    }
}
