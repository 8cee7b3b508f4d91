/* Times the tvm-ffi C interface of two libraries with the same code, in turn, each in its own process:
 *   cc -O2 -o ffi_driver benches/ffi_driver.c -ldl
 *   ./ffi_driver path/to/libtvm_ffi.so target/release/libtvmspec.so
 *   ./ffi_driver --instructions path/to/libtvm_ffi.so target/release/libtvmspec.so
 *   ./ffi_driver --brief path/to/libtvm_ffi.so target/release/libtvmspec.so
 * Prints nanoseconds per operation (the fastest of many alternating rounds), or instructions per operation counted by
 * callgrind, and the ratio second / first. `--brief` runs one round, to show that the driver works. The result for a load
 * leaves out dlopen and dlclose of the same file.
 * Needs a C compiler for the libraries that it loads, and valgrind for instructions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../include/tvm_ffi_c_api.h"

static int rounds = 9, repeats = 5;

static int (*call)(TVMFFIObjectHandle, TVMFFIAny*, int32_t, TVMFFIAny*);
static int (*create)(void*, TVMFFISafeCallType, void (*)(void*), TVMFFIObjectHandle*);
static int (*lookup)(const TVMFFIByteArray*, TVMFFIObjectHandle*);
static int (*set_global)(const TVMFFIByteArray*, TVMFFIObjectHandle, int);
static int (*inc)(TVMFFIObjectHandle);
static int (*dec)(TVMFFIObjectHandle);
static int (*string)(const TVMFFIByteArray*, TVMFFIAny*);

static TVMFFIObjectHandle summer, counter, loader, module;
static TVMFFIAny* elements;
static const char* folder;

static void check(int failed, const char* what) {
  if (!failed) return;
  fprintf(stderr, "%s failed\n", what);
  exit(2);
}

static TVMFFIByteArray bytes(const char* text) {
  TVMFFIByteArray array = {text, strlen(text)};
  return array;
}

static TVMFFIObjectHandle global(const char* name) {
  TVMFFIByteArray array = bytes(name);
  TVMFFIObjectHandle found = NULL;
  lookup(&array, &found);
  check(!found, name);
  return found;
}

static void release(TVMFFIAny value) {
  if (value.type_index >= 64) dec(value.v_obj);
}

/* Calls with a result slot set to None, because a callee in C++ drops the value of an owned slot. */
static TVMFFIAny invoke(TVMFFIObjectHandle f, const TVMFFIAny* args, int count, const char* what) {
  TVMFFIAny result;
  memset(&result, 0, sizeof result);
  check(call(f, (TVMFFIAny*)args, count, &result), what);
  return result;
}

/* The callbacks: a sum of ints without and with a context, and a loader that always returns the same module. */

static int sum(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  int64_t total = 0;
  (void)self;
  for (int32_t i = 0; i < count; ++i) total += args[i].v_int64;
  result->type_index = kTVMFFIInt;
  result->small_str_len = 0;
  result->v_int64 = total;
  return 0;
}

static int give(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  (void)self, (void)args, (void)count;
  inc(module);
  result->type_index = kTVMFFIModule;
  result->small_str_len = 0;
  result->v_obj = module;
  return 0;
}

/* One measure. `count` and `text` are its arguments, and it runs `times` times. */

typedef struct Measure {
  const char* name;
  void (*run)(const struct Measure*, int times);
  void (*prepare)(const struct Measure*);
  int times, count, operations;
  const char* text;
} Measure;

static void run_call(const Measure* m, int times) {
  TVMFFIObjectHandle f = m->text ? counter : summer;
  TVMFFIAny args[8];
  memset(args, 0, sizeof args);
  for (int i = 0; i < times; ++i) {
    for (int k = 0; k < m->count; ++k) {
      args[k].type_index = kTVMFFIInt;
      args[k].v_int64 = i + k;
    }
    invoke(f, args, m->count, m->name);
  }
}

static void run_lookup(const Measure* m, int times) {
  TVMFFIByteArray array = bytes(m->text);
  for (int i = 0; i < times; ++i) {
    TVMFFIObjectHandle f = NULL;
    lookup(&array, &f);
    if (f) dec(f);
  }
}

static void run_count(const Measure* m, int times) {
  (void)m;
  for (int i = 0; i < times; ++i) {
    inc(summer);
    dec(summer);
  }
}

