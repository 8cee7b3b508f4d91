//! What safe Rust cannot do to this library. Each example differs in one way from one that compiles, which comes before it.

/// A field of a type is registered by C alone, which vouches for its getter and setter.
/// ```
/// use tvmspec::value::types::register;
/// ```
/// ```compile_fail,E0603
/// use tvmspec::value::types::push_field;
/// ```
/// A description of a field comes from the registry and from nowhere else, so that its name is there.
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

/// A Rust type is read from objects of its own index alone, and no index that anybody registers is one.
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

/// The hooks of Python are C functions, so only C registers them.
/// ```
/// tvmspec::object::init();
/// ```
/// ```compile_fail,E0603
/// tvmspec::object::init();
/// let _ = tvmspec::function::frontend::register_hook(b"PyErr_CheckSignals", 64 as *mut _);
/// ```
struct Hooks;

/// Fields are read by name, from objects that have them.
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

/// A description of a tensor says where memory is, and the caller that makes an argument of it vouches for that.
/// ```
/// use tvmspec::value::{AnyView, DLDataType};
/// let tensor = tvmspec::object::Tensor::empty(&[2], DLDataType::scalar(2, 32)).unwrap();
/// let argument = AnyView::from(&tensor);
/// ```
/// ```compile_fail,E0133
/// use tvmspec::value::{AnyView, DLDataType};
/// let tensor = tvmspec::object::Tensor::empty(&[2], DLDataType::scalar(2, 32)).unwrap();
/// let argument = AnyView::dltensor(tensor.dl());
/// ```
/// So it is with an opaque pointer.
/// ```
/// use tvmspec::value::AnyView;
/// let argument: AnyView<'_> = 64i64.into();
/// ```
/// ```compile_fail,E0133
/// use tvmspec::value::AnyView;
/// let argument: AnyView<'_> = AnyView::handle(64 as *mut _);
/// ```
struct Arguments;

/// The counts in a header are not for users.
/// ```
/// assert!(tvmspec::object::missing().header().strong_count() > 0);
/// ```
/// ```compile_fail,E0616
/// assert!(tvmspec::object::missing().header().combined.load(std::sync::atomic::Ordering::Relaxed) > 0);
/// ```
struct Counts;
