//! The bound on allocations.

use super::*;

#[test]
fn allocations_of_nothing_have_a_number_too() {
    let mut memory = SessionMemory::new(1 << 20);
    for _ in 0..MOST {
        memory.enter(Allocation {
            device: Device::CPU,
            space: Space::NULL,
            size: 0,
            is_client: false,
            writable: true,
        });
    }
    let more = memory.alloc(Device::CPU, 0, 64, Dtype::UINT8);
    let error = more.expect_err("too many");
    let broken = error.violation().expect("a rule");
    assert_eq!((broken.rule(), broken.kind()), (RPC_86, Kind::Limit));
    memory.leave_tensor(FIRST);
    let token = memory.alloc(Device::CPU, 0, 64, Dtype::UINT8);
    token.expect("one was freed");
}
