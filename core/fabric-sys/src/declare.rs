//! How structures, tables and numbers are declared, each with the version that brought it.

/// A field of a structure.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// As in the headers, but `r#type` for `type`.
    pub name: &'static str,
    /// Bytes from the beginning of the structure.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
    /// The version of the API that brought it.
    pub since: u32,
}

/// A structure or a table of functions.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// Without `struct`.
    pub name: &'static str,
    /// The version of the API that brought it; 1.5 for all that are older.
    pub since: u32,
    /// The size of the newest version, bytes.
    pub size: usize,
    /// Bytes.
    pub alignment: usize,
    /// In their order.
    pub fields: &'static [Field],
}

impl Structure {
    /// The size that the structure has in a version of the API, bytes; that of 1.5 for all older
    /// ones.
    #[must_use]
    pub const fn size_at(&self, version: u32) -> usize {
        let version = if version < FIRST { FIRST } else { version };
        let mut at = 0;
        while at < self.fields.len() {
            // What is newer has only ever been appended.
            if self.fields[at].since > version {
                return self.fields[at].offset.next_multiple_of(self.alignment);
            }
            at += 1;
        }
        self.size
    }
}

/// The oldest version that is told apart from older ones.
pub(crate) const FIRST: u32 = crate::fi_version(1, 5);

/// A number.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    /// As in the headers.
    pub name: &'static str,
    /// As an unsigned number of 64 bits.
    pub value: u64,
    /// The version of the API that brought it; 1.5 for all that are older.
    pub since: u32,
}

/// A structure of libfabric.
pub trait Layout {
    /// Where its fields lie.
    const LAYOUT: Structure;
}

/// The size that a structure has in a version of the API, bytes: so much of it may be read or
/// written in a program that asked for this version.
///
/// ```
/// use cci_fabric_sys::{fi_cq_err_entry, fi_version, size_at};
///
/// assert_eq!(size_at::<fi_cq_err_entry>(fi_version(1, 19)), 80);
/// assert_eq!(size_at::<fi_cq_err_entry>(fi_version(1, 20)), 88);
/// ```
#[must_use]
pub const fn size_at<T: Layout>(version: u32) -> usize {
    T::LAYOUT.size_at(version)
}

/// The version in `#[since(major, minor)]`, or the oldest one.
macro_rules! since {
    () => {
        $crate::declare::FIRST
    };
    ($major:literal, $minor:literal) => {
        $crate::fi_version($major, $minor)
    };
}

/// Declares structures, and the list of them as `STRUCTURES`.
macro_rules! structures {
    ($(
        $(#[doc = $text:literal])*
        $(#[since($major:literal, $minor:literal)])?
        struct $name:ident { $(
            $(#[doc = $field_text:literal])*
            $(#[since($field_major:literal, $field_minor:literal)])?
            $field:ident: $type:ty,
        )* }
    )*) => {
        $(
            $(#[doc = $text])*
            #[derive(Clone, Copy)]
            #[repr(C)]
            pub struct $name { $(
                $(#[doc = $field_text])*
                pub $field: $type,
            )* }

            impl $crate::Layout for $name {
                const LAYOUT: $crate::Structure = $crate::Structure {
                    name: stringify!($name),
                    since: since!($($major, $minor)?),
                    size: size_of::<$name>(),
                    alignment: align_of::<$name>(),
                    fields: &[$($crate::Field {
                        name: stringify!($field),
                        offset: std::mem::offset_of!($name, $field),
                        size: size_of::<$type>(),
                        // A field is no older than its structure.
                        since: since!($($field_major, $field_minor)?),
                    },)*],
                };
            }
        )*

        pub(crate) const STRUCTURES: &[$crate::Structure] = &[$(<$name as $crate::Layout>::LAYOUT,)*];
    };
}

/// Declares tables of functions, each of which begins with its own size in bytes, and the list of
/// them as `TABLES`.
macro_rules! tables {
    ($(
        $(#[doc = $text:literal])*
        $(#[since($major:literal, $minor:literal)])?
        struct $name:ident { $(
            $(#[since($field_major:literal, $field_minor:literal)])?
            $field:ident: fn($($argument:ty),* $(,)?) $(-> $result:ty)?,
        )* }
    )*) => {
        $(
            $(#[doc = $text])*
            #[derive(Clone, Copy)]
            #[repr(C)]
            pub struct $name {
                /// Bytes of the table.
                pub size: usize,
                $(pub $field: Option<unsafe extern "C" fn($($argument),*) $(-> $result)?>,)*
            }

            impl $crate::Layout for $name {
                const LAYOUT: $crate::Structure = $crate::Structure {
                    name: stringify!($name),
                    since: since!($($major, $minor)?),
                    size: size_of::<$name>(),
                    alignment: align_of::<$name>(),
                    fields: &[
                        $crate::Field {
                            name: "size",
                            offset: 0,
                            size: size_of::<usize>(),
                            since: $crate::declare::FIRST,
                        },
                        $($crate::Field {
                            name: stringify!($field),
                            offset: std::mem::offset_of!($name, $field),
                            size: size_of::<usize>(),
                            since: since!($($field_major, $field_minor)?),
                        },)*
                    ],
                };
            }
        )*

        pub(crate) const TABLES: &[$crate::Structure] = &[$(<$name as $crate::Layout>::LAYOUT,)*];
    };
}

/// Declares numbers, and the list of them as `CONSTANTS`.
macro_rules! constants {
    ($($type:ty { $(
        $(#[since($major:literal, $minor:literal)])?
        $name:ident = $value:expr;
    )* })*) => {
        $($(pub const $name: $type = $value;)*)*

        pub(crate) const CONSTANTS: &[$crate::Constant] = &[$($($crate::Constant {
            name: stringify!($name),
            value: $name as u64,
            since: since!($($major, $minor)?),
        },)*)*];
    };
}
