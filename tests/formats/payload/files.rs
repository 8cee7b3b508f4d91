//! Modules in separate files.

use tvmspec::rule::Findings;

/// Files that `save` of 0.16 wrote must be written again byte for byte: the code, and its side file in the style of dmlc's JSON.
#[test]
fn module_files_of_a_release_are_written_as_they_were() {
    use tvmspec::payload::file::{self, ModuleFile};
    use tvmspec::release::Release;
    let read = |name: &str| std::fs::read(format!("golden/payload/files/{name}")).unwrap();
    let side = read("addone-0.16.tvm_meta.json");
    for name in ["addone-0.16.cl", "addone-0.16.metal"] {
        let code = read(name);
        let mut findings = Findings::default();
        let module = ModuleFile::read(name, "", &code, Some(&side), &mut findings).unwrap();
        assert!(findings.is_empty(), "{findings:?}");
        let (again, text) = file::write(&module.payload, name, "", Release::of(16)).unwrap();
        assert!(again == code && text.as_bytes() == side, "{name}: {text}");
        // 0.7 looks for the other list, and rejects unknown members.
        let rejected = module
            .rejected
            .iter()
            .map(|(releases, _)| releases.to_string());
        assert!(rejected.clone().all(|releases| releases == "..0.7"));
        assert_eq!(rejected.count(), 2);
    }
}

/// A map of several functions has one line for each, and a list of more than ten numbers has one line for each.
#[test]
fn side_files_break_lines_as_dmlc_does() {
    use tvmspec::payload::file::SideFile;
    use tvmspec::release::Release;
    let short =
        r#"{"name": "", "arg_types": [], "launch_param_tags": [], "arg_extra_tags": [0, 1]}"#;
    let text =
        format!(r#"{{"tvm_version": "0.1.0", "func_info": {{"a": {short}, "b": {short}}}}}"#);
    let side = SideFile::read(text.as_bytes(), &mut Findings::default()).unwrap();
    let lines = |name: &str| {
        format!(
            "    \"{name}\": {{\n      \"name\": \"\", \n      \"arg_types\": [], \n      \"launch_param_tags\": [], \n      \"arg_extra_tags\": [0, 1]\n    }}"
        )
    };
    let expected = format!(
        "{{\n  \"tvm_version\": \"0.1.0\", \n  \"func_info\": {{\n{}, \n{}\n  }}\n}}",
        lines("a"),
        lines("b")
    );
    assert_eq!(side.to_text(Release::of(21)), expected);
    let none = SideFile::default().to_text(Release::of(8));
    assert_eq!(
        none,
        "{\n  \"tvm_version\": \"0.1.0\", \n  \"func_info\": {}\n}"
    );
}

/// The real 0.22 rejects such a side file: "unknown string escape \u". From 0.24 on, no release loads one.
#[test]
fn readers_up_to_0_23_know_five_escapes() {
    use tvmspec::payload::file::SideFile;
    let text = |name: &str| {
        format!(
            r#"{{"tvm_version": "0.1.0", "func_info": {{"f": {{"name": "{name}", "arg_types": [], "launch_param_tags": [], "thread_axis_tags": []}}}}}}"#
        )
    };
    let rejected = |name: &str| {
        let side = SideFile::read(text(name).as_bytes(), &mut Findings::default()).unwrap();
        let mut why = side.rejected.into_iter().map(|(_, why)| why);
        why.any(|why| why.contains("an escape other than"))
    };
    for name in [r"\u0066", r"\/", r"\b", r"a\\\f"] {
        assert!(rejected(name), "{name}");
    }
    for name in ["f", r#"\n\r\t\"\\"#, r"a\\f"] {
        assert!(!rejected(name), "{name}");
    }
}
