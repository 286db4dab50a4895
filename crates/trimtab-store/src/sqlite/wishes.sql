-- What was asked for about blocks of a session, by the beginning of their hash. Only ever appended to: the newest row about a block says
-- what is meant, and the highest number tells a running process that there is something new.
CREATE TABLE wish (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    handle BLOB NOT NULL,
    -- 0: pin, 1: take the pin back, 2: show again when that is free, 3: show again now.
    kind INTEGER NOT NULL,
    step INTEGER NOT NULL,
    at INTEGER NOT NULL,
    -- The newest verdict then: what is hidden by later ones was not meant.
    seen INTEGER NOT NULL
);
CREATE INDEX wish_session ON wish (session);
-- The block behind which a cache marker was added to what was sent.
ALTER TABLE request ADD COLUMN marker INTEGER;
