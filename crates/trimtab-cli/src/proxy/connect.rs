//! How a provider is reached: directly, or through the proxy for the web that the environment names. Takes an address; gives
//! a connection. Never asks that proxy for an address without TLS: what goes there could be read on the way.

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

type Fault = Box<dyn std::error::Error + Send + Sync>;

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
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<TcpStream>, Fault>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Fault>> {
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
