-- Takes one of a number of permits, or says when the next one expires.
--
-- KEYS 1 permits taken (owners by the end of their lease), 2 token counter, 3 token epoch, 4 permits added or drained
-- ARGV 1 owner, 2 lease ms, 3 to 5 the arguments of next-token.lua, 6 the initial number of permits
-- Returns the token (> 0) when taken, otherwise -1 - ms until the next permit expires, so 0 if none is taken.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local permits = ARGV[6] + (redis.call('GET', KEYS[4]) or 0)
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= permits then
  local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return first[2] and -1 - math.ceil(first[2] - now) or 0
end
redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), ARGV[1])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return nextToken(KEYS[2], KEYS[3], ARGV[3], ARGV[4], ARGV[5])
