-- Takes the write lock when nobody reads or writes. Current readers keep the lock; while a writer waits for them, new
-- readers are held back, or a stream of readers would keep the writer out for ever.
--
-- KEYS 1 writer hash, 2 readers (by the end of their lease), 3 waiting writer, 4 token counter, 5 token epoch
-- ARGV 1 owner, 2 lease ms, 3 ms to hold new readers back, or 0, 4 to 6 the arguments of next-token.lua
-- Returns the token (> 0) when taken, otherwise -1 - the most ms to wait, so 0 if that has no end.
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return -1 - redis.call('PTTL', KEYS[1])
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
if last[2] then
  if ARGV[3] ~= '0' then redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[3]) end
  return -1 - math.ceil(last[2] - now)
end
redis.call('DEL', KEYS[3])
redis.call('HSET', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return nextToken(KEYS[4], KEYS[5], ARGV[4], ARGV[5], ARGV[6])
