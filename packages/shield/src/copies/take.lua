-- Takes a picture of a key for its copies: the value as DUMP gives it, its remaining time, and a version that is higher
-- than that of every picture before. Version and picture are taken at one instant, so a higher version is never an older
-- value, whoever takes it.
--
-- KEYS  1 the key  2 its version counter
-- ARGV  1 milliseconds that the counter lives
-- Returns {version, pttl, dump}; dump is false where there is no such key.
local version = redis.call('INCR', KEYS[2])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return {version, redis.call('PTTL', KEYS[1]), redis.call('DUMP', KEYS[1])}
