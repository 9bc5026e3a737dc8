-- Deletes one block of the heat history; another hub may already have done so.
--
-- KEYS 1 the block's hash, by writer; 2 the index of blocks of its length; 3 bytes by length, a hash
-- ARGV 1 the start of the block, 2 the length of its points
-- Returns how many bytes were freed.
local bytes = 0
for _, data in ipairs(redis.call('HVALS', KEYS[1])) do bytes = bytes + #data end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
if bytes > 0 then redis.call('HINCRBY', KEYS[3], ARGV[2], -bytes) end
return bytes
