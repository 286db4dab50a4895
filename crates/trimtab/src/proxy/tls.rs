//! TLS towards clients. [`ClientTls`] takes a certificate with its key, then connections; gives them secured, with the protocol
//! that was agreed on. Used by `serve` where `--tls-cert` names a certificate.

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result, bail};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
    server::TlsStream,
};

use super::{ClientProtocol, connect::SECURING};

/// The name of HTTP/2 in TLS.
const HTTP2: &[u8] = b"h2";

/// Secures connections of clients.
#[derive(Clone)]
pub(crate) struct ClientTls(TlsAcceptor);

impl ClientTls {
    /// Reads a certificate and its key, both in PEM; they may be in one file.
    ///
    /// # Errors
    /// Says what is wrong with which file.
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<ClientTls> {
        let unread = |path: &Path| format!("--tls-cert: {}", path.display());
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .with_context(|| unread(certificate))?;
        if chain.is_empty() {
            bail!("--tls-cert: {}: there is no certificate in it", certificate.display());
        }
        let of_key = || format!("--tls-key: {}", key.display());
        let key = PrivateKeyDer::from_pem_file(key).with_context(of_key)?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth();
        let mut config = config.with_single_cert(chain, key).with_context(of_key)?;
        config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
        Ok(ClientTls(TlsAcceptor::from(Arc::new(config))))
    }

    /// Agrees on TLS with a client; nothing where that fails or takes too long.
    pub(super) async fn accept(&self, stream: TcpStream) -> Option<(TlsStream<TcpStream>, ClientProtocol)> {
        let stream = timeout(SECURING, self.0.accept(stream)).await.ok()?.ok()?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
        let protocol = if is_http2 { ClientProtocol::Http2 } else { ClientProtocol::Http1 };
        Some((stream, protocol))
    }
}
