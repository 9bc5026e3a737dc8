-- Gives one hold of a lock back; the last one frees it and wakes the waiters, or hands it to a task of the same
-- process.
--
-- Sent again because its reply was lost, it finds the owner gone and tells from the token what happened: a release
-- leaves the token negative, and a greater one means that somebody came after.
--
-- KEYS 1 lock hash, 2 channel, 3 token
-- ARGV 1 owner, 2 hold count after this call, 3 token, 4 PUBLISH or SPUBLISH,
--      optionally 5 next owner, 6 its lease ms, 7 highest token this client has seen
-- Returns 1 when given back, the next owner's token when handed over, 0 when the lock was not the owner's any more.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  local last = tonumber(redis.call('GET', KEYS[3]) or 0)
  if ARGV[5] and redis.call('HEXISTS', KEYS[1], ARGV[5]) == 1 then return last end
  local mine = tonumber(ARGV[3])
  if last == -mine or math.abs(last) > mine then return 1 end
  return 0
end
if ARGV[2] ~= '0' then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  return 1
end
redis.call('DEL', KEYS[1])
if ARGV[5] then
  redis.call('HSET', KEYS[1], ARGV[5], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
  return nextToken(KEYS[3], ARGV[7])
end
redis.call('SET', KEYS[3], '-' .. ARGV[3], 'PX', 86400000)
redis.call(ARGV[4], KEYS[2], '0')
return 1
