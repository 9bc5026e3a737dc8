-- Takes a fair lock when it is the owner's turn, or puts the owner at the end of the queue.
--
-- ARGV 5 owner, 6 lease ms, 7 whether the owner will wait (1 or 0), 8 to 10 the arguments of next-token.lua
-- Returns the token (> 0) when taken, otherwise -1 - remaining ms of the holder's lease, so 0 if it has no end.
local owner = ARGV[5]
local mayTake = redis.call('HEXISTS', KEYS[1], owner) == 1
if not mayTake and redis.call('EXISTS', KEYS[1]) == 0 then
  local first = firstAlive()
  mayTake = not first or first == owner
  if not mayTake then passOn() end
end
if mayTake then
  forget(owner)
  redis.call('HSET', KEYS[1], owner, 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
  return nextToken(KEYS[4], KEYS[5], ARGV[8], ARGV[9], ARGV[10])
end
if ARGV[7] == '1' then
  if not redis.call('ZSCORE', KEYS[3], owner) then redis.call('RPUSH', KEYS[2], owner) end
  redis.call('ZADD', KEYS[3], string.format('%.0f', now + ttl), owner)
  redis.call('PEXPIRE', KEYS[2], ttl * 10)
  redis.call('PEXPIRE', KEYS[3], ttl * 10)
end
return -1 - redis.call('PTTL', KEYS[1])
