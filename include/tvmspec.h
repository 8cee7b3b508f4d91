/*
 * What tvmspec offers beyond the interfaces of TVM: looking into files.
 *
 * tvmspec_examine() and tvmspec_examine_file() are there when the library was built with the feature `inspect`, which is a default.
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

#ifdef __cplusplus
}
#endif

#endif /* TVMSPEC_H_ */
