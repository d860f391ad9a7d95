//! The transport `template-link` keeps every rule of the API.

#![forbid(unsafe_code)]

use cci_testkit::device_of;

const EXCEPTIONS: &[(&str, &str)] =
    &[("connect::nobody_listens", "the link is not told that nobody listens: the connect ends by its timeout")];

cci_testkit::conformance!(template_link, || device_of("template-link", &[]), except: EXCEPTIONS);
