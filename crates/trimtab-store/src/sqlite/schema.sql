CREATE TABLE session (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    requests INTEGER NOT NULL
);
CREATE TABLE request (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    at INTEGER NOT NULL,
    format TEXT NOT NULL,
    model TEXT,
    bytes INTEGER NOT NULL,
    tokens_before INTEGER NOT NULL,
    tokens_after INTEGER NOT NULL,
    -- Its bytes: the first and last parts of the base, between them what is new.
    base INTEGER,
    front INTEGER NOT NULL,
    back INTEGER NOT NULL,
    parts INTEGER NOT NULL,
    -- Its plan: that of the base for the blocks they share, and what differs.
    same_blocks INTEGER NOT NULL,
    plan BLOB,
    -- The chain hash of its last block, and whether another request went on from it.
    tip BLOB NOT NULL,
    extended INTEGER NOT NULL DEFAULT 0,
    -- Input, cache read, cache write, cache write for an hour, output: numbers of seven bits a byte.
    usage BLOB
);
CREATE INDEX request_session ON request (session);
CREATE INDEX request_tip ON request (tip);
CREATE TABLE chain (
    hash BLOB NOT NULL,
    session INTEGER NOT NULL,
    verdict INTEGER,
    PRIMARY KEY (hash, session)
) WITHOUT ROWID;
CREATE INDEX chain_verdict ON chain (verdict) WHERE verdict IS NOT NULL;
CREATE TABLE verdict (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    digest BLOB NOT NULL,
    reason TEXT NOT NULL,
    -- The text sent instead; none where nothing was sent.
    text INTEGER
);
CREATE TABLE pack (
    id INTEGER PRIMARY KEY,
    -- The contents in it have numbers in this range.
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    length INTEGER NOT NULL,
    loose INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE INDEX pack_loose ON pack (id) WHERE loose = 1;
CREATE TABLE content (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,
    kind INTEGER NOT NULL,
    session INTEGER NOT NULL,
    pack INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL
);
CREATE UNIQUE INDEX content_hash ON content (hash) WHERE kind <> 2;
-- Sessions that hold a content which another session held first.
CREATE TABLE shared (
    content INTEGER NOT NULL,
    session INTEGER NOT NULL,
    PRIMARY KEY (content, session)
) WITHOUT ROWID;
CREATE TABLE summary (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    at INTEGER NOT NULL,
    through BLOB NOT NULL,
    text INTEGER NOT NULL
);
-- Made when somebody searches: contents up to `indexed` are in it.
CREATE VIRTUAL TABLE words USING fts5 (text, content = '', contentless_delete = 1, detail = none);
CREATE VIRTUAL TABLE word_counts USING fts5vocab (words, row);
CREATE TABLE indexed (through INTEGER NOT NULL);
INSERT INTO indexed VALUES (0);
