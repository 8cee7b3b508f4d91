//! What users write: no panic, what is exported reads as the same target, and what is rendered from 0.24 on, too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tvmspec::release::Release;
use tvmspec::target::Targets;

fuzz_target!(|data: &[u8]| {
    let [minor, text @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let targets = Targets::new(Release::of(2 + minor % 26));
    let Ok(target) = targets.read(text) else { return };
    // TGT-14: up to 0.6 there are words alone, and in 0.2 a word may bring others.
    if target.release.minor() < 7 {
        let text = target.render().expect("words have a text");
        assert!(target.release.minor() == 2 || targets.read(&text) == Ok(target), "what is rendered reads as the same target");
        return;
    }
    let again = targets.read_config(&target.export());
    assert!(again.as_ref() == Ok(&target), "what is exported reads as the same target");
    if let Ok(text) = target.render()
        && target.release.minor() >= 24
    {
        assert!(targets.read(&text) == Ok(target), "what is rendered reads as the same target");
    }
});
