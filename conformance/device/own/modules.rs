//! Programs about device modules that need no driver.

use super::code::what_a_module_has;
use super::host::{module_of_a_library, modules_of_payloads};
use crate::conformance::behaviour::{Behaviour, Outcome};
use crate::device::{DEV_47, DEV_53, DEV_54, DEV_56};

/// What a module has before there is a driver (DEV-54).
pub const CASES: &[Behaviour<fn() -> Outcome>] = &[
    Behaviour {
        id: "device/what-a-module-has",
        rules: &[DEV_47, DEV_53, DEV_54],
        releases: "0.2..",
        why: "a kernel that is called with other values than it takes reads what is behind them",
        program: &[
            "With that module: its kind is that of its driver, its kernels are `add` and `mul`, which take 4 and 2 values.",
            "`add` with one value is rejected by DEV-53, with three by DEV-47, with a number for its handle by DEV-53, each as type. Nothing is loaded.",
        ],
        run: what_a_module_has,
    },
    Behaviour {
        id: "device/modules-of-payloads",
        rules: &[DEV_47, DEV_54],
        releases: "0.22..",
        why: "the kernels of a module are known before there is a driver",
        program: &[
            "Reads the golden payloads of OpenCL and CUDA: kernels `add_one` and `scalars`, which take two values for their two launch tags beside their own. The first kernel is `add_one`.",
            "Reading one of Metal, which the testee has no driver for, is rejected by DEV-54 as unsupported. Kinds that the testee is built without are left out; it cannot run the program where both are.",
        ],
        run: modules_of_payloads,
    },
    Behaviour {
        id: "device/module-of-a-library",
        rules: &[DEV_53, DEV_54, DEV_56],
        releases: "0.22..",
        why: "a frontend calls a kernel of a library with whatever values it has",
        program: &[
            "Loads the golden library binary with an OpenCL module, whose kernel `main_kernel` takes two handles and has two launch tags, without a driver. Saved, the module is its payload. There is no function `no_kernel`.",
            "With null for a handle and 1 for a number: one value less or more, a number, a float or a text for the first handle are rejected by DEV-53 with an error of kind `TypeError`, whose text in the first two cases has `takes 2 arguments and 2 launch parameters, the call has 3 values`. Four values of their types on device 1000 are an error of another kind.",
        ],
        run: module_of_a_library,
    },
];
