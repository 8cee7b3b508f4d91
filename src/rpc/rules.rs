//! The rules of chapter `rpc`. The documentation of each constant is the text of the rule in `spec/rpc.md`.
//! The text of the chapter around the rules follows.
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rules/rpc.md"))]

crate::rule::rules! {
    RPC_01 RPC_02 RPC_03 RPC_04 RPC_05 RPC_10 RPC_11 RPC_12 RPC_13 RPC_14 RPC_15 RPC_16 RPC_20 RPC_21
    RPC_22 RPC_23 RPC_24 RPC_25 RPC_26 RPC_27 RPC_28 RPC_30 RPC_31 RPC_40 RPC_41 RPC_42 RPC_43 RPC_44
    RPC_45 RPC_46 RPC_47 RPC_48 RPC_49
    RPC_50 RPC_51 RPC_52 RPC_53 RPC_54 RPC_55 RPC_56 RPC_57 RPC_58 RPC_59
    RPC_60 RPC_61 RPC_62 RPC_63 RPC_64 RPC_65 RPC_66 RPC_67
    RPC_70 RPC_71 RPC_72 RPC_73 RPC_74 RPC_76
    RPC_80 RPC_81 RPC_82 RPC_83 RPC_84 RPC_85 RPC_86 RPC_87 RPC_88 RPC_89 RPC_90 RPC_91 RPC_92 RPC_93 RPC_94
    RPC_100 RPC_101 RPC_102 RPC_103 RPC_104
}
