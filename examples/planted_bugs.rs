//! Five defects planted in the simulated device. Random scripts find each one, and are then reduced to the smallest failing script.
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
