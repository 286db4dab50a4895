//! TLS between a client and the proxy: in both versions of HTTP, and what is said of files that hold no certificate.

use std::{
    io::{BufReader, Read, Write},
    sync::Arc,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode, client::conn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use crate::{
    TIGHT, common,
    conversations::anthropic,
    good,
    http2::{PEM, PEM_FILE, runtime},
    running::Running,
    upstream::read_message,
};

/// A client's end of a connection in TLS that trusts the test's certificate alone.
async fn connect(proxy: &Running, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(PEM) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let ring = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let stream = TcpStream::connect(&proxy.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

fn request(proxy: &Running) -> Request<Full<Bytes>> {
    let port = proxy.address.rsplit_once(':').unwrap().1;
    Request::post(format!("https://localhost:{port}/v1/messages"))
        .header("host", format!("localhost:{port}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(anthropic(30))))
        .unwrap()
}

#[test]
fn clients_are_answered_in_tls_in_both_versions_of_http() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[&TIGHT[..], &["--tls-cert", PEM_FILE]].concat());
    assert!(proxy.words().contains("listening at https://"), "{}", proxy.words());
    runtime().block_on(async {
        let stream = connect(&proxy, &[b"h2", b"http/1.1"]).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut client, connection) =
            conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let answer = client.send_request(request(&proxy)).await.unwrap();
        assert_eq!(answer.headers().get("x-trimtab").unwrap(), "fitted");
        for protocols in [&[&b"http/1.1"[..]][..], &[]] {
            let stream = connect(&proxy, protocols).await;
            let (mut client, connection) = conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            let answer = client.send_request(request(&proxy)).await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK);
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            assert!(String::from_utf8_lossy(&body).contains("input_tokens"));
        }
    });
    assert_eq!(upstream.came().len(), 3);
    assert!(upstream.last().body.len() < anthropic(30).len());
}

#[test]
fn a_client_without_tls_gets_no_answer_and_harms_nobody() {
    let upstream = good();
    let proxy = Running::before(&upstream, &["--tls-cert", PEM_FILE, "--tls-key", PEM_FILE]);
    let mut silent = proxy.connect();
    let mut plain = proxy.connect();
    write!(plain, "GET /trimtab/health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // What comes back, if anything, is a refusal in TLS.
    let _ = plain.read_to_end(&mut answer);
    assert!(read_message(&mut BufReader::new(&answer[..])).is_none_or(|came| came.body.is_empty()));
    silent.write_all(b"\x16").unwrap();
    runtime().block_on(async {
        let stream = connect(&proxy, &[]).await;
        let (mut client, connection) = conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        assert_eq!(client.send_request(request(&proxy)).await.unwrap().status(), StatusCode::OK);
    });
}

#[test]
fn files_without_a_certificate_or_a_key_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let empty = empty.to_str().unwrap();
    for (flags, words) in [
        (&["--tls-cert", empty][..], "there is no certificate in it"),
        (&["--tls-cert", "missing.pem"], "--tls-cert: missing.pem"),
        (&["--tls-cert", PEM_FILE, "--tls-key", empty], "--tls-key: "),
        (&["--tls-key", PEM_FILE], "--tls-cert"),
    ] {
        let done = common::trimtab(&[&["proxy", "--listen", "127.0.0.1:0", "--no-store"], flags].concat());
        assert!(done.code != Some(0) && done.words.contains(words), "{flags:?}: {}", done.words);
    }
}
