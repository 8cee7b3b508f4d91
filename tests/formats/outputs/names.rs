//! File names that are made from the content of a file.

use super::{content, succeed, tvmspec};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use tvmspec::file_name::{FileNames, is_file_name};

/// Generates texts that file systems or shells interpret in another way.
fn unusual_names() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[./\\\\ -]{0,4}",
        "(?i)(con|nul|com1|lpt9|aux|prn)[. ]?[a-z]?",
        "[aA_/é]{1,3}(-[0-9])?",
        "[a-z]{170,300}",
    ]
}

proptest! {
    #[test]
    fn every_text_is_made_one_plain_name(texts in prop::collection::vec((unusual_names(), unusual_names()), 1..40)) {
        let (mut names, mut again) = (FileNames::default(), FileNames::default());
        let mut seen = HashSet::new();
        for (stem, extension) in &texts {
            let name = names.add(stem, extension);
            let parts: Vec<Component<'_>> = Path::new(&name).components().collect();
            prop_assert_eq!(parts, [Component::Normal(name.as_ref())]);
            prop_assert!(is_file_name(&name), "{}", name);
            prop_assert!(!name.starts_with(['.', '-']) && name.is_ascii(), "{}", name);
            prop_assert!(seen.insert(name.to_lowercase()), "{} is there twice", name);
            prop_assert_eq!(again.add(stem, extension), name);
        }
    }
}

#[test]
fn a_plain_name_stays_what_it_is() {
    let mut names = FileNames::default();
    for (stem, extension) in [
        ("main_kernel", "metal"),
        ("_Z3fooPf", "spv"),
        ("a.b-c", "cl"),
    ] {
        assert_eq!(names.add(stem, extension), format!("{stem}.{extension}"));
    }
    for name in [
        "", ".", "..", "a/b", "a\\b", "a\0", "c:x", "NUL", "com1.so", "con .c", "a.",
    ] {
        assert!(!is_file_name(name), "{name:?}");
    }
    assert!(is_file_name("libmodel.so") && is_file_name("größe 2.tar") && is_file_name(".tvm"));
}

/// Packs a library with a module of `kernels`, each with its name as code, and returns its path in `folder`.
fn library(folder: &Path, format: &str, kernels: &[&str]) -> PathBuf {
    let code = |name: &&str| json!({"name": name, "source": format!("kernel {name}")});
    let function =
        |name: &&str| json!({"name": name, "arg_types": ["handle"], "launch_param_tags": []});
    let list = |of: &dyn Fn(&&str) -> Value| kernels.iter().map(of).collect::<Vec<_>>();
    let decoded = json!({
        "kind": "metal", "form": "0.13", "version": "0.1.0", "kernels": list(&code),
        "functions": list(&function), "format": format,
    });
    let modules = [
        json!({"kind": "_lib", "imports": [1]}),
        json!({"kind": "metal", "decoded": decoded}),
    ];
    let manifest = json!({"layout": "0.7", "order": "0.8", "modules": modules});
    let (path, made) = (folder.join("manifest.json"), folder.join("library.bin"));
    std::fs::write(&path, manifest.to_string()).unwrap();
    succeed(tvmspec().arg("pack").arg(path).arg("-o").arg(&made));
    made
}

#[test]
fn extract_stays_in_its_folder_and_loses_no_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let long = "n".repeat(300);
    let kernels = [
        ".", "..", "a/b", "a_b", "a\\b", "A_B", "nul", "-rf", "", "x\0y", &long, "plain",
    ];
    for format in ["/victim.txt", "metal", "../../victim", "con"] {
        let made = library(folder.path(), format, &kernels);
        let victim = folder.path().join("victim.txt");
        std::fs::write(&victim, "precious").unwrap();
        let out = folder.path().join("out");
        std::fs::create_dir(&out).unwrap();
        // A link in the place of a file is not followed.
        let extension = FileNames::default().add("a/b", format);
        std::os::unix::fs::symlink(&victim, out.join(extension)).unwrap();
        let to = format!("{}/", out.display());
        succeed(tvmspec().arg("extract").arg(&made).args(["1", "-o", &to]));
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        let written = content(&out);
        let mut code: Vec<String> = written
            .values()
            .map(|code| String::from_utf8(code.clone()).unwrap())
            .collect();
        let mut wanted: Vec<String> = kernels
            .iter()
            .map(|name| format!("kernel {name}"))
            .collect();
        code.sort();
        wanted.sort();
        assert_eq!(code, wanted, "{format}");
        for name in written.keys() {
            assert!(is_file_name(name), "{name:?}");
            assert!(!out.join(name).is_symlink(), "{name}");
        }
        std::fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn unpack_and_dump_follow_no_link_in_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let victim = folder.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    for name in ["manifest.json", "1.metal", "2.opencl"] {
        std::os::unix::fs::symlink(&victim, out.join(name)).unwrap();
    }
    let library = "golden/blob/containers/tree3-0.8.so";
    succeed(
        tvmspec()
            .args(["unpack", "--force", library, "-o"])
            .arg(&out),
    );
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    // A link in the place of a folder below the named one.
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let root = folder.path().join("cases");
    std::fs::create_dir(&root).unwrap();
    std::os::unix::fs::symlink(&elsewhere, root.join("wire")).unwrap();
    let exported = tvmspec()
        .args(["check", "--chapter", "wire", "--export"])
        .arg(&root)
        .output()
        .unwrap();
    assert_eq!(exported.status.code(), Some(2));
    assert!(content(&elsewhere).is_empty());
}
