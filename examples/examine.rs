//! Prints the facts about a file that the command line prints, as Rust values: its content, broken rules, and the releases that load it. It
//! also prints the payloads of its modules. No code from the file runs.
//!
//! ```text
//! cargo run --example examine -- golden/blob/opencl-0.6.bin
//! ```

use std::error::Error;
use tvmspec::blob::Blob;
use tvmspec::examine::explain::{Account, Need};
use tvmspec::examine::loading::{Load, LoadOutcome};
use tvmspec::examine::unpack::unpack;
use tvmspec::examine::verify::{LocatedProblem, Verification};
use tvmspec::examine::{Format, Subject, Unit};
use tvmspec::rule::Violation;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: examine FILE")?;
    let bytes = std::fs::read(&path)?;
    let subject = Subject::open(&path, &bytes, None)?;

    let verification: Verification = subject.verify()?;
    for found in &verification.violations {
        let LocatedProblem { place, field, .. } = found;
        let broken: &Violation = &found.what;
        println!("{place}: {broken} {field}");
    }
    println!(
        "{path}: {} violations, {} findings",
        verification.violations.len(),
        verification.found()
    );

    for account in subject.explain()? {
        print_account(&account);
    }
    for unit in subject.units() {
        print_payloads(&unit)?;
    }
    Ok(())
}

fn print_account(account: &Account) {
    println!("{}", account.title);
    for (releases, Load { outcome, why, .. }) in &account.loads {
        let verdict = match outcome {
            LoadOutcome::Loads => "load it",
            LoadOutcome::Silent => "load it, and something is missing",
            LoadOutcome::Unknown => "may load it",
            LoadOutcome::Fails => "reject it",
        };
        println!("  {releases} {verdict}: {why}");
    }
    for Need { kind, about, .. } in &account.needs {
        println!("  needs `{kind}`: {about}");
    }
}

fn print_payloads(unit: &Unit<'_>) -> Result<(), Violation> {
    let Format::Library { layout, .. } = unit.format else {
        return Ok(());
    };
    let blob = Blob::read(&unit.bytes, layout)?.value;
    let unpacked = unpack(blob)?;
    println!("{}: {}", unit.name, unpacked.manifest());
    for (name, payload) in unpacked.files() {
        println!("  {name}: {} bytes", payload.len());
    }
    Ok(())
}
