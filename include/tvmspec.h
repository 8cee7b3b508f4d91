/*
 * What tvmspec offers beyond the interfaces of TVM: looking into files; targets and exports.
 *
 * tvmspec_examine() and tvmspec_examine_file() are there when the library was built with the feature `inspect`, which is a default.
 * Those of targets and exports are there with the feature `target`, which is a default, too.
 * Nothing here executes the file that it looks at. Texts are UTF-8, freed with tvmspec_free().
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

/* The number of this interface: of what this header declares. Another number, another header. */
#define TVMSPEC_ABI 2
TVM_DLL int tvmspec_abi(void);

/*
 * Answers a command about a file, as JSON. `command` is that of the command line, without the file:
 *
 *   inspect [--code] [--layout L]             what is in it                                spec/schema/inspect.json
 *   verify [--strict] [--layout L]            every rule that it breaks, every oddity      spec/schema/verify.json
 *   explain [--release R] [--layout L]        what the loader of each release makes of it  spec/schema/explain.json
 *   dump [--from OFFSET] [--layout L]         every byte with its field and its rule       spec/schema/dump.json
 *
 * ELF, Mach-O, PE, object files, archives, tar, C text, library binaries, parameters, graphs, executables, saved objects. Libraries
 * that the file needs are not looked for.
 *
 * tvmspec_examine() answers about `length` bytes in memory; `name` is in messages (null: "<memory>") and is not opened, also where
 * there are no bytes. tvmspec_examine_file() reads the file at `path`.
 *
 * Returns the exit code of the command line: 0 where all is good, 1 where a rule is broken (verify --strict: or something is odd;
 * explain: only with --release, where that release does not load it), 2 where the file cannot be read, nothing in it has rules, or the
 * command is invalid. `*text` is the JSON, or for 2 a message; free it with tvmspec_free(). Where `text` is null nothing is written.
 */
TVM_DLL int tvmspec_examine(const char* command, const char* name, const void* bytes, size_t length, char** text);
TVM_DLL int tvmspec_examine_file(const char* command, const char* path, char** text);

/* Frees a text. Null is allowed. */
TVM_DLL void tvmspec_free(char* text);

/*
 * Targets and exports. What goes in and out is JSON; `release` is a release such as "0.27".
 *
 * Each returns 0, 1 where a rule is broken, or 2 for anything else: JSON that is none, a file that cannot be read, a compiler that fails.
 * `*text` is the answer, or the message; free it with tvmspec_free(). Where `text` is null nothing is written.
 *
 * A callback may be called by any thread, for ever and several at once; the text that it leaves is its own until the same thread calls it again.
 */

/* The members of a target, as JSON; leaves those that it has in `*answer`, or null where they stay. Not 0: rejected, `*answer` says why. */
typedef int (*tvmspec_parse)(void* context, const char* config, const char** answer);

/* A kind of your own (spec/target.md, TGT-15), such as {"name": "foo", "device_type": 12, "keys": ["foo"], "options": [{"name": "lanes",
 * "type": "int", "default": 4}]}. `parse` may be null. */
TVM_DLL int tvmspec_target_register_kind(const char* form, tvmspec_parse parse, void* context, char** text);

/* A tag of your own: what it is short for, as JSON. The answer is that of tvmspec_target_read(), without
 * "releases". */
TVM_DLL int tvmspec_target_register_tag(const char* release, const char* name, const char* config, int replace, char** text);

/* What a tag, JSON, a command line or a kind names: {"release", "target", "device_type", "text", "releases"}; `target` is normalised, and
 * "releases" what each release makes of it: [{"releases": "..0.23", "target": {..}}, {"releases": "0.24..", "rejected": {"rule", "kind",
 * "message"}}]. */
TVM_DLL int tvmspec_target_read(const char* release, const char* named, char** text);

/* The target of a device of this machine, such as "opencl:0"; the answer is that of tvmspec_target_read(). */
TVM_DLL int tvmspec_target_from_device(const char* release, const char* device, char** text);

/* What calls a compiler: writes `output` of the input files, and returns 0. */
typedef int (*tvmspec_compile)(void* context, const char* output, const char* const* inputs, size_t input_count,
                               const char* const* options, size_t option_count);

/* export_library: {"output": "model.so", "release": "0.27", "modules": [{"kind": "_lib", "format": "c", "code": text, "imports": [1]},
 * {"kind": "opencl", "payload": base64}]}. More members: the documentation of `tvmspec::blob::pack::export_job`. `compile` may be null. */
TVM_DLL int tvmspec_export(const char* job, tvmspec_compile compile, void* context, char** text);

/* Writes the file `input` to `output` with another library binary number `index`; all other code stays byte for byte. */
TVM_DLL int tvmspec_replace(const char* input, size_t index, const void* blob, size_t length, const char* output, char** text);

#ifdef __cplusplus
}
#endif

#endif /* TVMSPEC_H_ */
