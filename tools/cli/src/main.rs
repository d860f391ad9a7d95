//! The command `cci`.

use cci_instruments::CountingAllocator;

/// Counts, so that `cci bench` can prove that the fast path does not allocate.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> std::process::ExitCode {
    cci_cli::run()
}
