#include <tvm/runtime/c_runtime_api.h>
void* __tvm_module_ctx = NULL;
void* __TVMFuncCall = 0;
void* __TVMOther= 0;
void* other = 0;
TVM_DLL int32_t add(void* args) {
TVM_DLL int32_t _init(void* args) {
TVM_DLL int32_t _fini(void* args) {
TVM_DLL int32_t _start(void* args) {
TVM_DLL int32_t main(void* args) {
TVM_DLL int32_t DllMain(void* args) {
TVM_DLL int32_t get_c_metadata(void* args) {
TVM_DLL int32_t __hidden(void* args) {
TVM_DLL int32_t _Zmangled(void* args) {
TVM_DLL int32_t _GLOBAL_x(void* args) {
TVM_DLL int32_t TVMFoo(void* args) {
TVM_DLL int32_t inits(void* args) {
TVM_DLL int older(void* args) {  
TVM_DLL int32_t declared(void* args);
  TVM_DLL int32_t indented(void* args) {
TVM_DLL int32_t __tvm_main__(void* args) {
TVM_DLL void nothing(void) {
void* undefined;
