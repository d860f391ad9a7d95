//! What lies in the global address space, and what can be reduced.

use crate::sys::Bits;

/// Values of which any bits are one: whole numbers and floating point numbers. Others write global
/// memory at any time, so that nothing else may lie there for a safe program.
///
/// # Example
///
/// ```
/// fn size<T: cci_splitc::Plain>(_: T) -> usize {
///     size_of::<T>()
/// }
/// assert_eq!((size(1_u16), size(1.0_f64)), (2, 8));
/// ```
pub trait Plain: Bits + Default + 'static {}

impl<T: Bits + Default + 'static> Plain for T {}

/// What a reduction or a scan makes of two values.
///
/// # Example
///
/// ```
/// use cci_splitc::{Number, Op};
///
/// assert_eq!((u32::fold(Op::Add, 3, 4), f64::fold(Op::Max, 3.5, 4.5)), (7, 4.5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "those of the language")]
pub enum Op {
    /// The sum; whole numbers wrap around.
    Add,
    /// The product; whole numbers wrap around.
    Mul,
    /// The larger one.
    Max,
    /// The smaller one.
    Min,
}

/// Numbers that can be reduced.
///
/// # Example
///
/// ```
/// use cci_splitc::{Number, Op};
///
/// assert_eq!(i64::fold(Op::Min, -3, 4), -3);
/// ```
pub trait Number: Plain {
    /// Returns what the operation makes of two values.
    #[must_use]
    fn fold(op: Op, a: Self, b: Self) -> Self;
}

macro_rules! whole {
    ($($type:ty)+) => {
        $(impl Number for $type {
            fn fold(op: Op, a: Self, b: Self) -> Self {
                match op {
                    Op::Add => a.wrapping_add(b),
                    Op::Mul => a.wrapping_mul(b),
                    Op::Max => a.max(b),
                    Op::Min => a.min(b),
                }
            }
        })+
    };
}

macro_rules! floating {
    ($($type:ty)+) => {
        $(impl Number for $type {
            fn fold(op: Op, a: Self, b: Self) -> Self {
                match op {
                    Op::Add => a + b,
                    Op::Mul => a * b,
                    Op::Max => a.max(b),
                    Op::Min => a.min(b),
                }
            }
        })+
    };
}

whole! { i32 u32 i64 u64 }
floating! { f32 f64 }
