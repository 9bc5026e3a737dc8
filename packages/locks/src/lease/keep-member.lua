-- One of several holders re-entered (with a lease) or left one of its entries (0): is it still a holder?
--
-- KEYS 1 holders by the end of their lease
-- ARGV 1 owner, 2 lease ms or 0
-- Returns 1 when it is, 0 when its lease is over.
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not ends or tonumber(ends) <= now then return 0 end
if ARGV[2] ~= '0' then
  redis.call('ZADD', KEYS[1], 'GT', string.format('%.0f', now + ARGV[2]), ARGV[1])
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
end
return 1
