#include <tvm/ffi/c_api.h>
void* modA___tvm_ffi__library_ctx = NULL;
TVM_DLL int32_t plain(void* args) {
TVM_DLL int32_t __tvm_ffi_add(void* args) {
TVM_DLL int32_t __tvm_ffi__metadata_add(void* args) {
TVM_DLL int32_t __tvm_ffi__doc_add(void* args) {
TVM_DLL int32_t __tvm_ffi__cubin_add(void* args) {
TVM_DLL int32_t __tvm_ffi__library_ctx2(void* args) {
TVM_DLL int32_t __tvm_ffi_modA_add(void* args) {