static void run_string(const Measure* m, int times) {
  static char text[1000];
  TVMFFIByteArray array = {text, (size_t)m->count};
  for (int i = 0; i < times; ++i) {
    TVMFFIAny value;
    string(&array, &value);
    release(value);
  }
}

static void prepare_elements(const Measure* m) {
  int text = strstr(m->name, "strings") != NULL;
  elements = calloc(m->count, sizeof *elements);
  for (int i = 0; i < m->count; ++i) {
    char buffer[32];
    elements[i].type_index = kTVMFFIInt;
    elements[i].v_int64 = i;
    if (text && i % 2 == 0) {
      TVMFFIByteArray array = {buffer, (size_t)sprintf(buffer, "key-number-%06d", i)};
      string(&array, &elements[i]);
    }
  }
}

static void run_container(const Measure* m, int times) {
  TVMFFIObjectHandle f = global(m->text);
  for (int i = 0; i < times; ++i) release(invoke(f, elements, m->count, m->text));
  dec(f);
}

static TVMFFIAny container;

static void prepare_container(const Measure* m) {
  TVMFFIObjectHandle f = global(strstr(m->text, "List") ? "ffi.List" : "ffi.Dict");
  prepare_elements(m);
  release(container);
  container = invoke(f, elements, m->count, m->text);
  dec(f);
}

/* The element that is read or set exists: a place in a list and a key of a dict are both even numbers. */
static void run_member(const Measure* m, int times) {
  TVMFFIObjectHandle f = global(m->text);
  int count = strstr(m->text, "Set") ? 3 : 2;
  TVMFFIAny args[3];
  memset(args, 0, sizeof args);
  args[0] = container;
  args[1].type_index = args[2].type_index = kTVMFFIInt;
  for (int i = 0; i < times; ++i) {
    args[1].v_int64 = 2 * i % m->count;
    release(invoke(f, args, count, m->text));
  }
  dec(f);
}

static const char* library_path(const Measure* m) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/n%d.so", folder, m->count);
  return path;
}

static void run_dlopen(const Measure* m, int times) {
  const char* path = library_path(m);
  for (int i = 0; i < times; ++i) {
    void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    check(!library, path);
    dlclose(library);
  }
}

static void run_load(const Measure* m, int times) {
  const char* path = library_path(m);
  TVMFFIAny arg;
  memset(&arg, 0, sizeof arg);
  arg.type_index = kTVMFFIRawStr;
  arg.v_c_str = path;
  for (int i = 0; i < times; ++i) release(invoke(loader, &arg, 1, path));
}

static const Measure MEASURES[] = {
    {"call, 0 ints", run_call, NULL, 100000, 0, 1, NULL},
    {"call, 3 ints", run_call, NULL, 100000, 3, 1, NULL},
    {"call, 8 ints", run_call, NULL, 100000, 8, 1, NULL},
    {"call with a context, 3 ints", run_call, NULL, 100000, 3, 1, "context"},
    {"global lookup, 22 characters, hit", run_lookup, NULL, 50000, 0, 1, "bench.a_function_name_"},
    {"global lookup, 22 characters, miss", run_lookup, NULL, 50000, 0, 1, "bench.a_function_namex"},
    {"global lookup, 7 characters, hit", run_lookup, NULL, 50000, 0, 1, "bench.f"},
    {"IncRef + DecRef", run_count, NULL, 200000, 0, 1, NULL},
    {"string of 7 bytes", run_string, NULL, 100000, 7, 1, NULL},
    {"string of 8 bytes", run_string, NULL, 100000, 8, 1, NULL},
    {"string of 1000 bytes", run_string, NULL, 50000, 1000, 1, NULL},
    {"Array of 1e3 ints, per element", run_container, prepare_elements, 200, 1000, 1000, "ffi.Array"},
    {"Array of 1e5 ints, per element", run_container, prepare_elements, 2, 100000, 100000, "ffi.Array"},
    {"Map of 1e3 ints, per pair", run_container, prepare_elements, 20, 2000, 1000, "ffi.Map"},
    {"Map of 1e5 ints, per pair", run_container, prepare_elements, 1, 200000, 100000, "ffi.Map"},
    {"Map of 2e4 strings, per pair", run_container, prepare_elements, 1, 40000, 20000, "ffi.Map"},
    {"List of 1e3 ints, per element", run_container, prepare_elements, 200, 1000, 1000, "ffi.List"},
    {"Dict of 1e3 ints, per pair", run_container, prepare_elements, 20, 2000, 1000, "ffi.Dict"},
    {"element of a List", run_member, prepare_container, 100000, 1000, 1, "ffi.ListGetItem"},
    {"set an element of a List", run_member, prepare_container, 100000, 1000, 1, "ffi.ListSetItem"},
    {"append to a List", run_member, prepare_container, 100000, 1000, 1, "ffi.ListAppend"},
    {"value in a Dict", run_member, prepare_container, 100000, 2000, 1, "ffi.DictGetItem"},
    {"set a value in a Dict", run_member, prepare_container, 100000, 2000, 1, "ffi.DictSetItem"},
    {"load, no blob", run_load, NULL, 50, 0, 1, NULL},
    {"load, 1 module", run_load, NULL, 50, 1, 1, NULL},
    {"load, 1,000 modules", run_load, NULL, 10, 1000, 1, NULL},
};
#define COUNT ((int)(sizeof MEASURES / sizeof *MEASURES))

