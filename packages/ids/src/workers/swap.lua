-- Writes a worker's record, if nobody has changed it since it was read.
-- KEYS[1]  hash: worker id -> record
-- ARGV[1]  worker id   ARGV[2]  the record as it was read, '' for none   ARGV[3]  the new record
-- Returns  1 if it was written, 0 if another record is there
local found = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if found ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
