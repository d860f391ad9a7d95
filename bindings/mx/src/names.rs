//! Hosts, NICs, addresses and texts.

use crate::answer::{Answer, NULL, Refusal, text_of};
use crate::layout::CAddress;
use crate::registry::{lock, registry};
use cci_mem::arguments::{Out, Text};
use cci_mem::lookup::Wait;
use cci_mem::mutex::{read, write};
use cci_mx::{Address, Code, Error};
use std::ffi::{CStr, c_char, c_uint, c_void};
use std::net::{IpAddr, Ipv4Addr};

/// Room for the name of a host, with its end.
const MOST_NAME: usize = 80;
const LONGEST_GIVEN: usize = 255;

/// The NIC of this host: that of an endpoint, which is opened for this if there is none.
pub(crate) fn own_nic() -> Result<u64, Refusal> {
    registry()?.check()?;
    let mut nic = lock(&registry()?.nic);
    match *nic {
        Some(nic) => Ok(nic),
        None => Ok(*nic.insert(crate::calls::found_nic()?)),
    }
}

fn own_name() -> String {
    let mut name = [0; MOST_NAME];
    // SAFETY: as long as it says; the last byte stays 0.
    let done = unsafe { libc::gethostname(name.as_mut_ptr().cast(), MOST_NAME - 1) };
    let text = CStr::from_bytes_until_nul(&name).ok().filter(|_| done == 0);
    text.map_or_else(|| "localhost".to_owned(), |text| text.to_string_lossy().into_owned())
}

/// The NIC of `job:RANK`, once the first endpoint of this process has met the other ranks. `None`:
/// this process has no job, or the text is another one.
fn nic_of_rank(text: &str) -> Option<Result<u64, Refusal>> {
    let rank = text.strip_prefix("job:")?;
    let membership = lock(&registry().ok()?.membership);
    membership.job.as_ref()?;
    let found = rank.parse().ok().and_then(|rank: usize| membership.ranks.get(rank));
    Some(found.map(|(nic, _)| *nic).ok_or_else(|| Error::HostNotFound.into()))
}

pub(crate) fn nic_of_host(name: Text<'_>, nic: Out<'_, u64>) -> Answer {
    registry()?.check()?;
    name.check(NULL)?;
    let nic = nic.variable(NULL)?;
    let text = name.get().ok_or(NULL)?.to_str().map_err(|_| Error::HostnameArguments)?;
    if let Some(found) = nic_of_rank(text) {
        nic.put(found?);
        return Ok(());
    }
    let (host, board) = text.split_once(':').unwrap_or((text, "0"));
    let board: u32 = board.parse().map_err(|_| Error::HostnameArguments)?;
    if host.is_empty() || text.len() > LONGEST_GIVEN {
        return Err(Error::HostnameArguments.into());
    }
    if board != 0 {
        return Err(Error::NicNotFound.into());
    }
    let found = if host == "localhost" || host == own_name() {
        own_nic()?
    } else {
        let all = Wait::default().addresses(host, 0).map_err(|_| Error::HostNotFound)?;
        let mut found =
            all.iter().filter_map(|at| if let IpAddr::V4(address) = at.ip() { Some(address) } else { None });
        let address = found.next().ok_or(Error::HostNotFound)?;
        if address.is_loopback() { own_nic()? } else { address.to_bits().into() }
    };
    nic.put(found);
    Ok(())
}

pub(crate) fn nic_of_board(board: u32, nic: Out<'_, u64>) -> Answer {
    registry()?.check()?;
    if board != 0 {
        return Err(Error::BoardUnknown.into());
    }
    let nic = nic.variable(NULL)?;
    nic.put(own_nic()?);
    Ok(())
}

pub(crate) fn board_of_nic(nic: u64, board: Out<'_, u32>) -> Answer {
    if own_nic()? != nic {
        return Err(Error::NicNotFound.into());
    }
    board.give(0, NULL)
}

/// Gives the name of the host of a NIC, cut to the room for it.
///
/// # Safety
///
/// `name` is NULL or leads to room for [`MOST_NAME`] bytes.
pub(crate) unsafe fn host_of_nic(nic: u64, name: *mut c_char) -> Answer {
    let own = own_nic()?;
    if name.is_null() {
        return Err(NULL);
    }
    let address = u32::try_from(nic).map_err(|_| Error::NicNotFound)?;
    let text = if nic == own { own_name() } else { Ipv4Addr::from_bits(address).to_string() };
    let text = &text.as_bytes()[..text.len().min(MOST_NAME - 1)];
    // SAFETY: not NULL, so that there is room for `MOST_NAME` bytes: the text, as just cut, and its
    // end.
    unsafe {
        name.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        name.add(text.len()).write(0);
    }
    Ok(())
}

pub(crate) fn take_apart(of: CAddress, nic: Out<'_, u64>, id: Out<'_, u32>, session: Option<Out<'_, u32>>) -> Answer {
    let address = Address::from(of);
    nic.give(address.nic(), NULL)?;
    id.give(address.id(), NULL)?;
    session.map_or(Ok(()), |session| session.give(address.session(), NULL))
}

pub(crate) fn set_context(of: CAddress, context: *mut c_void) -> Answer {
    registry()?.check()?;
    let mut contexts = write(&registry()?.contexts);
    if context.is_null() {
        contexts.remove(&of.into());
    } else {
        contexts.insert(of.into(), context.expose_provenance());
    }
    Ok(())
}

pub(crate) fn context(of: CAddress, context: Out<'_, *mut c_void>) -> Answer {
    registry()?.check()?;
    let contexts = read(&registry()?.contexts);
    let found = contexts.get(&of.into()).copied().unwrap_or(0);
    context.give(std::ptr::with_exposed_provenance_mut(found), NULL)
}

#[unsafe(no_mangle)]
extern "C" fn mx_strerror(code: c_uint) -> *const c_char {
    text_of(code).as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn mx_strstatus(code: c_uint) -> *const c_char {
    Code::from_code(code).map_or(c"no status of MX", Code::c_text).as_ptr()
}
