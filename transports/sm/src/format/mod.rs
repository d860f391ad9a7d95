//! What both sides of a lane agree on: names, the layout of the segment and of its frames, packets
//! of the socket.

pub(crate) mod address;
pub(crate) mod layout;
pub(crate) mod packet;
