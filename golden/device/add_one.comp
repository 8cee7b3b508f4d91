// As released code generators declare a kernel for Vulkan: buffers are bindings 0 and up, and every scalar has 8 bytes of
// the push constants. Compiled with glslangValidator; the entry point has the kernel's name.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Out { float data[]; } out_;
layout(set = 0, binding = 1) readonly buffer In { float data[]; } in_;
layout(push_constant) uniform Scalars { layout(offset = 0) int n; layout(offset = 8) float plus; } scalars;

void main() {
    int i = int(gl_GlobalInvocationID.x);
    if (i < scalars.n) {
        out_.data[i] = in_.data[i] + scalars.plus;
    }
}
