//! Five defects, each planted in the simulated device, found by random scripts and shrunk to the smallest.
//!
//! Run: `cargo run --example planted_bugs`

use tvmspec::conformance::device::script::{Walk, walk_fresh};
use tvmspec::device::Device;
use tvmspec::device::simulated::{Bug, Simulated};

fn main() {
    let walk = Walk {
        scripts: 400,
        ..Walk::default()
    };
    for bug in Bug::ALL {
        match walk_fresh(|| Simulated::with_bug(1, bug), Device::ext_dev(0), &walk) {
            Ok(()) => println!("{bug:?}: not found"),
            Err(found) => println!("{bug:?}: {found}\n"),
        }
    }
}
