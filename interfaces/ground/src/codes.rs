//! Codes that a standard has numbered, each with a sentence.

/// Declares an enumeration of codes, whose numbers have this type, with the text of each: `ALL`,
/// `code`, `from_code`, `text`, and `Display` and `Error` by the text. Each variant has its
/// documentation.
///
/// # Example
///
/// ```
/// cci_ground::codes! {
///     /// Why a call was refused.
///     Refusal: u32:
///     /// All places are taken.
///     Full = 1 => "all places are taken; free one",
///     /// Nobody has the name.
///     Unknown = 7 => "nobody has this name; correct it",
/// }
/// assert_eq!((Refusal::Full.code(), Refusal::from_code(7)), (1, Some(Refusal::Unknown)));
/// assert_eq!((Refusal::Full.to_string(), Refusal::ALL.len()), ("all places are taken; free one".into(), 2));
/// assert_eq!(Refusal::from_code(2), None);
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
            $($(#[$inner])* $variant = $code,)+
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
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.text())
            }
        }

        impl std::error::Error for $name {}
    };
}
