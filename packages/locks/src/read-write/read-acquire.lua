-- Adds a reader, unless there is a writer or a waiting writer.
--
-- KEYS 1 writer hash, 2 readers (by the end of their lease), 3 waiting writer, 4 token counter, 5 token epoch
-- ARGV 1 owner, 2 lease ms, 3 to 5 the arguments of next-token.lua
-- Returns the token (> 0) when taken, otherwise -1 - the most ms to wait, so 0 if that has no end.
local isWriter = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
if not isWriter then
  if redis.call('EXISTS', KEYS[1]) == 1 then return -1 - redis.call('PTTL', KEYS[1]) end
  local wanted = redis.call('PTTL', KEYS[3])
  if wanted > 0 then return -1 - wanted end
end
redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[2]), ARGV[1])
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
return nextToken(KEYS[4], KEYS[5], ARGV[3], ARGV[4], ARGV[5])
