//! `cci top --listen`: a look for each request of HTTP.

use super::metrics;
use super::processes::Scope;
use super::rows::{Order, Watch};
use cci_report::{UserError, while_doing};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A request that is longer, or takes longer, ends its connection: one client must not keep others
/// waiting.
const LONGEST: usize = 8192;
const LIMIT: Duration = Duration::from_secs(2);

/// Answers requests, one after the other, until the process ends.
pub(crate) fn serve(scope: &Scope, address: SocketAddr) -> Result<(), UserError> {
    let listener =
        TcpListener::bind(address).map_err(|error| UserError(format!("cannot listen at {address}: {error}")))?;
    let address = listener.local_addr().map_err(while_doing("cannot name the address to listen at"))?;
    writeln!(io::stdout(), "http://{address}/metrics").map_err(while_doing("cannot write the address"))?;
    let mut watch = Watch::default();
    loop {
        let (stream, _) = listener.accept().map_err(while_doing("cannot take a request"))?;
        // A client that goes away has no answer; the next one has.
        let _ = answer(stream, || {
            let look = super::look(scope)?;
            Ok(metrics::text(&watch.rows(&look, Order::Pid), &look))
        });
    }
}

fn answer(mut stream: TcpStream, text: impl FnOnce() -> Result<String, UserError>) -> io::Result<()> {
    stream.set_write_timeout(Some(LIMIT))?;
    let (status, kind, body) = match request(&mut stream)?.as_deref() {
        Some("GET /metrics" | "GET /") => match text() {
            Ok(text) => ("200 OK", metrics::CONTENT_TYPE, text),
            Err(why) => ("500 Internal Server Error", "text/plain; charset=utf-8", format!("{why}\n")),
        },
        Some(line) if line.starts_with("GET ") => {
            ("404 Not Found", "text/plain; charset=utf-8", "there is /metrics\n".into())
        }
        Some(_) => ("405 Method Not Allowed", "text/plain; charset=utf-8", "there is GET\n".into()),
        None => ("400 Bad Request", "text/plain; charset=utf-8", "this is no request of HTTP\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Method and path of a request, without its query; `None`: it is no request.
fn request(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let begin = Instant::now();
    let (mut bytes, mut piece) = (Vec::new(), [0; 1024]);
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = LIMIT.saturating_sub(begin.elapsed());
        if left.is_zero() || bytes.len() > LONGEST {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece)? {
            0 => return Ok(None),
            len => bytes.extend_from_slice(&piece[..len]),
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut words = text.lines().next().unwrap_or_default().split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let is_http = version.is_some_and(|version| version.starts_with("HTTP/1."));
    let path = target.and_then(|target| target.split('?').next());
    Ok(method.zip(path).filter(|_| is_http).map(|(method, path)| format!("{method} {path}")))
}
