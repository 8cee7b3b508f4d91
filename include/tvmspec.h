/*
 * Functions of tvmspec beyond the interfaces of TVM: examination of files, targets, and exports.
 *
 * The library has tvmspec_examine() and tvmspec_examine_file() if it is built with the feature `inspect`. It has the functions for
 * targets and exports if it is built with the feature `target`. Both features are on by default.
 * Examination never executes the file. Texts are UTF-8. The caller frees texts with tvmspec_free().
 */
#ifndef TVMSPEC_H_
#define TVMSPEC_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TVM_DLL
#ifdef _WIN32
#define TVM_DLL __declspec(dllimport)
#else
#define TVM_DLL __attribute__((visibility("default")))
#endif
#endif

/* The version of the library, such as "0.1.0". */
TVM_DLL const char* tvmspec_version(void);

/* The version of the declarations in this header. If tvmspec_abi() returns another number, the header belongs to another library. */
#define TVMSPEC_ABI 2
TVM_DLL int tvmspec_abi(void);

/*
 * Runs a command of the command line on a file, and returns its JSON. `command` does not contain the file:
 *
 *   inspect [--code] [--layout L]             the content of the file                        spec/schema/inspect.json
 *   verify [--strict] [--layout L]            every broken rule and every tolerated oddity   spec/schema/verify.json
 *   explain [--release R] [--layout L]        the outcome of loading it in each release      spec/schema/explain.json
 *   dump [--from OFFSET] [--layout L]         every byte with its field and its rule         spec/schema/dump.json
 *
 * The file is ELF, Mach-O, PE, an object file, an archive, tar, C text, a library binary, parameters, a graph, an executable, or a file
 * of saved objects. Libraries that the file needs are not searched.
 *
 * tvmspec_examine() takes `length` bytes in memory. `name` stands for the file in messages, and is never opened; null means "<memory>".
 * tvmspec_examine_file() reads the file at `path`.
 *
 * Both return the exit code of the command line:
 *   0  no rule is broken
 *   1  a rule is broken; with verify --strict, there is a finding; only with explain --release, that release does not load the file
 *   2  the file cannot be read, no rule applies to it, or the command is invalid
 * `*text` is set to the JSON, or for 2 to a message. Free it with tvmspec_free(). If `text` is null, nothing is written.
 */
TVM_DLL int tvmspec_examine(const char* command, const char* name, const void* bytes, size_t length, char** text);
TVM_DLL int tvmspec_examine_file(const char* command, const char* path, char** text);

/* Frees a text. Null is allowed. */
TVM_DLL void tvmspec_free(char* text);

/*
 * Targets and exports. Inputs and answers are JSON. `release` is a TVM release, such as "0.27".
 *
 * Each function returns 0 for success, 1 if a rule is broken, and 2 for any other failure: invalid JSON, a file that cannot be read, a
 * compiler that fails. `*text` is set to the answer, or to the message. Free it with tvmspec_free(). If `text` is null, nothing is written.
 *
 * A callback stays registered until the process ends. Any thread may call it, also several at once. The callback owns the text in
 * `*answer`, and must keep it until the same thread calls the callback again.
 */

/* Checks and completes the members of a target, which `config` has as JSON. Sets `*answer` to the new members, or to null to keep them.
 * Returns 0 for success. Any other value rejects the target, and `*answer` is the reason. */
typedef int (*tvmspec_parse)(void* context, const char* config, const char** answer);

/* Registers a target kind (spec/target.md, TGT-15), such as {"name": "foo", "device_type": 12, "keys": ["foo"], "options": [{"name": "lanes",
 * "type": "int", "default": 4}]}. `parse` may be null. */
TVM_DLL int tvmspec_target_register_kind(const char* form, tvmspec_parse parse, void* context, char** text);

/* Registers a tag, which stands for the target in `config`. The answer is that of tvmspec_target_read(), without "releases". */
TVM_DLL int tvmspec_target_register_tag(const char* release, const char* name, const char* config, int replace, char** text);

/* Reads a target from a tag, JSON, a command line or the name of a kind. The answer is {"release", "target", "device_type", "text",
 * "releases"}. "target" is normalised. "releases" has the result of each release: [{"releases": "..0.23", "target": {..}},
 * {"releases": "0.24..", "rejected": {"rule", "kind", "message"}}]. */
TVM_DLL int tvmspec_target_read(const char* release, const char* named, char** text);

/* Returns the target of a device of this machine, such as "opencl:0". The answer is that of tvmspec_target_read(). */
TVM_DLL int tvmspec_target_from_device(const char* release, const char* device, char** text);

/* Compiles the input files to `output`. Returns 0 for success. */
typedef int (*tvmspec_compile)(void* context, const char* output, const char* const* inputs, size_t input_count,
                               const char* const* options, size_t option_count);

/* Exports a library, as export_library does: {"output": "model.so", "release": "0.27", "modules": [{"kind": "_lib", "format": "c", "code": text, "imports": [1]},
 * {"kind": "opencl", "payload": base64}]}. The documentation of `tvmspec::blob::pack::export_job` lists all members. `compile` may be null. */
TVM_DLL int tvmspec_export(const char* job, tvmspec_compile compile, void* context, char** text);

/* Writes the file `input` to `output`, with library binary number `index` replaced by `blob`. All other bytes of code stay the same. */
TVM_DLL int tvmspec_replace(const char* input, size_t index, const void* blob, size_t length, const char* output, char** text);

#ifdef __cplusplus
}
#endif

#endif /* TVMSPEC_H_ */