/* Callgrind counts only the instructions of this function. */
__attribute__((noinline)) void measured(const Measure* m, int times) {
  m->run(m, times);
  __asm__ volatile("" ::: "memory");
}

static double fastest(const Measure* m) {
  double best = 1e30;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    measured(m, m->times);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double time = (end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec);
    if (time < best) best = time;
  }
  return best / m->times / m->operations;
}

static void open_library(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  *(void**)&call = dlsym(library, "TVMFFIFunctionCall");
  *(void**)&create = dlsym(library, "TVMFFIFunctionCreate");
  *(void**)&lookup = dlsym(library, "TVMFFIFunctionGetGlobal");
  *(void**)&set_global = dlsym(library, "TVMFFIFunctionSetGlobal");
  *(void**)&inc = dlsym(library, "TVMFFIObjectIncRef");
  *(void**)&dec = dlsym(library, "TVMFFIObjectDecRef");
  *(void**)&string = dlsym(library, "TVMFFIStringFromByteArray");
  create(NULL, sum, NULL, &summer);
  create(&summer, sum, NULL, &counter);
  TVMFFIByteArray name = bytes("bench.a_function_name_"), small = bytes("bench.f");
  set_global(&name, summer, 1);
  set_global(&small, summer, 1);
  loader = global("ffi.ModuleLoadFromFile");
  module = invoke(global("ffi.SystemLib"), NULL, 0, "ffi.SystemLib").v_obj;
  TVMFFIObjectHandle giver;
  TVMFFIByteArray kind = bytes("ffi.Module.load_from_bytes.rob");
  create(NULL, give, NULL, &giver);
  set_global(&kind, giver, 1);
  /* Uses up the blocks that a library freed at start, because they would change the cost of the next kilobyte. */
  for (int i = 0; i < 4096; ++i)
    if (malloc(1041) == NULL) exit(2);
}

/* Runs one measure on one library. For a load, `base` gets the time of dlopen and dlclose. */
static double measure(const Measure* m, double* base) {
  *base = 0;
  if (m->prepare) m->prepare(m);
  if (m->run != run_load) return fastest(m);
  Measure plain = *m;
  plain.run = run_dlopen;
  double best = 1e30;
  *base = 1e30;
  for (int turn = 0; turn < 4; ++turn) {
    double time = fastest(&plain);
    if (time < *base) *base = time;
    time = fastest(m);
    if (time < best) best = time;
  }
  return best;
}

/* Counts the instructions of a measure in a child under callgrind. */
static double instructions(const char* self, const char* library, int at, int plain) {
  char command[9000], line[512];
  snprintf(command, sizeof command,
           "valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no --toggle-collect=measured "
           "'%s' --one '%s' %d %d '%s' 2>&1",
           self, library, at, plain, folder);
  FILE* output = popen(command, "r");
  double total = -1;
  while (fgets(line, sizeof line, output)) {
    const char* found = strstr(line, "Collected : ");
    if (found) total = atof(found + 12);
  }
  check(pclose(output) || total < 0, "valgrind");
  return total;
}

static int times_counted(const Measure* m) { return m->times > 1000 ? m->times / 50 : m->times; }

