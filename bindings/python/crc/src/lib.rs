//! Checksums without tables, for `crc-fast` alone.
//!
//! `crc-fast` computes by instructions of the processor. For processors that lack them it carries
//! tables of all checksums that there are, 650 KB that do not compress, by the crate `crc`. The
//! library computes one of them (CRC32C). So this package replaces that crate: it has the part of
//! its interface that `crc-fast` uses, a table of 1 KB for CRC32C, and computes others bit by bit.

#![forbid(unsafe_code)]

pub use crc_catalog::*;
use std::marker::PhantomData;

/// How a checksum is computed; here always in the same way.
pub trait Implementation {}

/// What would be tables of `L` times 256 words.
pub struct Table<const L: usize>;

impl<const L: usize> Implementation for Table<L> {}

/// A checksum.
pub struct Crc<W: Width, I: Implementation = Table<1>> {
    /// Its parameters.
    pub algorithm: &'static Algorithm<W>,
    implementation: PhantomData<I>,
}

/// The bytes of a checksum so far.
pub struct Digest<'a, W: Width, I: Implementation = Table<1>> {
    crc: &'a Crc<W, I>,
    /// Shifted to the right if the bits come in reflected, to the left otherwise.
    register: W,
}

/// The polynomial of CRC32C.
const CASTAGNOLI: u32 = 0x1edc_6f41;

/// What each low byte of a reflected register of CRC32C becomes.
static TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut word = byte;
        let mut bit = 0;
        while bit < 8 {
            word = if word & 1 == 1 { (word >> 1) ^ CASTAGNOLI.reverse_bits() } else { word >> 1 };
            bit += 1;
        }
        table[byte as usize] = word;
        byte += 1;
    }
    table
};

impl<W: Width, I: Implementation> Crc<W, I> {
    /// The checksum with these parameters.
    pub const fn new(algorithm: &'static Algorithm<W>) -> Self {
        Self { algorithm, implementation: PhantomData }
    }
}

/// Declares checksums of this width. The parameters' width is that of the word.
macro_rules! widths {
    ($($word:ty, $table:expr;)+) => {
        $(
            impl<I: Implementation> Crc<$word, I> {
                /// Begins with what another digest, or the parameters, have as the first register.
                pub const fn digest_with_initial(&self, initial: $word) -> Digest<'_, $word, I> {
                    let register = if self.algorithm.refin { initial.reverse_bits() } else { initial };
                    Digest { crc: self, register }
                }

                /// The checksum of these bytes.
                pub fn checksum(&self, bytes: &[u8]) -> $word {
                    let mut digest = self.digest_with_initial(self.algorithm.init);
                    digest.update(bytes);
                    digest.finalize()
                }
            }

            impl<I: Implementation> Digest<'_, $word, I> {
                /// Adds bytes.
                pub fn update(&mut self, bytes: &[u8]) {
                    let algorithm = self.crc.algorithm;
                    if algorithm.refin {
                        let table: Option<&[$word; 256]> = $table(algorithm.poly);
                        for byte in bytes {
                            let low = self.register ^ <$word>::from(*byte);
                            self.register = match table {
                                Some(table) => table[usize::from(low as u8)] ^ (low >> 8),
                                None => bits(low, |word| {
                                    let shifted = word >> 1;
                                    if word & 1 == 1 { shifted ^ algorithm.poly.reverse_bits() } else { shifted }
                                }),
                            };
                        }
                        return;
                    }
                    const TOP: $word = 1 << (<$word>::BITS - 1);
                    for byte in bytes {
                        let high = self.register ^ (<$word>::from(*byte) << (<$word>::BITS - 8));
                        self.register = bits(high, |word| {
                            let shifted = word << 1;
                            if word & TOP != 0 { shifted ^ algorithm.poly } else { shifted }
                        });
                    }
                }

                /// The checksum of what was added.
                pub const fn finalize(self) -> $word {
                    let algorithm = self.crc.algorithm;
                    let is_turned = algorithm.refin != algorithm.refout;
                    let register = if is_turned { self.register.reverse_bits() } else { self.register };
                    register ^ algorithm.xorout
                }
            }
        )+
    };
}

widths! {
    u16, |_| None;
    u32, |poly| (poly == CASTAGNOLI).then_some(&TABLE);
    u64, |_| None;
}

/// A step for each bit of a byte.
fn bits<W>(word: W, step: impl Fn(W) -> W) -> W {
    (0..8).fold(word, |word, _| step(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each catalogue entry has the checksum of these bytes.
    const CHECK: &[u8] = b"123456789";

    #[test]
    fn the_checks_of_the_catalogue_are_met() {
        for algorithm in [&CRC_16_ARC, &CRC_16_XMODEM, &CRC_16_DNP, &CRC_16_GENIBUS, &CRC_16_IBM_SDLC] {
            assert_eq!(Crc::<u16>::new(algorithm).checksum(CHECK), algorithm.check);
        }
        for algorithm in [&CRC_32_ISCSI, &CRC_32_ISO_HDLC, &CRC_32_BZIP2, &CRC_32_MPEG_2, &CRC_32_XFER] {
            assert_eq!(Crc::<u32>::new(algorithm).checksum(CHECK), algorithm.check);
        }
        for algorithm in [&CRC_64_XZ, &CRC_64_ECMA_182, &CRC_64_WE] {
            assert_eq!(Crc::<u64, Table<16>>::new(algorithm).checksum(CHECK), algorithm.check);
        }
    }

    #[test]
    fn a_digest_goes_on_where_another_ended() {
        let crc = Crc::<u32>::new(&CRC_32_ISCSI);
        let mut first = crc.digest_with_initial(CRC_32_ISCSI.init);
        first.update(&CHECK[..4]);
        let register = (first.finalize() ^ CRC_32_ISCSI.xorout).reverse_bits();
        let mut second = crc.digest_with_initial(register);
        second.update(&CHECK[4..]);
        assert_eq!(second.finalize(), CRC_32_ISCSI.check);
    }
}
