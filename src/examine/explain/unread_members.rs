//! Archive members that could not be read. No verdict may depend on their content.

use super::account::{Account, refine};
use super::package::Package;
use crate::blob::container::{ContainerFile, ContainerPart, FileForm, Role, Symbol};
use crate::examine::loading::{Load, LoadOutcome};

/// Withdraws the verdicts of `account` if the archive has members that a linker uses and that could not be read.
pub(super) fn withdraw_verdicts(file: &ContainerFile<'_>, account: &mut Account) {
    let unread: Vec<&ContainerPart<'_>> =
        file.parts.iter().filter(|part| is_unread(part)).collect();
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

/// Returns whether all members of the archive are linked into one library. False for an archive with libraries, and for a package.
fn is_linked_whole(file: &ContainerFile<'_>) -> bool {
    let joined = file.form.is_archive() && file.form != FileForm::MachOFat;
    let image = |part: &ContainerPart<'_>| part.form.is_object() && !super::is_linked(part);
    joined && !file.parts.iter().any(image) && Package::recognize(file).is_none()
}

/// Returns whether the content that a linker would use from this member is unknown.
fn is_unread(part: &ContainerPart<'_>) -> bool {
    let is_call = |symbol: &Symbol<'_>| matches!(symbol.role, Role::Needs(_));
    let defines_nothing = part.blobs.is_empty() && part.symbols.iter().all(is_call);
    part.form == FileForm::Unknown || part.form == FileForm::CText && defines_nothing
}
