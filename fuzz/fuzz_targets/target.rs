//! Reads any text as a target. Nothing panics, and an exported target reads as the same target. From 0.24 on so does a rendered one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tvmspec::release::Release;
use tvmspec::target::Targets;

fuzz_target!(|data: &[u8]| {
    let [minor, text @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let targets = Targets::new(Release::of(2 + minor % 26));
    let Ok(target) = targets.read(text) else { return };
    // TGT-14: up to 0.6 a target has only words, and in 0.2 a word may add others.
    if target.release.minor() < 7 {
        let text = target.render().expect("words have a text");
        assert!(target.release.minor() == 2 || targets.read(&text) == Ok(target), "a rendered target reads as the same target");
        return;
    }
    let again = targets.read_config(&target.export());
    assert!(again.as_ref() == Ok(&target), "an exported target reads as the same target");
    if let Ok(text) = target.render()
        && target.release.minor() >= 24
    {
        assert!(targets.read(&text) == Ok(target), "a rendered target reads as the same target");
    }
});
