-- Takes a snapshot of a key for its copies: the value from DUMP, its remaining TTL, and a version higher than that of every
-- earlier snapshot. Version and value are taken at the same instant, so a higher version never has an older value, whoever
-- takes it.
--
-- The counter may be evicted, or lost with the node's data, while copies on other nodes live on. So it starts at the
-- server's time in microseconds: there are fewer snapshots than microseconds, so a later start is always higher.
--
-- KEYS  1 the key  2 its version counter  3 who follows it
-- ARGV  1 milliseconds that the counter lives
-- Returns {version, pttl, followed, dump}; followed is 1 if a process follows the key, dump is false if there is no such
-- key.
local version = redis.call('INCR', KEYS[2])
if version == 1 then
  local now = redis.call('TIME')
  version = now[1] * 1000000 + now[2]
  -- All sixteen digits: Lua would only write fourteen.
  redis.call('SET', KEYS[2], string.format('%.0f', version))
end
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return {version, redis.call('PTTL', KEYS[1]), redis.call('EXISTS', KEYS[3]), redis.call('DUMP', KEYS[1])}
