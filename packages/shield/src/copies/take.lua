-- Takes a picture of a key for its copies: the value as DUMP gives it, its remaining time, and a version that is higher
-- than that of every picture before. Version and picture are taken at one instant, so a higher version is never an older
-- value, whoever takes it.
--
-- The counter may be evicted, or go with the node's data, while copies on other nodes live on. So it starts at the
-- server's time in microseconds: there are fewer pictures than that, and what is counted from later is higher.
--
-- KEYS  1 the key  2 its version counter  3 who follows it
-- ARGV  1 milliseconds that the counter lives
-- Returns {version, pttl, followed, dump}; followed is 1 where a process follows the key, dump is false where there is no
-- such key.
local version = redis.call('INCR', KEYS[2])
if version == 1 then
  local now = redis.call('TIME')
  version = now[1] * 1000000 + now[2]
  -- Sixteen digits: Lua itself would write fourteen.
  redis.call('SET', KEYS[2], string.format('%.0f', version))
end
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return {version, redis.call('PTTL', KEYS[1]), redis.call('EXISTS', KEYS[3]), redis.call('DUMP', KEYS[1])}
