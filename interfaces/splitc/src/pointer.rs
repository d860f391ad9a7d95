//! Pointers into the global address space.

use crate::number::Plain;
use std::fmt;
use std::marker::PhantomData;

/// The bits of an address.
const ADDRESS: u32 = 48;

/// Rank and address of a global pointer's 64 bits.
pub(crate) fn parts(bits: u64) -> (u32, u64) {
    (u32::from((bits >> ADDRESS) as u16), bits & ((1 << ADDRESS) - 1))
}

/// The 64 bits of a global pointer.
pub(crate) fn bits(rank: u32, address: u64) -> u64 {
    u64::from(rank) << ADDRESS | address & ((1 << ADDRESS) - 1)
}

/// A place in the memory of a rank: the rank in 16 bits, the address there in 48. Arithmetic stays
/// on the rank.
///
/// # Example
///
/// ```
/// use cci_splitc::Global;
///
/// let first: Global<u32> = Global::from_bits(3 << 48 | 0x1000);
/// assert_eq!((first.rank(), first.offset(2).address()), (3, 0x1008));
/// assert_eq!(first.cast::<u8>().offset(-1).address(), 0xfff);
/// ```
#[repr(transparent)]
pub struct Global<T>(u64, PhantomData<*mut T>);

impl<T> Global<T> {
    /// Returns the pointer of these bits. An access checks where it leads.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits, PhantomData)
    }

    /// Returns the null pointer.
    #[must_use]
    pub const fn null() -> Self {
        Self::from_bits(0)
    }

    /// Returns the pointer to an address of a rank.
    #[must_use]
    pub fn new(rank: u32, address: u64) -> Self {
        Self::from_bits(bits(rank, address))
    }

    /// Returns the 64 bits, which mean the same in every rank.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns the rank.
    #[must_use]
    pub fn rank(self) -> u32 {
        parts(self.0).0
    }

    /// Returns the address at that rank.
    #[must_use]
    pub fn address(self) -> u64 {
        parts(self.0).1
    }

    /// Returns the pointer `elements` further on the same rank.
    #[must_use]
    pub fn offset(self, elements: i64) -> Self {
        let bytes = elements.wrapping_mul(size_of::<T>() as i64);
        Self::new(self.rank(), self.address().wrapping_add_signed(bytes))
    }

    /// Returns the same place as one of another type.
    #[must_use]
    pub const fn cast<U>(self) -> Global<U> {
        Global::from_bits(self.0)
    }
}

/// A place in memory that is spread over all ranks: arithmetic walks over the ranks first.
///
/// # Example
///
/// ```
/// use cci_splitc::Spread;
///
/// let first: Spread<f64> = Spread::from_bits(0x1000);
/// let eleventh = first.offset(10, 4);
/// assert_eq!((eleventh.global().rank(), eleventh.global().address()), (2, 0x1010));
/// assert_eq!(eleventh.offset(-10, 4).to_bits(), first.to_bits());
/// ```
#[repr(transparent)]
pub struct Spread<T>(u64, PhantomData<*mut T>);

impl<T> Spread<T> {
    /// Returns the pointer of these bits.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits, PhantomData)
    }

    /// Returns the 64 bits, which mean the same in every rank.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns the pointer `elements` further in a job of `procs` ranks: the next element of rank 1
    /// lies at rank 2, and that of the last rank at rank 0, one element higher.
    #[must_use]
    pub fn offset(self, elements: i64, procs: u32) -> Self {
        let (rank, address) = parts(self.0);
        let (procs, at) = (i64::from(procs.max(1)), i64::from(rank).wrapping_add(elements));
        let bytes = at.div_euclid(procs).wrapping_mul(size_of::<T>() as i64);
        let rank = at.rem_euclid(procs) as u32;
        Self::from_bits(bits(rank, address.wrapping_add_signed(bytes)))
    }

    /// Returns the place as a global pointer, whose arithmetic stays on the rank.
    #[must_use]
    pub const fn global(self) -> Global<T> {
        Global::from_bits(self.0)
    }
}

