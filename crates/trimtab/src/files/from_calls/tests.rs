//! Conversations of every agent, and what is known of their files afterwards.
