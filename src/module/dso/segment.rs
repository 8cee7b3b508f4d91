//! Mapped segments: the size of the memory after an address, and its permissions (MOD-18).

use std::ffi::c_void;
use std::ptr::NonNull;

/// Returns the number of readable bytes from `address` to the end of its segment, if it is known.
pub(crate) fn readable_bytes_from(address: NonNull<c_void>) -> Option<usize> {
    let start = address.as_ptr() as usize;
    Some(segment(start)?.end - start)
}

/// Returns whether `bytes` from `address` on may be written. If segments are unknown, every address counts as writable, as in every
/// release.
pub(crate) fn can_write(address: NonNull<c_void>, bytes: usize) -> bool {
    let start = address.as_ptr() as usize;
    writable(segment(start), start, bytes)
}

pub(super) fn writable(segment: Option<MappedSegment>, start: usize, bytes: usize) -> bool {
    match segment {
        // MOD-05, MOD-06: releases write to any symbol of that name, and crash if it is a constant.
        Some(segment) => segment.writable && segment.end - start >= bytes,
        None => !cfg!(target_os = "linux"),
    }
}

/// Returns whether `address` is in executable memory. If segments are unknown, every address counts as executable.
pub(crate) fn can_execute(address: NonNull<c_void>) -> bool {
    executable(segment(address.as_ptr() as usize))
}

pub(super) fn executable(segment: Option<MappedSegment>) -> bool {
    match segment {
        Some(segment) => segment.executable,
        None => !cfg!(target_os = "linux"),
    }
}

/// A mapped segment of a library.
#[derive(Clone, Copy, Debug)]
pub(super) struct MappedSegment {
    pub(super) end: usize,
    pub(super) writable: bool,
    pub(super) executable: bool,
}

/// A program header of a 64-bit ELF file.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[repr(C)]
pub(super) struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_size: u64,
    memory_size: u64,
    alignment: u64,
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
impl ProgramHeader {
    /// Returns the readable segment that contains `address`, among the `headers` of an object loaded at `base`.
    pub(super) fn holding(headers: &[Self], base: u64, address: u64) -> Option<MappedSegment> {
        const LOAD: u32 = 1;
        const EXECUTE: u32 = 1;
        const WRITE: u32 = 2;
        const READ: u32 = 4;
        headers.iter().find_map(|header| {
            let start = base.wrapping_add(header.address);
            let end = start.wrapping_add(header.memory_size);
            let holds = start <= address && address < end;
            // MOD-18: unreadable memory cannot contain a blob, even if a segment spans it.
            (header.kind == LOAD && header.flags & READ != 0 && holds).then_some(MappedSegment {
                end: end as usize,
                writable: header.flags & WRITE != 0,
                executable: header.flags & EXECUTE != 0,
            })
        })
    }
}

/// Returns the readable segment of a loaded library that contains `address`. The dynamic linker is asked, not the file.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(super) fn segment(address: usize) -> Option<MappedSegment> {
    use std::ffi::{c_char, c_int};

    #[repr(C)]
    struct DlPhdrInfo {
        base: u64,
        name: *const c_char,
        headers: *const ProgramHeader,
        count: u16,
    }
    unsafe extern "C" {
        fn dl_iterate_phdr(
            callback: unsafe extern "C" fn(*mut DlPhdrInfo, usize, *mut c_void) -> c_int,
            data: *mut c_void,
        ) -> c_int;
    }
    struct Search {
        address: u64,
        found: Option<MappedSegment>,
    }

    unsafe extern "C" fn visit(object: *mut DlPhdrInfo, _size: usize, data: *mut c_void) -> c_int {
        // SAFETY: the dynamic linker passes an object that is valid for the call.
        let object = unsafe { &*object };
        // SAFETY: `data` is the `Search` below, which only this call uses.
        let search = unsafe { &mut *data.cast::<Search>() };
        // A slice must not begin at null, not even an empty one.
        if object.headers.is_null() {
            return 0;
        }
        // SAFETY: an object of the dynamic linker has `count` headers at `headers`, which is not null as checked above.
        let headers = unsafe { std::slice::from_raw_parts(object.headers, object.count.into()) };
        // MOD-18: the mapped memory counts, because the file may have been replaced since then, and the symbol alone does not show
        // where its bytes end.
        search.found = ProgramHeader::holding(headers, object.base, search.address);
        // A result other than 0 ends the iteration.
        search.found.is_some().into()
    }

    let mut search = Search {
        address: address as u64,
        found: None,
    };
    // SAFETY: `visit` has the signature that the linker calls, and `search` outlives the call.
    unsafe { dl_iterate_phdr(visit, (&raw mut search).cast()) };
    search.found
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub(super) fn segment(_address: usize) -> Option<MappedSegment> {
    None
}
