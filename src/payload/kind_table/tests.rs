//! What the table keeps to.

use super::*;

#[test]
fn loader_names_follow_the_release() {
    let cuda = kind_info("cuda").unwrap();
    let name = |minor| cuda.loader(Release::of(minor)).unwrap();
    assert_eq!(name(6), "module.loadbinary_cuda");
    assert_eq!(name(7), "runtime.module.loadbinary_cuda");
    assert_eq!(name(22), "ffi.Module.load_from_bytes.cuda");
    assert_eq!(kind_info("sdaccel").unwrap().loader(Release::of(8)), None);
    assert_eq!(
        kind_info("const_loader").unwrap().loader(Release::of(8)),
        None
    );
}

#[test]
fn forms_are_alike_where_the_same_values_fill_them() {
    let form = |kind: &str, name: &str| {
        let mut forms = kind_info(kind).unwrap().forms.iter();
        forms.find(|form| form.name == name).unwrap()
    };
    let alike = |one: (&str, &str), two: (&str, &str)| {
        let (one, two) = (form(one.0, one.1), form(two.0, two.1));
        assert_eq!(one.is_like(two), two.is_like(one));
        assert_eq!(one == two, one.is_like(two) && one.name == two.name);
        one.is_like(two)
    };
    assert!(alike(("vulkan", "0.24"), ("vulkan", "0.3")));
    assert!(alike(("metal", "0.2"), ("metal", "0.2")));
    assert!(alike(("cuda", "0.2"), ("cuda", "0.2")));
    assert!(alike(
        ("relax.Executable", "0.16"),
        ("relax.VMExecutable", "0.20")
    ));
    assert!(!alike(("metal", "0.24"), ("metal", "0.2")));
    assert!(!alike(("metal", "0.24"), ("metal", "0.13")));
    assert!(!alike(("opencl", "0.2"), ("opencl", "0.13")));
    // Of the same names and other formats; with sizes and without; a field more.
    assert!(!alike(("cuda", "0.2"), ("hip", "0.2")));
    assert!(!alike(("ethos-n", "0.7"), ("ethos-n", "0.10")));
    assert!(!alike(("mrvl_sim", "0.17"), ("mrvl_sim", "0.16")));
    assert!(!alike(("coreml", "0.7"), ("torch", "0.9")));
}

#[test]
fn kinds_are_there_once_and_forms_newest_first() {
    for (index, info) in KINDS.iter().enumerate() {
        assert!(
            KINDS[..index].iter().all(|other| other.kind != info.kind),
            "{}",
            info.kind
        );
        for form in info.forms {
            let name: Release = form.name.parse().unwrap();
            assert!(form.releases.contains(name), "{} {}", info.kind, form.name);
        }
    }
}
