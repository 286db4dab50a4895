//! Keeps an LLM agent's conversation inside its context window.
