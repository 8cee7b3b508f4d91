//! Misuse that the compiler rejects in safe Rust. Each failing example follows one that compiles, and differs from it in one way.

/// Only C can register a field of a type, and must guarantee that its getter and setter are valid.
/// ```
/// use tvmspec::value::types::register;
/// ```
/// ```compile_fail,E0603
/// use tvmspec::value::types::push_field;
/// ```
/// A description of a field can come only from the registry, so that its name is valid.
/// ```
/// use tvmspec::value::{index, types::{self, FieldInfo}};
/// # tvmspec::object::init();
/// let module = types::info(index::MODULE).expect("modules");
/// let field: FieldInfo = module.fields()[0];
/// assert_eq!(field.name(), "imports_");
/// ```
/// ```compile_fail,E0451
/// use tvmspec::value::{index, types::{self, FieldInfo}};
/// # tvmspec::object::init();
/// let module = types::info(index::MODULE).expect("modules");
/// let field = FieldInfo { flags: 1, ..module.fields()[0] };
/// assert_eq!(field.name(), "imports_");
/// ```
struct Fields;

/// A Rust type is read only from objects with the index of that type. A user cannot register an index that passes for it.
/// ```
/// use tvmspec::value::types::{DynamicType, ObjectIndex};
/// static TYPE: DynamicType = DynamicType::new("example.Own");
/// fn type_index() -> ObjectIndex { TYPE.index() }
/// # type_index();
/// ```
/// ```compile_fail,E0308
/// use tvmspec::value::types::{register, ObjectIndex};
/// fn type_index() -> ObjectIndex { register("example.Own", 64).unwrap() }
/// # type_index();
/// ```
/// ```compile_fail,E0423
/// use tvmspec::value::types::{register, ObjectIndex};
/// fn type_index() -> ObjectIndex { ObjectIndex(register("example.Own", 64).unwrap()) }
/// # type_index();
/// ```
struct Indices;

/// The hooks of Python are C functions, so that only C can register them.
/// ```
/// tvmspec::object::init();
/// ```
/// ```compile_fail,E0603
/// tvmspec::object::init();
/// let _ = tvmspec::function::frontend::register_hook(b"PyErr_CheckSignals", 64 as *mut _);
/// ```
struct Hooks;

/// Fields are read by name, and only from objects that have them.
/// ```
/// # tvmspec::object::init();
/// let bare = tvmspec::object::missing();
/// assert!(tvmspec::object::field(bare, "imports_").is_err());
/// ```
/// ```compile_fail,E0603
/// # tvmspec::object::init();
/// let bare = tvmspec::object::missing();
/// assert!(tvmspec::object::reflect::record::set_field(bare, "imports_").is_err());
/// ```
struct Records;

/// A description of a tensor contains a pointer to memory. The caller that passes it as an argument must guarantee that it is valid.
/// ```
/// use tvmspec::{tensor::Dtype, value::AnyView};
/// let tensor = tvmspec::object::Tensor::empty(&[2], Dtype::FLOAT32).unwrap();
/// let argument = AnyView::from(&tensor);
/// ```
/// ```compile_fail,E0133
/// use tvmspec::{tensor::Dtype, value::AnyView};
/// let tensor = tvmspec::object::Tensor::empty(&[2], Dtype::FLOAT32).unwrap();
/// let argument = AnyView::dltensor(tensor.dl());
/// ```
/// The same applies to an opaque pointer.
/// ```
/// use tvmspec::value::AnyView;
/// let argument: AnyView<'_> = 64i64.into();
/// ```
/// ```compile_fail,E0133
/// use tvmspec::value::AnyView;
/// let argument: AnyView<'_> = AnyView::handle(64 as *mut _);
/// ```
struct Arguments;

/// Users cannot access the reference counts in a header.
/// ```
/// assert!(tvmspec::object::missing().header().strong_count() > 0);
/// ```
/// ```compile_fail,E0616
/// assert!(tvmspec::object::missing().header().combined.load(std::sync::atomic::Ordering::Relaxed) > 0);
/// ```
struct Counts;
