-- The pings after the request: for each, milliseconds since the request, and what it used as in `usage`; numbers of seven bits a byte.
ALTER TABLE request ADD COLUMN pings BLOB;