/* Builds a library that imports `modules` modules of kind `rob`. With zero modules it has no blob. */
static void build(int modules) {
  char path[4200], command[9000];
  snprintf(path, sizeof path, "%s/n%d.c", folder, modules);
  FILE* out = fopen(path, "w");
  check(!out, path);
  fprintf(out, "void* __tvm_ffi__library_ctx;\nint __tvm_ffi_main(void* s, void* a, int n, void* r) { return 0; }\n");
  if (modules) {
    /* The order is: header, `indptr`, `indices`, `_lib` and the modules. */
    fprintf(out, "struct text { unsigned long size; char text[16]; };\nstruct __attribute__((packed)) module { unsigned long a; "
                 "char kind[3]; unsigned long b; char payload[16]; };\n"
                 "const struct __attribute__((packed)) { unsigned long nbytes, n, indptr[%d], k, indices[%d], l; char lib[4]; "
                 "struct module modules[%d]; } __tvm_ffi__library_bin = {sizeof __tvm_ffi__library_bin - 8, %d, {0",
            modules + 2, modules, modules, modules + 2);
    for (int i = 0; i <= modules; ++i) fprintf(out, ",%d", modules);
    fprintf(out, "}, %d, {", modules);
    for (int i = 1; i <= modules; ++i) fprintf(out, "%d,", i);
    fprintf(out, "}, 4, \"_lib\", {");
    for (int i = 0; i < modules; ++i) fprintf(out, "{3, \"rob\", 16, \"sixteen bytes ..\"},");
    fprintf(out, "}};\n");
  }
  fclose(out);
  snprintf(command, sizeof command, "cc -shared -fPIC -o '%s/n%d.so' '%s'", folder, modules, path);
  check(system(command), "cc");
}

int main(int argc, char** argv) {
  if (argc == 6 && !strcmp(argv[1], "--one")) {
    open_library(argv[2]);
    Measure m = MEASURES[atoi(argv[3])];
    folder = argv[5];
    if (atoi(argv[4])) m.run = run_dlopen;
    if (m.prepare) m.prepare(&m);
    m.run(&m, 1);
    measured(&m, times_counted(&m));
    _exit(0);
  }
  int count_instructions = argc == 4 && !strcmp(argv[1], "--instructions");
  int brief = argc == 4 && !strcmp(argv[1], "--brief");
  if (argc != 3 && !count_instructions && !brief) {
    fprintf(stderr, "usage: %s [--instructions | --brief] FIRST.so SECOND.so\n", argv[0]);
    return 2;
  }
  if (count_instructions || brief) rounds = repeats = 1;
  char made[] = "/tmp/ffi_driver.XXXXXX";
  folder = mkdtemp(made);
  check(!folder, "mkdtemp");
  build(0), build(1), build(1000);
  /* The results of the measures, and then their bases. */
  double best[2][2 * COUNT];
  for (int side = 0; side < 2; ++side)
    for (int i = 0; i < 2 * COUNT; ++i) best[side][i] = 1e30;
  for (int turn = 0; turn < 2 * rounds; ++turn) {
    int side = turn % 2, pipes[2];
    const char* library = argv[argc - 2 + side];
    double out[2 * COUNT];
    if (count_instructions) {
      for (int i = 0; i < COUNT; ++i) {
        const Measure* m = &MEASURES[i];
        double total = times_counted(m) * (double)m->operations;
        out[i] = instructions(argv[0], library, i, 0) / total;
        out[COUNT + i] = m->run == run_load ? instructions(argv[0], library, i, 1) / total : 0;
      }
    } else {
      check(pipe(pipes), "pipe");
      pid_t child = fork();
      if (child == 0) {
        open_library(library);
        for (int i = 0; i < COUNT; ++i) out[i] = measure(&MEASURES[i], &out[COUNT + i]);
        _exit(write(pipes[1], out, sizeof out) == (ssize_t)sizeof out ? 0 : 2);
      }
      close(pipes[1]);
      check(read(pipes[0], out, sizeof out) != (ssize_t)sizeof out, "a round");
      close(pipes[0]);
      waitpid(child, NULL, 0);
    }
    for (int i = 0; i < 2 * COUNT; ++i)
      if (out[i] < best[side][i]) best[side][i] = out[i];
  }
  const char* unit = count_instructions ? "instructions" : "ns";
  printf("| measure | first, %s | second, %s | second / first |\n|---|---|---|---|\n", unit, unit);
  for (int i = 0; i < COUNT; ++i) {
    double first = best[0][i] - best[0][COUNT + i], second = best[1][i] - best[1][COUNT + i];
    printf("| %s | %.1f | %.1f | %.2f |\n", MEASURES[i].name, first, second, second / first);
  }
  char remove[64];
  snprintf(remove, sizeof remove, "rm -r '%s'", folder);
  return system(remove);
}
