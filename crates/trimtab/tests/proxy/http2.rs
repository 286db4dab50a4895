//! HTTP/2 on either side of the proxy: a client and a provider that speak nothing else. `localhost.pem` is a certificate with its
//! key, made for the provider here and trusted by nobody else.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Request, Response, StatusCode, Version,
    body::Incoming,
    client::conn::http2::{SendRequest, handshake},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use crate::{TIGHT, conversations::anthropic, good, running::Running};

pub(crate) const PEM: &[u8] = include_bytes!("localhost.pem");
pub(crate) const PEM_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proxy/localhost.pem");
const ANSWER: &str = r#"{"usage":{"input_tokens":9,"output_tokens":1}}"#;

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// What came to a provider.
#[derive(Clone)]
struct Seen {
    version: Version,
    headers: HeaderMap,
    body: Bytes,
}

/// A provider that speaks HTTP/2 and nothing else.
struct Provider {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    _runtime: Runtime,
}

impl Provider {
    fn start(acceptor: Option<TlsAcceptor>) -> Provider {
        let runtime = runtime();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        runtime.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, kept) = (acceptor.clone(), Arc::clone(&kept));
                tokio::spawn(async move {
                    let service = service_fn(move |request| answer(Arc::clone(&kept), request));
                    let server = http2::Builder::new(TokioExecutor::new());
                    match acceptor {
                        Some(acceptor) => {
                            let Ok(stream) = acceptor.accept(stream).await else { return };
                            let _ = server.serve_connection(TokioIo::new(stream), service).await;
                        }
                        None => drop(server.serve_connection(TokioIo::new(stream), service).await),
                    }
                });
            }
        });
        Provider { port, seen, _runtime: runtime }
    }

    fn last(&self) -> Seen {
        self.seen.lock().unwrap().last().unwrap().clone()
    }
}

async fn answer(
    kept: Arc<Mutex<Vec<Seen>>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    kept.lock().unwrap().push(Seen { version: parts.version, headers: parts.headers, body });
    let mut response = Response::new(Full::new(Bytes::from_static(ANSWER.as_bytes())));
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    Ok(response)
}

/// Asks the proxy over one connection that speaks HTTP/2 from its first byte on.
async fn connect(proxy: &Running) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(&proxy.address).await.unwrap();
    let (client, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn post(
    client: &mut SendRequest<Full<Bytes>>,
    authority: &str,
    origin: Option<&str>,
    body: Vec<u8>,
) -> (StatusCode, HeaderMap, Bytes) {
    let mut request = Request::post(format!("http://{authority}/v1/messages"));
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    let request =
        request.header("content-type", "application/json").body(Full::new(Bytes::from(body))).unwrap();
    client.ready().await.unwrap();
    let (parts, body) = client.send_request(request).await.unwrap().into_parts();
    (parts.status, parts.headers, body.collect().await.unwrap().to_bytes())
}

#[test]
fn a_client_that_begins_in_http_2_is_served() {
    let upstream = good();
    let proxy = Running::before(&upstream, &TIGHT);
    runtime().block_on(async {
        let mut client = connect(&proxy).await;
        let (status, headers, body) = post(&mut client, &proxy.address, None, anthropic(30)).await;
        assert_eq!((status, headers.get("x-trimtab").unwrap().as_bytes()), (StatusCode::OK, &b"fitted"[..]));
        assert!(String::from_utf8_lossy(&body).contains("input_tokens"), "{body:?}");
        assert!(upstream.last().body.len() < anthropic(30).len());
        let together = (0..8).map(|results| {
            let (mut client, address) = (client.clone(), proxy.address.clone());
            tokio::spawn(async move { post(&mut client, &address, None, anthropic(results)).await.0 })
        });
        for one in together.collect::<Vec<_>>() {
            assert_eq!(one.await.unwrap(), StatusCode::OK);
        }
    });
    assert_eq!(upstream.came().len(), 9);
}

#[test]
fn in_http_2_too_only_this_machine_and_its_own_pages_are_answered() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[]);
    runtime().block_on(async {
        let mut client = connect(&proxy).await;
        let renamed = post(&mut client, "evil.example", None, anthropic(1)).await;
        let foreign = post(&mut client, &proxy.address, Some("https://evil.example"), anthropic(1)).await;
        assert_eq!((renamed.0, foreign.0), (StatusCode::FORBIDDEN, StatusCode::FORBIDDEN));
    });
    assert!(upstream.came().is_empty());
}

#[test]
fn a_client_that_sends_its_first_letters_one_by_one_is_served() {
    use std::io::Write;
    let upstream = good();
    let proxy = Running::before(&upstream, &[]);
    let mut connection = proxy.connect();
    for letter in b"PUT " {
        connection.write_all(&[*letter]).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    write!(connection, "/trimtab/health HTTP/1.1\r\nHost: {}\r\n\r\n", proxy.address).unwrap();
    let answer = crate::upstream::read_message(&mut std::io::BufReader::new(connection)).unwrap();
    assert_eq!(answer.head[0], "HTTP/1.1 405 Method Not Allowed");
}

fn check_provider(provider: &Provider, url: &str, variables: &[(&str, &str)]) {
    let unused = good();
    let upstream = format!("anthropic={url}");
    let flags = [&TIGHT[..], &["--upstream", &upstream]].concat();
    let proxy = Running::with(&unused, &flags, variables);
    for results in [30, 31] {
        let answer = proxy.post("/v1/messages", &anthropic(results));
        assert_eq!(answer.head[0], "HTTP/1.1 200 OK", "{}", proxy.words());
        assert_eq!(answer.body, ANSWER.as_bytes());
        let seen = provider.last();
        assert_eq!(seen.version, Version::HTTP_2);
        assert!(seen.body.len() < anthropic(results).len(), "the request is fitted");
        assert!(!seen.headers.contains_key("connection"));
    }
    assert!(unused.came().is_empty());
}

#[test]
fn a_provider_is_asked_in_http_2_without_tls() {
    let provider = Provider::start(None);
    check_provider(&provider, &format!("h2c://127.0.0.1:{}", provider.port), &[]);
}

#[test]
fn a_provider_is_asked_in_http_2_with_tls() {
    let certificates = CertificateDer::pem_slice_iter(PEM).collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(PEM).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_no_client_auth().with_single_cert(certificates, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let provider = Provider::start(Some(TlsAcceptor::from(Arc::new(config))));
    let url = format!("h2://localhost:{}", provider.port);
    check_provider(&provider, &url, &[("SSL_CERT_FILE", PEM_FILE)]);
}
