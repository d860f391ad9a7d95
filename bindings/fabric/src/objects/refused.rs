//! Functions of tables that are not offered.

use cci_fabric_sys::FI_ENOSYS;
use std::ffi::c_int;

/// What a call returns that is not offered.
pub(crate) trait Answer {
    const NOT_OFFERED: Self;
}

impl Answer for c_int {
    const NOT_OFFERED: Self = -FI_ENOSYS;
}

impl Answer for isize {
    const NOT_OFFERED: Self = -(FI_ENOSYS as Self);
}

/// A function that takes whatever it is given, and refuses.
pub(crate) trait Refuses: Sized {
    const FUNCTION: Self;
}

/// The entry of a table for what is not offered.
pub(crate) const fn refused<F: Refuses>() -> Option<F> {
    Some(F::FUNCTION)
}

macro_rules! refuses {
    ($($argument:ident)*) => {
        impl<R: Answer, $($argument),*> Refuses for unsafe extern "C" fn($($argument),*) -> R {
            const FUNCTION: Self = {
                unsafe extern "C" fn refuse<R: Answer, $($argument),*>($(_: $argument),*) -> R {
                    R::NOT_OFFERED
                }
                refuse::<R, $($argument),*>
            };
        }
    };
}

refuses!(A);
refuses!(A B);
refuses!(A B C);
refuses!(A B C D);
refuses!(A B C D E);
refuses!(A B C D E F);
refuses!(A B C D E F G);
refuses!(A B C D E F G H);
refuses!(A B C D E F G H I);
refuses!(A B C D E F G H I J);
refuses!(A B C D E F G H I J K);
refuses!(A B C D E F G H I J K L);
refuses!(A B C D E F G H I J K L M);
refuses!(A B C D E F G H I J K L M N);
refuses!(A B C D E F G H I J K L M N O P);
