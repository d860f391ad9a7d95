//! Mirror windows: between hosts over `sock`, which maps no memory, and between name spaces.

mod back;
mod broadcast;
mod faults;
#[path = "../sci/owner.rs"]
mod owner;
mod quiet;
mod sealed;
mod spaces;
mod states;
mod windows;
mod world;
