-- Issues the next fencing token of a lock: the microseconds of Redis' clock, or one more than the last token or than
-- the highest that the caller has seen, whichever is greatest. A negative stored value is a token that was released.
-- Standing before other scripts, it is a function of them.
local function nextToken(key, seen)
  local last = math.abs(tonumber(redis.call('GET', key) or 0))
  local time = redis.call('TIME')
  local token = math.max(time[1] * 1000000 + time[2], last + 1, seen + 1)
  redis.call('SET', key, string.format('%.0f', token), 'PX', 86400000)
  return token
end

