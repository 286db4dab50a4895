//! Threads that forward. Takes connections of clients; gives each to the thread that has the fewest. A thread has its own
//! connections to providers, so that a request and its answer stay on it: to wake another thread for every event of a stream costs
//! more than the event. Never looks at a request.

use std::{
    convert::Infallible,
    net,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

use anyhow::{Context, Result};
use tokio::{
    net::TcpStream,
    runtime::{Builder, Runtime},
    sync::{mpsc, watch},
};

use super::{Proxy, serve_connection};

/// The fewest and the most threads. Two, so that a plan made on one does not hold up all; few, because forwarding is waiting,
/// mostly, and plans that take long have separate threads.
const FEWEST: usize = 2;
const MOST: usize = 4;

/// How many threads each of them has for plans, decoding and waiting for the disk: what is beyond that waits its turn.
const PLANS: usize = 16;

/// All threads that forward.
pub(super) struct ForwardThreads(Vec<ForwardThread>);

struct ForwardThread {
    connections: mpsc::UnboundedSender<(net::TcpStream, OpenConnection)>,
    open: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

/// A connection that has not ended.
struct OpenConnection {
    of_thread: Arc<AtomicUsize>,
    _of_all: mpsc::Sender<Infallible>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.of_thread.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ForwardThreads {
    /// Starts the threads. Their connections end when `stopped` changes.
    ///
    /// # Errors
    /// Says that no thread can be started.
    pub(super) fn start(proxy: &Proxy, stopped: &watch::Receiver<()>) -> Result<ForwardThreads> {
        let cores = thread::available_parallelism().map_or(FEWEST, std::num::NonZeroUsize::get);
        let forwarders = (0..cores.clamp(FEWEST, MOST))
            .map(|_| ForwardThread::start(proxy.with_own_connections(), stopped.clone()));
        Ok(ForwardThreads(forwarders.collect::<Result<_>>()?))
    }

    /// Hands a connection to the thread that has the fewest; it holds `open` until it has ended.
    pub(super) fn hand_over(&self, connection: TcpStream, open: mpsc::Sender<Infallible>) {
        let fewest = self.0.iter().min_by_key(|forwarder| forwarder.open.load(Ordering::Relaxed));
        // On a connection that is already broken nobody listens.
        let (Some(forwarder), Ok(connection)) = (fewest, connection.into_std()) else { return };
        forwarder.open.fetch_add(1, Ordering::Relaxed);
        let open = OpenConnection { of_thread: Arc::clone(&forwarder.open), _of_all: open };
        let _ = forwarder.connections.send((connection, open));
    }

    /// Ends the threads, and what is still under way on them.
    pub(super) fn stop_threads(self) {
        let threads: Vec<_> = self.0.into_iter().map(|forwarder| forwarder.thread).collect();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl ForwardThread {
    fn start(proxy: Proxy, stopped: watch::Receiver<()>) -> Result<ForwardThread> {
        let runtime = start_runtime()?;
        let (connections, taken) = mpsc::unbounded_channel();
        let thread = thread::Builder::new()
            .name("forward".to_owned())
            .spawn(move || runtime.block_on(serve_connections(Arc::new(proxy), taken, stopped)))
            .context("no thread can be started")?;
        Ok(ForwardThread { connections, open: Arc::default(), thread })
    }
}

/// Makes what a single thread runs on.
///
/// # Errors
/// Says that the system has nothing left for it.
pub(crate) fn start_runtime() -> Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(PLANS)
        .build()
        .context("no runtime can be started")
}

/// Converses on all connections that are handed over, until there are no more to come.
async fn serve_connections(
    proxy: Arc<Proxy>,
    mut taken: mpsc::UnboundedReceiver<(net::TcpStream, OpenConnection)>,
    stopped: watch::Receiver<()>,
) {
    while let Some((connection, open)) = taken.recv().await {
        let Ok(connection) = TcpStream::from_std(connection) else { continue };
        let (proxy, stopped) = (Arc::clone(&proxy), stopped.clone());
        tokio::spawn(async move {
            let _open = open;
            serve_connection(proxy, connection, stopped).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_blocks_has_a_bounded_number_of_threads() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        start_runtime().unwrap().block_on(async {
            let block = || {
                let (now, most) = (Arc::clone(&now), Arc::clone(&most));
                tokio::task::spawn_blocking(move || {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(10));
                    now.fetch_sub(1, Ordering::SeqCst);
                })
            };
            let all: Vec<_> = (0..4 * PLANS).map(|_| block()).collect();
            for one in all {
                one.await.unwrap();
            }
        });
        assert!(most.load(Ordering::SeqCst) <= PLANS, "{most:?}");
    }
}
