-- Takes a fair lock when it is the owner's turn, or puts the owner at the end of the queue.
--
-- ARGV 4 owner, 5 lease ms, 6 whether the owner will wait (1 or 0), 7 to 9 the arguments of next-token.lua
-- Returns the token (> 0) when taken, otherwise -1 - remaining ms of the holder's lease, so 0 if it has no end.
local owner = ARGV[4]
local mayTake = redis.call('HEXISTS', KEYS[1], owner) == 1
if not mayTake and redis.call('EXISTS', KEYS[1]) == 0 then
  local first = firstAlive()
  mayTake = not first or first == owner
  if not mayTake then passOn() end
end
if mayTake then
  forget(owner)
  redis.call('HSET', KEYS[1], owner, 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  return nextToken(KEYS[4], KEYS[5], ARGV[7], ARGV[8], ARGV[9])
end
if ARGV[6] == '1' then
  if not redis.call('ZSCORE', KEYS[3], owner) then redis.call('RPUSH', KEYS[2], owner) end
  redis.call('ZADD', KEYS[3], string.format('%.0f', now + ttl), owner)
  redis.call('PEXPIRE', KEYS[2], ttl * 10)
  redis.call('PEXPIRE', KEYS[3], ttl * 10)
end
return -1 - redis.call('PTTL', KEYS[1])
