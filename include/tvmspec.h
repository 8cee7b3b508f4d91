/*
 * What tvmspec offers beyond the interfaces of TVM: looking into files.
 *
 * tvmspec_inspect() and tvmspec_verify() are there when the library was built with the feature `inspect`, which is a default.
 * Nothing here executes the file that it looks at. Texts are JSON in UTF-8; give them back with tvmspec_free().
 */
#ifndef TVMSPEC_H_
#define TVMSPEC_H_

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

/*
 * What a file holds: {"form", "functions": [..], "blobs": [{"member", "symbol", "blob": {..}, "error", "findings"}],
 * "objects"}, the last of saved objects only.
 * ELF, Mach-O, PE, object files, archives, tar, C text, raw blobs. Null when the file cannot be read.
 */
TVM_DLL char* tvmspec_inspect(const char* path);

/*
 * Holds a file to every rule: the number of violations and findings. -1 when the file cannot be read, and when nothing in it
 * has rules: then the report says so, with a null for the rule. With `strict` the first finding is a violation. The report
 * goes to `report` unless that is null: [{"rule", "kind", "offset", "message"}, ..].
 */
TVM_DLL int tvmspec_verify(const char* path, int strict, char** report);

/* Gives a text back. Null is allowed. */
TVM_DLL void tvmspec_free(char* text);

#ifdef __cplusplus
}
#endif

#endif /* TVMSPEC_H_ */
