//! Checks that an accepted executable can be printed whole. Every index and jump that the machine follows stays inside it.

#![no_main]

#[path = "naive/mod.rs"]
mod naive;

use libfuzzer_sys::fuzz_target;
use tvmspec::release::Layout;
use tvmspec::rule::Findings;
use tvmspec::vm::Executable;
use tvmspec::wire::{Cursor, Writer};

fuzz_target!(|data: &[u8]| {
    for layout in Layout::ALL {
        let mut cursor = Cursor::new(data);
        let mut findings = Findings::default();
        let Ok(executable) = Executable::read(layout, &mut cursor, &mut findings) else {
            let second = naive::vm::read(&mut naive::In(data), layout, &mut naive::Odd::new());
            assert_eq!(second, None, "what keeps every rule is read");
            continue;
        };
        let mut odd = naive::Odd::new();
        naive::vm::read(&mut naive::In(data), layout, &mut odd).expect("the second reading accepts it too");
        assert_eq!(naive::findings(&findings, &["PAY", "TEN", "WIRE"]), odd);
        let used = data.len() - cursor.remaining();
        let text = executable.disassemble();
        assert!(text.len() <= 400 * (used + 64), "text of {} bytes from {used}", text.len());
        let _ = executable.to_json();
        // Canonical bytes read back the same.
        let mut out = Writer::new();
        if executable.code().write(layout, &mut out).is_ok() {
            let bytes = out.into_bytes();
            let mut again = Cursor::new(&bytes);
            let read = Executable::read(layout, &mut again, &mut Findings::default()).expect("written bytes can be read");
            // The values are not compared, because NaN never equals itself.
            assert_eq!(read.disassemble(), text, "written bytes read as the same executable");
            let mut twice = Writer::new();
            read.code().write(layout, &mut twice).expect("an executable from the writer can be written");
            assert_eq!(twice.into_bytes(), bytes, "written bytes read as the same executable");
        }
    }
});
