//! Releases and ranges of them as text.

use tvmspec::release::{Release, Releases};

#[test]
fn ranges_read_as_they_print() {
    for text in ["..", "0.7..", "..0.6", "0.7..0.20"] {
        assert_eq!(text.parse::<Releases>().unwrap().to_string(), text);
    }
    assert_eq!("v0.8.0".parse::<Release>().unwrap(), Release::of(8));
    assert!("1.0".parse::<Release>().is_err());
    assert!("0.9..0.7".parse::<Releases>().is_err());
}
