//! Shared memory between processes of one user on one host. See `docs/design/sm.md`.

/// Largest message unless the key `mss` says otherwise, bytes.
pub const MAX_SEND_SIZE: u32 = 8192;
/// Stub.
pub struct Sm;
impl Sm {
    /// Stub.
    pub fn open(
        _: &cci_transport::Core,
        _: &[(String, String)],
        _: Option<&str>,
    ) -> Result<Self, cci_transport::OpenError> {
        Ok(Self)
    }
}
#[allow(unused_variables, clippy::unimplemented)]
mod stub {
    use super::Sm;
    use cci_mem::memory::Memory;
    use cci_proto::*;
    use cci_transport::*;
    impl Transport for Sm {
        fn uri(&self) -> &str {
            "sm://0/0"
        }
        fn handle(&self) -> std::os::fd::BorrowedFd<'_> {
            unimplemented!()
        }
        fn connect(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
            unimplemented!()
        }
        fn accept(&mut self, core: &mut Core, request: &'static Slot, context: u64) -> Result<(), RequestError> {
            unimplemented!()
        }
        fn reject(&mut self, core: &mut Core, request: &'static Slot) -> Result<(), RequestError> {
            unimplemented!()
        }
        fn expect(
            &mut self,
            core: &mut Core,
            token: u64,
            context: u64,
            limit: std::time::Duration,
        ) -> Result<(), RequestError> {
            unimplemented!()
        }
        fn redirect(
            &mut self,
            core: &mut Core,
            request: &'static Slot,
            uri: &str,
            token: u64,
        ) -> Result<(), RequestError> {
            unimplemented!()
        }
        fn disconnect(&mut self, core: &mut Core, connection: &'static Connection) {}
        fn send(
            &mut self,
            core: &mut Core,
            connection: &'static Connection,
            message: Message<'_>,
            posted: Posted,
        ) -> Result<Option<&'static Slot>, SendError> {
            unimplemented!()
        }
        fn rma(
            &mut self,
            core: &mut Core,
            connection: &'static Connection,
            rma: &Rma<'_>,
            posted: Posted,
        ) -> Result<Option<&'static Slot>, RmaError> {
            unimplemented!()
        }
        fn register(&mut self, core: &mut Core, memory: Memory, rights: Rights) -> Result<RmaHandle, RegisterError> {
            unimplemented!()
        }
        fn deregister(&mut self, core: &mut Core, handle: &RmaHandle) -> Result<(), RegisterError> {
            unimplemented!()
        }
        fn progress(&mut self, core: &mut Core) {}
        fn arm(&mut self, core: &mut Core) -> bool {
            true
        }
        fn refill(&mut self, core: &mut Core) {}
        fn options_changed(&mut self, core: &mut Core) {}
        fn report(&self, core: &Core, connection: &'static Connection) -> ConnectionReport {
            ConnectionReport::default()
        }
        fn close(&mut self, core: &mut Core, limit: std::time::Duration) {}
    }
}
