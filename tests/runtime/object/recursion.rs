//! Operations on containers that nest or contain themselves.

use tvmspec::function::registry;
use tvmspec::object::{Array, List, Tensor, sequence_of};
use tvmspec::tensor::{Device, Dtype};
use tvmspec::value::dlpack::DLTensor;
use tvmspec::value::{Any, cast};

#[test]
fn a_search_for_devices_ends_in_what_nests_and_in_what_is_in_itself() {
    tvmspec::object::init();
    let first = registry::require("ffi.ContainerFindFirstNonCPUDevice").unwrap();
    let device = |value: &Any| {
        let found = first.call_packed(&[value.view()]).unwrap();
        cast::<Device>(found.view()).unwrap()
    };
    let own = List::new(vec![]);
    own.push(own.clone().into());
    assert_eq!(device(&own.clone().into()), Device::CPU);
    own.clear();
    // Each list holds the one before it twice, so 100 lists have 2^100 paths.
    let mut twice = Any::from(List::new(vec![]));
    for _ in 0..100 {
        twice = Any::from(List::new(vec![twice.clone(), twice]));
    }
    assert_eq!(device(&twice), Device::CPU);

    let elsewhere = |device_id| {
        let dl = DLTensor {
            data: std::ptr::null_mut(),
            device: Device {
                kind: 2,
                id: device_id,
            },
            ndim: 0,
            dtype: Dtype::FLOAT32,
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        // SAFETY: the tensor has no memory, and it is not read.
        Any::from(unsafe { Tensor::over(dl, Box::new(|| ())) })
    };
    let mut links = vec![List::new(vec![elsewhere(0)])];
    for at in 0..200_000 {
        links.push(List::new(vec![links[at].clone().into(), elsewhere(1)]));
    }
    let all = Any::from(links[200_000].clone());
    assert_eq!(device(&all).id, 0, "depth first");
    // The lists are cleared from the inside out, because the end of a chain of values recurses, as in the reference.
    for link in links {
        link.clear();
    }
}

/// Returns the value after that many steps from `value`, each to an element of a sequence.
pub(crate) fn descend(value: &Any, steps: usize) -> Any {
    (0..steps).fold(value.clone(), |value, _| {
        sequence_of(value.view()).unwrap()[0].clone()
    })
}

#[test]
fn a_deep_copy_has_no_original_of_a_container_in_itself() {
    tvmspec::object::init();
    let copy = registry::lookup("ffi.DeepCopy").unwrap();
    let place = |value: &Any| value.as_object().unwrap().as_ptr();
    // The value is [[[..]]]: an array, a list and an array, followed by the first one again.
    let list = List::new(Vec::new());
    let first = Any::from(Array::new(vec![list.clone().into()]));
    let inner = Any::from(Array::new(vec![first.clone()]));
    list.push(inner.clone());
    // The copy starts from each of the three, and from a fourth array outside, from which two paths lead to the last array.
    let outside = Array::new(vec![first.clone(), inner.clone()]).into();
    let originals = [&first, &inner, &list.clone().into()].map(place);
    for from in [&first, &inner, &list.clone().into(), &outside] {
        let copied = copy.call_packed(&[from.view()]).unwrap();
        for steps in 0..7 {
            let met = descend(&copied, steps);
            assert!(!originals.contains(&place(&met)), "{steps}");
        }
        // Three steps lead back to the start. From outside, they lead to the array that is the second element.
        let again = if place(from) == place(&outside) {
            sequence_of(copied.view()).unwrap()[1].clone()
        } else {
            copied.clone()
        };
        assert_eq!(place(&descend(&copied, 3)), place(&again));
        // A value that contains itself would never end.
        let lists = (0..3).filter_map(|steps| cast::<List>(descend(&copied, steps).view()).ok());
        let lists: Vec<List> = lists.collect();
        lists.iter().for_each(List::clear);
    }
    list.clear();
}
