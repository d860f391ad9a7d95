//! Links between peers: all at once, those that never come, go, come back, or lie.

mod all_at_once;
mod ends;
mod liars;
mod world;
