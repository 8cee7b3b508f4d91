//! The table of kinds.

use tvmspec::payload::{kind_info, kinds};
use tvmspec::release::Release;

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
fn kinds_are_there_once_and_forms_newest_first() {
    for (index, info) in kinds().iter().enumerate() {
        assert!(
            kinds()[..index].iter().all(|other| other.kind != info.kind),
            "{}",
            info.kind
        );
        for form in info.forms {
            let name: Release = form.name.parse().unwrap();
            assert!(form.releases.contains(name), "{} {}", info.kind, form.name);
        }
    }
}
