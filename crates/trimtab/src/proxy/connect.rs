//! How a provider is reached: directly, or through the proxy for the web that the environment names. Takes an address; gives
//! a connection. Never asks that proxy for an address without TLS: what goes there could be read on the way. Never waits for
//! ever: a provider that accepts a connection and then says nothing is given up like one that does not answer at all.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use hyper::{Uri, http::uri::Scheme};
use hyper_util::{
    client::{
        legacy::connect::{HttpConnector, proxy::Tunnel},
        proxy::matcher::Matcher,
    },
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower_service::Service;

/// How long connecting may take.
const CONNECTING: Duration = Duration::from_secs(15);

/// How long connecting and agreeing on TLS may take together.
pub(super) const SECURING: Duration = Duration::from_secs(30);

type ConnectError = Box<dyn std::error::Error + Send + Sync>;

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Connector {
    http: HttpConnector,
    /// `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, as curl reads them.
    proxies: Arc<Matcher>,
}

impl Connector {
    /// Takes the proxies for the web that the environment names now.
    pub(crate) fn from_env() -> Connector {
        let mut http = HttpConnector::new();
        // Without this a small write may wait 40 ms for the other side.
        http.set_nodelay(true);
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECTING));
        Connector { http, proxies: Arc::new(Matcher::from_env()) }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<TcpStream>, ConnectError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.http.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let secured = address.scheme() == Some(&Scheme::HTTPS);
        let Some(proxy) = self.proxies.intercept(&address).filter(|_| secured) else {
            let connecting = self.http.call(address);
            return Box::pin(async move { connecting.await.map_err(Into::into) });
        };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.http.clone());
        if let Some(key) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(key.clone());
        }
        let connecting = tunnel.call(address);
        Box::pin(async move { connecting.await.map_err(Into::into) })
    }
}

/// Makes connections with another connector, in a time that is limited as a whole.
#[derive(Clone)]
pub(crate) struct TimeLimitedConnector<C> {
    connector: C,
    limit: Duration,
}

impl<C> TimeLimitedConnector<C> {
    pub(crate) fn new(connector: C) -> TimeLimitedConnector<C> {
        TimeLimitedConnector { connector, limit: SECURING }
    }
}

impl<C> Service<Uri> for TimeLimitedConnector<C>
where
    C: Service<Uri, Error = ConnectError>,
    C::Future: Send + 'static,
    C::Response: 'static,
{
    type Response = C::Response;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<C::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let (connecting, limit) = (self.connector.call(address), self.limit);
        Box::pin(async move {
            let late = |_| format!("no connection was agreed on in {} seconds", limit.as_secs_f64());
            tokio::time::timeout(limit, connecting).await.map_err(late)?
        })
    }
}

#[cfg(test)]
mod tests {
    use hyper_rustls::HttpsConnectorBuilder;

    use super::*;

    #[test]
    fn a_tls_handshake_that_is_never_answered_is_given_up() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address: Uri = format!("https://{}", silent.local_addr().unwrap()).parse().unwrap();
        let https = HttpsConnectorBuilder::new().with_webpki_roots().https_only().enable_http1();
        let connector = https.wrap_connector(Connector::from_env());
        let mut timed = TimeLimitedConnector { connector, limit: Duration::from_millis(200) };
        let runtime = crate::proxy::start_runtime().unwrap();
        let fault = runtime.block_on(timed.call(address)).expect_err("nobody answers");
        assert!(fault.to_string().contains("no connection was agreed on in 0.2 seconds"), "{fault}");
    }
}
