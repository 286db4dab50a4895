-- What the requests of a session have cost, as sent and as they came, in tokens at the plain input price: later edits must pay by it.
ALTER TABLE session ADD COLUMN spent_ours REAL NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN spent_raw REAL NOT NULL DEFAULT 0;
