//! An agent's loop with a [`Session`]: fit, send, remember, learn, recall. The provider is a scripted server on loopback that
//! wants ten files read and reports what it counted, so that this runs without a key: `cargo run --example agent_loop`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]
#![allow(clippy::indexing_slicing, reason = "indexing a JSON value gives null where there is nothing")]

use std::{
    error::Error,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::SystemTime,
};

use serde_json::{Value, json};
use trimtab_core::{Policy, Session, Settings, Tokens, Usage};

/// How many files the scripted model reads before it is done.
const FILES: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let provider = start_provider()?;
    let settings =
        Settings::new(Policy::find_shipped("steady")?).with_model("claude-opus-5").with_budget(Tokens(6_000));
    let mut session = Session::new(settings);
    let mut messages =
        vec![json!({"role": "user", "content": "Read the files and say what they have in common."})];
    loop {
        let request = json!({"model": "claude-opus-5", "max_tokens": 500, "messages": messages});
        let fitted = session.fit(serde_json::to_vec(&request)?, SystemTime::now())?;
        if let Some(floor) = fitted.plan.floor() {
            return Err(format!("{} tokens cannot be hidden", floor.tokens).into());
        }
        let reply = post(provider, &fitted.request)?;
        session.sent(&fitted);
        if let Some(usage) = Usage::of_answer(fitted.history.format(), &reply) {
            session.answered(usage);
        }
        let hidden: Vec<String> =
            fitted.plan.decisions().iter().filter_map(|decision| decision.handle.clone()).collect();
        println!(
            "{:>6} tokens became {:>6}, {} blocks hidden",
            fitted.plan.before(),
            fitted.plan.after(),
            hidden.len()
        );

        let reply: Value = serde_json::from_slice(&reply)?;
        messages.push(json!({"role": "assistant", "content": reply["content"]}));
        let Some(call) = reply["content"]
            .as_array()
            .and_then(|blocks| blocks.iter().find(|block| block["type"] == "tool_use"))
        else {
            let first = hidden.first().and_then(|handle| session.recall(handle));
            println!(
                "The first hidden block had {} bytes; nothing is lost.",
                first.map_or(0, |original| original.len())
            );
            return Ok(());
        };
        let content = read_file(call["input"]["file_path"].as_str().unwrap_or_default());
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call["id"], "content": content}
        ]}));
    }
}

/// Stands for a tool: a made-up file of 120 lines.
fn read_file(path: &str) -> String {
    (1..=120).map(|line| format!("{line}\tlet value_{line} = \"{path}\";\n")).collect()
}

/// Sends a request and returns the body of the answer.
fn post(provider: SocketAddr, body: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut stream = TcpStream::connect(provider)?;
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: {provider}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let body = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or("an answer without a body")?;
    Ok(answer.split_off(body + 4))
}

/// Starts a provider that asks for one file after the other, and then says that it is done.
fn start_provider() -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for (turn, stream) in (1..=FILES + 1).zip(listener.incoming()) {
            let answered = stream.and_then(|stream| answer(stream, turn));
            if answered.is_err() {
                return;
            }
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream, turn: usize) -> std::io::Result<()> {
    let (mut request, mut buffer) = (Vec::new(), [0; 65536]);
    // The body is an object, and nothing comes after it.
    while !request.ends_with(b"}") {
        let read = stream.read(&mut buffer)?;
        request.extend_from_slice(buffer.get(..read).unwrap_or_default());
    }
    let content = if turn > FILES {
        json!([{"type": "text", "text": "They all define values."}])
    } else {
        json!([{"type": "tool_use", "id": format!("toolu_{turn}"), "name": "Read", "input": {"file_path": format!("/src/file_{turn}.rs")}}])
    };
    let usage = json!({"input_tokens": request.len() / 3, "output_tokens": 40});
    let body =
        json!({"type": "message", "role": "assistant", "content": content, "usage": usage}).to_string();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
