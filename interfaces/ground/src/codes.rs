//! Codes that a standard has numbered, each with a sentence.

/// Declares an enumeration of codes, whose numbers have this type, with the text of each: `ALL`,
/// `code`, `from_code`, `text`, `c_text` for C programs, and `Display` and `Error` by the text. The
/// text is the documentation of its variant, behind what else it has.
///
/// # Example
///
/// ```
/// cci_ground::codes! {
///     /// Why a call was refused.
///     Refusal: u32:
///     Full = 1 => "all places are taken; free one",
///     Unknown = 7 => "nobody has this name; correct it",
/// }
/// assert_eq!((Refusal::Full.code(), Refusal::from_code(7)), (1, Some(Refusal::Unknown)));
/// assert_eq!((Refusal::Full.to_string(), Refusal::ALL.len()), ("all places are taken; free one".into(), 2));
/// assert_eq!((Refusal::Unknown.c_text(), Refusal::from_code(2)), (c"nobody has this name; correct it", None));
/// ```
#[macro_export]
macro_rules! codes {
    ($(#[$outer:meta])* $name:ident: $number:ident:
     $($(#[$inner:meta])* $variant:ident = $code:literal => $text:literal,)+) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        // A byte would be copied with its neighbours, by a load that waits for two stores.
        #[repr($number)]
        #[expect(clippy::exhaustive_enums, reason = "the codes are those of a standard")]
        pub enum $name {
            $($(#[$inner])* #[doc = $text] $variant = $code,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the number of the code.
            #[must_use]
            pub const fn code(self) -> $number {
                self as $number
            }

            /// Returns the code of a number, if there is one.
            #[must_use]
            pub fn from_code(code: $number) -> Option<Self> {
                Self::ALL.iter().copied().find(|of| of.code() == code)
            }

            /// Returns the text of the code.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// Returns the text of the code, which C programs may keep.
            #[must_use]
            pub const fn c_text(self) -> &'static std::ffi::CStr {
                let text = match self {
                    $(Self::$variant => concat!($text, "\0"),)+
                };
                match std::ffi::CStr::from_bytes_with_nul(text.as_bytes()) {
                    Ok(text) => text,
                    Err(_) => c"",
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.text())
            }
        }

        impl std::error::Error for $name {}
    };
}