macro_rules! as_its_bits {
    ($($name:ident)+) => {
        $(
            impl<T> Clone for $name<T> {
                fn clone(&self) -> Self {
                    *self
                }
            }
            impl<T> Copy for $name<T> {}
            impl<T> PartialEq for $name<T> {
                fn eq(&self, other: &Self) -> bool {
                    self.0 == other.0
                }
            }
            impl<T> Eq for $name<T> {}
            impl<T> fmt::Debug for $name<T> {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    let (rank, address) = parts(self.0);
                    write!(f, concat!(stringify!($name), "({}:{:#x})"), rank, address)
                }
            }
        )+
    };
}

as_its_bits! { Global Spread }

/// An array that is spread over all ranks, element after element, at the same addresses of each
/// ([`crate::World::spread`]). It stays allocated until [`crate::World::free`] or the end.
///
/// # Example
///
/// ```no_run
/// cci_splitc::run(|world| {
///     let squares = world.spread::<u64>(100)?;
///     for at in (0..squares.len()).filter(|at| squares.at(*at).rank() == world.me()) {
///         world.write(squares.at(at), at * at)?;
///     }
///     world.barrier()?;
///     assert_eq!(world.read(squares.at(99))?, 99 * 99);
///     world.free(squares)
/// })?
/// # ; Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SpreadArray<T> {
    first: Spread<T>,
    len: u64,
    procs: u32,
}

impl<T: Plain> SpreadArray<T> {
    pub(crate) fn new(address: u64, len: u64, procs: u32) -> Self {
        Self { first: Spread::from_bits(address), len, procs }
    }

    /// Returns the number of elements on all ranks together.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the pointer to the first element, on rank 0.
    #[must_use]
    pub fn first(&self) -> Spread<T> {
        self.first
    }

    /// Returns the pointer to an element: it lies on rank `at` modulo the number of ranks.
    ///
    /// # Panics
    ///
    /// There is no such element.
    #[must_use]
    pub fn at(&self, at: u64) -> Global<T> {
        assert!(at < self.len, "element {at} of {}", self.len);
        self.first.offset(at.cast_signed(), self.procs).global()
    }

    /// Returns the pointer to the first element of a rank. Its elements follow each other there.
    #[must_use]
    pub fn of_rank(&self, rank: u32) -> Global<T> {
        Global::new(rank, self.first.global().address())
    }

    /// Returns how many elements a rank has.
    #[must_use]
    pub fn len_of_rank(&self, rank: u32) -> u64 {
        (self.len + u64::from(self.procs) - 1 - u64::from(rank)) / u64::from(self.procs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walking by steps of any length leads to the same place as walking by ones.
    #[test]
    fn spread_arithmetic_is_that_of_a_list() {
        for procs in [1, 2, 3, 7] {
            let first = Spread::<u32>::from_bits(0x1000);
            let places: Vec<_> = (0..50).map(|at| first.offset(at, procs)).collect();
            for (at, place) in places.iter().enumerate() {
                let (rank, row) = (at as u32 % procs, at as u64 / u64::from(procs));
                assert_eq!((place.global().rank(), place.global().address()), (rank, 0x1000 + 4 * row));
                for (to, other) in places.iter().enumerate() {
                    assert_eq!(place.offset(to as i64 - at as i64, procs), *other);
                }
            }
        }
    }

    #[test]
    fn each_rank_has_its_share_of_an_array() {
        for (len, procs) in [(0, 3), (1, 3), (10, 3), (11, 4), (12, 4)] {
            let array = SpreadArray::<u16>::new(0x1000, len, procs);
            let counted = |rank| (0..len).filter(|at| array.at(*at).rank() == rank).count() as u64;
            assert!((0..procs).all(|rank| array.len_of_rank(rank) == counted(rank)), "{len} over {procs}");
        }
    }
}
