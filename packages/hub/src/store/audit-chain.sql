-- Each entry contains the hash of the one before it; entries from earlier versions have none.
ALTER TABLE audit ADD COLUMN seq INTEGER;
ALTER TABLE audit ADD COLUMN previous TEXT;
ALTER TABLE audit ADD COLUMN hash TEXT;
