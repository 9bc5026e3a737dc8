-- Saves one hub's block of the heat history, and counts its bytes.
--
-- KEYS 1 the block's hash, by writer; 2 the index of blocks of its length, a sorted set; 3 bytes by length, a hash
-- ARGV 1 the start of the block, 2 the writer, 3 the data, 4 the length of its points
-- Returns the bytes that were added.
local added = #ARGV[3] - redis.call('HSTRLEN', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
redis.call('ZADD', KEYS[2], ARGV[1], ARGV[1])
redis.call('HINCRBY', KEYS[3], ARGV[4], added)
return added
