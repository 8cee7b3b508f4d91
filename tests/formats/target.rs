//! Targets: comparison with real releases, round trips, and hostile text.
#![cfg(feature = "target")]

use crate::support::observed_targets;
use proptest::prelude::*;
use serde_json::Value;
use std::path::PathBuf;
use tvmspec::release::Release;
use tvmspec::rule::Kind;
use tvmspec::target::{LoweredModule, OptionType, TargetKind, Targets};

fn golden_text(name: &str) -> String {
    let path = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    std::fs::read_to_string(path.join("golden/target").join(name)).expect("a golden")
}

fn golden(name: &str) -> Value {
    serde_json::from_str(&golden_text(name)).expect("JSON")
}

/// Fails and prints the differences.
fn assert_equal(found: &observed_targets::Comparison) {
    let different = found.different.join("\n");
    assert!(
        found.different.is_empty(),
        "{} equal, {} not:\n{different}",
        found.equal,
        found.different.len()
    );
    assert!(
        found.equal > 900 && found.rejected > 100,
        "{} equal, {} rejected",
        found.equal,
        found.rejected
    );
}

#[test]
fn targets_of_0_27_are_read_as_the_release_does() {
    assert_equal(&observed_targets::compare(
        &golden("0.27.json"),
        Release::of(27),
        &[],
    ));
}

#[test]
fn targets_of_0_8_are_read_as_the_release_does() {
    assert_equal(&observed_targets::compare(
        &golden("0.8.json"),
        Release::of(8),
        &[],
    ));
}

#[test]
fn targets_of_0_19_are_read_as_the_release_does() {
    assert_equal(&observed_targets::compare(
        &golden("0.19.json"),
        Release::of(19),
        &[],
    ));
}

/// The package is a vendor's 0.16.dev0. It lacks the changes of 0.16 to targets: TGT-54 and two options of `llvm`.
#[test]
fn targets_of_0_15_are_read_as_the_package_does() {
    assert_equal(&observed_targets::compare(
        &golden("0.16.dev0.json"),
        Release::of(15),
        &observed_targets::FORKED,
    ));
}

#[test]
fn the_tables_have_every_release_from_0_7_on() {
    for release in Release::all() {
        let targets = Targets::new(release);
        assert_eq!(targets.kinds().is_empty(), release.minor() < 7, "{release}");
        for kind in targets.kinds() {
            assert!(kind.options.len() >= 5, "{release}: {}", kind.name);
            let read = targets
                .read(&kind.name)
                .unwrap_or_else(|broken| panic!("{release}: {}: {broken}", kind.name));
            assert_eq!(read.device_type, kind.device_type);
        }
        for tag in targets.tags() {
            targets
                .read(&tag)
                .unwrap_or_else(|broken| panic!("{release}: {tag}: {broken}"));
        }
    }
    let kind = Targets::new(Release::of(27))
        .kind("webgpu")
        .expect("a kind");
    let option = kind.find("thread_warp_size").expect("an option");
    assert_eq!(
        (&option.option_type, &option.default),
        (&OptionType::Int, &Some(1.into()))
    );
}

#[test]
fn a_registered_kind_is_as_those_of_the_release() {
    for minor in [8, 16, 27] {
        let mut targets = Targets::new(Release::of(minor));
        let foo = TargetKind::new("foo", 12).keys(["foo"]).option(
            "lanes",
            OptionType::Int,
            Some(4.into()),
        );
        targets.register(foo);
        let read = targets
            .read(r#"{"kind": "foo", "device": "big"}"#)
            .expect("a target");
        assert_eq!(
            (read.device_type, read.keys.join(",")),
            (12, "big,foo".to_owned())
        );
        assert_eq!(read.attrs["lanes"], 4);
        let broken = targets
            .read(r#"{"kind": "foo", "lane": 8}"#)
            .expect_err("no option");
        assert_eq!(broken.kind(), Kind::Unsupported);
    }
}

#[test]
fn a_tag_that_is_its_own_host_ends() {
    let mut targets = Targets::new(Release::of(27));
    let config = serde_json::from_str(r#"{"kind": "c", "host": "me"}"#).expect("JSON");
    let broken = targets.add_tag("me", config, false).expect_err("endless");
    assert_eq!(broken.kind(), Kind::Limit);
}

proptest! {
    /// TGT-60: an exported target reads as the same target.
    #[test]
    fn an_exported_target_reads_as_itself(minor in 7u8..28, text in "(llvm|c|cuda|opencl|vulkan|hexagon)( -(mcpu|mattr|model|device|keys|opt-level|host)(=| )[-a-z0-9,'\\\\ ]{1,8}){0,3}") {
        let targets = Targets::new(Release::of(minor));
        let old = Targets::new(Release::of(minor.min(23)));
        if let Ok(first) = old.read(&text) {
            let read = old.read_config(&first.export());
            prop_assert_eq!(read, Ok(first.clone()));
            if minor >= 24 && let Ok(new) = targets.read_config(&first.export()) {
                prop_assert_eq!(targets.read(&new.render().expect("JSON")), Ok(new));
            }
        }
    }

    /// TGT-88: a module with a wrong byte is rejected or read with at most its one function.
    #[test]
    fn an_edited_module_ends_in_an_answer(at in 0_usize..8192, put in "[ -~]{1,3}", old in any::<bool>()) {
        let name = if old { "kernels/0.16/add1_gpu.device.json" } else { "kernels/0.27/add1_gpu.device.json" };
        let mut text = golden_text(name).into_bytes();
        let at = at.min(text.len() - put.len());
        text[at..at + put.len()].copy_from_slice(put.as_bytes());
        if let Ok(module) = LoweredModule::read(&text) {
            prop_assert!(module.symbols().count() <= 1);
        }
    }

    #[test]
    fn hostile_text_ends_in_an_answer(minor in 2u8..28, text in "\\PC{0,60}") {
        let targets = Targets::new(Release::of(minor));
        let _ = targets.read(&text);
        let _ = targets.read(&format!("llvm -{text}"));
        let _ = targets.read(&format!("{{\"kind\":\"llvm\",{text}}}"));
    }
}
