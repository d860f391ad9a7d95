//! SCI between hosts of one process and between processes.

mod broadcast;
mod callbacks;
mod connects;
mod device;
mod dma;
mod faults;
mod interrupts;
mod life;
mod owner;
mod windows;
mod world;
