//! Codes that calls return negated (fi_errno(3)).

use std::ffi::c_int;

constants! {
    c_int {
        FI_SUCCESS = 0;
        #[since(1, 6)] FI_EPERM = 1;
        FI_ENOENT = 2;
        #[since(1, 6)] FI_EINTR = 4;
        FI_EIO = 5;
        FI_E2BIG = 7;
        FI_EBADF = 9;
        FI_EAGAIN = 11;
        FI_ENOMEM = 12;
        FI_EACCES = 13;
        #[since(1, 6)] FI_EFAULT = 14;
        FI_EBUSY = 16;
        FI_ENODEV = 19;
        FI_EINVAL = 22;
        FI_EMFILE = 24;
        FI_ENOSPC = 28;
        FI_ENOSYS = 38;
        #[since(1, 6)] FI_EWOULDBLOCK = 11;
        FI_ENOMSG = 42;
        FI_ENODATA = 61;
        #[since(2, 0)] FI_EPROTO = 71;
        #[since(1, 7)] FI_EOVERFLOW = 75;
        FI_EMSGSIZE = 90;
        FI_ENOPROTOOPT = 92;
        FI_EOPNOTSUPP = 95;
        FI_EADDRINUSE = 98;
        FI_EADDRNOTAVAIL = 99;
        FI_ENETDOWN = 100;
        FI_ENETUNREACH = 101;
        FI_ECONNABORTED = 103;
        FI_ECONNRESET = 104;
        #[since(1, 6)] FI_ENOBUFS = 105;
        FI_EISCONN = 106;
        FI_ENOTCONN = 107;
        FI_ESHUTDOWN = 108;
        FI_ETIMEDOUT = 110;
        FI_ECONNREFUSED = 111;
        #[since(1, 6)] FI_EHOSTDOWN = 112;
        FI_EHOSTUNREACH = 113;
        FI_EALREADY = 114;
        FI_EINPROGRESS = 115;
        FI_EREMOTEIO = 121;
        FI_ECANCELED = 125;
        FI_EKEYREJECTED = 129;
        FI_EOTHER = 256;
        FI_ETOOSMALL = 257;
        FI_EOPBADSTATE = 258;
        FI_EAVAIL = 259;
        FI_EBADFLAGS = 260;
        FI_ENOEQ = 261;
        FI_EDOMAIN = 262;
        FI_ENOCQ = 263;
        FI_ECRC = 264;
        FI_ETRUNC = 265;
        FI_ENOKEY = 266;
        FI_ENOAV = 267;
        FI_EOVERRUN = 268;
        #[since(1, 14)] FI_ENORX = 269;
        #[since(1, 20)] FI_ENOMR = 270;
        #[since(2, 2)] FI_EFIREWALLADDR = 271;
    }
}
