// Function: k
__kernel void k(int n) {}
