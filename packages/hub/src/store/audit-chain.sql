-- Each entry names the one before it by its hash; entries of before have none.
ALTER TABLE audit ADD COLUMN seq INTEGER;
ALTER TABLE audit ADD COLUMN previous TEXT;
ALTER TABLE audit ADD COLUMN hash TEXT;
