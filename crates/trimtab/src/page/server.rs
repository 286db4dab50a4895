//! A server for the page alone, without a proxy: loopback only, on one thread.

use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{Request, Response, StatusCode, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use super::{PageBody, PageServer, is_page_path};
use crate::proxy::guard;

/// How long the head of a request may take to arrive.
const HEAD_ARRIVES: Duration = Duration::from_secs(30);

/// Serves until it is asked to stop.
///
/// # Errors
/// Says why connections can no longer be taken.
pub(crate) async fn serve(
    server: Arc<PageServer>,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let Ok((connection, _)) = accepted else {
            // Out of files, most likely: those that are open must end first.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let server = Arc::clone(&server);
                async move { Ok::<_, Infallible>(answer(&server, request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_ARRIVES)
                .serve_connection(TokioIo::new(connection), service);
            // A browser that breaks off is no fault of ours.
            let _ = connection.await;
        });
    }
    server.stop();
    Ok(())
}

async fn answer(server: &Arc<PageServer>, request: Request<Incoming>) -> Response<PageBody> {
    let refuse = |status: StatusCode, words: &'static str| {
        let mut response = Response::new(Either::Left(Full::new(Bytes::from_static(words.as_bytes()))));
        *response.status_mut() = status;
        response
    };
    if !guard::names_us(request.headers(), &server.options.allowed_hosts) {
        return refuse(StatusCode::FORBIDDEN, "this host name is not allowed\n");
    }
    if guard::is_cross_site(request.headers(), &[]) {
        return refuse(StatusCode::FORBIDDEN, "requests from web pages of other sites are not allowed\n");
    }
    let path = request.uri().path();
    if path != "/" && !is_page_path(path) {
        return refuse(StatusCode::NOT_FOUND, "there is no such page\n");
    }
    server.answer(request).await
}
