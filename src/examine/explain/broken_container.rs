//! The report on a file with a broken container.

use super::account::{Account, loads};
use super::library::library;
use super::linked_image::{LinkedImage, is_image};
use super::raw;
use crate::blob::container::{self, FileForm, Size};
use crate::blob::{ForeignKinds, detect};
use crate::examine::loading::Load;
use crate::examine::{Format, Unit};
use crate::payload::file;
use crate::release::Release;
use crate::rule::Violation;
use std::borrow::Cow;

/// Reports a file whose container breaks a rule.
///
/// The outcome is unknown for every release, unless the only fault is a header that counts too many bytes (BLOB-53).
pub(super) fn explain_broken_container(
    name: &str,
    bytes: &[u8],
    broken: &Violation,
    only: Option<Release>,
) -> Account {
    if let Some(account) = overlong(name, bytes, broken, only) {
        return account;
    }
    if let Some(account) = module_file(name, broken, only) {
        return account;
    }
    let form = FileForm::detect(bytes);
    let cut = container::cut_segment(bytes, bytes.len() as u64).filter(|_| is_image(form));
    let load = |_| match &cut {
        Some(why) => Load::fails(format!(
            "opening it ends the process (SIGBUS): the file is cut, {why} [BLOB-55]"
        )),
        None => Load::broken(broken),
    };
    // BLOB-69: the first bytes determine the form, even if the container cannot be read.
    let mut account = Account::new(format!("{name}: {}", form.title()), loads(only, load));
    account.is_broken = true;
    account.remarks.push(
        "The file around the library is broken. The linker and the loader of the system decide what happens to it, before TVM reads anything."
            .into(),
    );
    account
}

/// Reports a file of a device module if its side file is missing or broken (PAY-23). Returns `None` for any other file.
fn module_file(name: &str, broken: &Violation, only: Option<Release>) -> Option<Account> {
    // Rules of chapter payload show that it is a module file. A container breaks rules of chapter blob.
    broken.rule().id().starts_with("PAY-").then_some(())?;
    let format = file::file_format(file::extension(name)?)?;
    let side = file::side_file_name(name);
    let is_missing = broken.rule().id() == "PAY-23";
    let load = |release: Release| match format.loader(release) {
        None => Load::without_loader(format.kind, format.extension),
        Some(loader) if is_missing => Load::fails(format!("`{loader}` finds no `{side}`")),
        Some(_) => Load::broken(broken),
    };
    let title = format!("{name}: code of a module of kind `{}`", format.kind);
    let mut account = Account::new(title, loads(only, load));
    account.remarks.push(if is_missing {
format!(
            "The side file `{side}` is missing. It states how the functions of this code are launched: put it into the same folder. `tvmspec verify` shows the rule."
        )
} else {
format!(
            "The code and its side file `{side}` do not make a module: {broken}."
        )
});
    Some(account)
}

/// Reports a blob whose header counts more bytes than its symbol has (BLOB-53). No release checks the size of the symbol.
///
/// Returns `None` if another rule is broken, instead of this one or in addition to it.
fn overlong(
    name: &str,
    whole: &[u8],
    broken: &Violation,
    only: Option<Release>,
) -> Option<Account> {
    if broken.rule().id() != "BLOB-53" {
        return None;
    }
    let offset = broken.offset()?;
    let start = usize::try_from(offset).ok()?;
    // BLOB-53 is checked when the container is opened. With a length of zero in the header, the rest of the container can be read.
    let mut bytes = whole.to_vec();
    bytes.get_mut(start..)?.first_chunk_mut::<8>()?.fill(0);
    let file = container::open(&bytes).ok()?;
    // The violation has the offset of the library binary but not its symbol. The offset identifies the symbol.
    let (index, part) = file
        .parts
        .iter()
        .enumerate()
        .find(|(_, part)| part.blobs.iter().any(|blob| blob.offset == Some(offset)))?;
    let blob = part.blobs.iter().find(|blob| blob.offset == Some(offset))?;
    // BLOB-53: if the format has no sizes of symbols, the next symbol or the end of the section is the bound.
    let available = match blob.size {
        Size::Known(size) => size,
        Size::Derived { room } => room,
    };
    let available = usize::try_from(available).ok()?;
    // The content comes from the unchanged file, because the loaders trust its header.
    let content = whole.get(start..)?.get(..available)?;
    let unit = Unit {
        name: format!("{name}, symbol {}", blob.symbol),
        offset: Some(offset),
        format: Format::Library {
            layout: detect::detect(content, Some(&blob.symbol)),
            symbol: blob.symbol.clone(),
        },
        bytes: Cow::Borrowed(content),
        part: index,
        foreign: ForeignKinds::default(),
    };
    let linked = LinkedImage::read(&file, &bytes);
    let mut account = library(&unit, part, is_image(file.form), &linked, only);
    account.raw = raw(&file);
    account.looked_at = linked.looked_at();
    Some(account)
}
