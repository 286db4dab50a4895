-- What was inserted into the request after it was fitted, so that a provider's cache finds it: for each text, how many bytes precede it since
-- the one before, its length, and the text; numbers of seven bits a byte.
ALTER TABLE request ADD COLUMN added BLOB;
