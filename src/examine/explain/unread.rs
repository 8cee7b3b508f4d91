//! Members of archives that were not read: nothing is concluded from what they may hold.

use super::account::{Account, refine};
use super::package::Package;
use crate::blob::container::{File, FileForm, Part, Role, Symbol};
use crate::examine::loading::{Load, LoadOutcome};

/// Takes back what `account` says of releases, where an archive has members that a linker takes and that were not read.
pub(super) fn doubt(file: &File<'_>, account: &mut Account) {
    let unread: Vec<&Part<'_>> = file.parts.iter().filter(|part| is_unread(part)).collect();
    let Some(first) = unread.first().filter(|_| is_linked_whole(file)) else {
        return;
    };
    let what = match first.form {
        FileForm::CText => "is source in which no definition is known",
        _ => "is of no form that is known here",
    };
    let more = match unread.len() {
        1 => String::new(),
        count => format!(", as {} others were not", count.saturating_sub(1)),
    };
    let why = format!(
        "member `{}` was not read{more}: it {what}, and what a linker makes of it decides",
        first.member
    );
    refine(&mut account.loads, |_, load| {
        matches!(load.outcome, LoadOutcome::Loads | LoadOutcome::Silent)
            .then(|| Load::unknown(why.clone()))
    });
}

/// Whether every member is linked into one library: that of an archive without libraries, which is no package.
fn is_linked_whole(file: &File<'_>) -> bool {
    let joined = file.form.is_archive() && file.form != FileForm::MachOFat;
    let image = |part: &Part<'_>| part.form.is_object() && !super::is_linked(part);
    joined && !file.parts.iter().any(image) && Package::of(file).is_none()
}

/// Whether nothing is known of what a linker finds in this member.
fn is_unread(part: &Part<'_>) -> bool {
    let is_call = |symbol: &Symbol<'_>| matches!(symbol.role, Role::Needs(_));
    let defines_nothing = part.blobs.is_empty() && part.symbols.iter().all(is_call);
    part.form == FileForm::Unknown || part.form == FileForm::CText && defines_nothing
}
