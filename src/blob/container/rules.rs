//! The rules of containers and packing: the second half of the chapter `blob`.

crate::rule::rules! {
    BLOB_50 "BLOB-50"
    BLOB_51 "BLOB-51"
    BLOB_52 "BLOB-52"
    BLOB_53 "BLOB-53"
    BLOB_54 "BLOB-54"
    BLOB_55 "BLOB-55"
    BLOB_56 "BLOB-56"
    BLOB_57 "BLOB-57"
    BLOB_58 "BLOB-58"
    BLOB_59 "BLOB-59"
    BLOB_60 "BLOB-60"
    BLOB_61 "BLOB-61"
    BLOB_62 "BLOB-62"
    BLOB_63 "BLOB-63"
    BLOB_64 "BLOB-64"
    BLOB_65 "BLOB-65"
    BLOB_66 "BLOB-66"
    BLOB_67 "BLOB-67"
    BLOB_68 "BLOB-68"
    BLOB_69 "BLOB-69"
}
