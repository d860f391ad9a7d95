//! Endpoints straight over CCI.

use cci_am::{Handlers, Options};

pub(crate) use cci::Device;
pub(crate) type Mapping = cci_am::CciMapping;
pub(crate) type Endpoint<S> = cci_am::Endpoint<S>;

pub(crate) fn open<S>(device: &Device, options: &Options, handlers: Handlers<S>, state: S) -> Endpoint<S> {
    Endpoint::open(device, options, handlers, state).expect("an endpoint")
}
