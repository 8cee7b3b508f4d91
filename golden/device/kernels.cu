// Kernels for the device tests. Written for this project; compiled to kernels.ptx with NVRTC 12.8.93, compute_75.

extern "C" __global__ void add_one(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[i] + 1.0f;
    }
}

// One scalar of every width that a launch can pass.
extern "C" __global__ void scalars(double* out, long long a, int b, unsigned int c, double d, float e) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        out[0] = (double)a;
        out[1] = (double)b;
        out[2] = (double)c;
        out[3] = d;
        out[4] = (double)e;
    }
}

// Needs as many floats of dynamic shared memory as the block has threads.
extern "C" __global__ void reverse(float* data) {
    extern __shared__ float tile[];
    tile[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
