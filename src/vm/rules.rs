//! The rules of chapter `vm`. The documentation of each constant is the text of the rule in `spec/vm.md`.
//! The text of the chapter around the rules follows.
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rules/vm.md"))]

crate::rule::rules! {
    VM_01 VM_02 VM_03 VM_04 VM_05 VM_11 VM_12 VM_13 VM_14 VM_20 VM_21 VM_22 VM_23 VM_24 VM_25 VM_28
    VM_29 VM_30 VM_31 VM_32 VM_33 VM_40 VM_41 VM_42 VM_43 VM_44 VM_45 VM_46 VM_47 VM_48 VM_49 VM_50
    VM_51 VM_52 VM_53 VM_54 VM_55 VM_56 VM_57 VM_58 VM_60 VM_61 VM_62 VM_63 VM_64 VM_65 VM_66
}
