-- Issues the next fencing token of a lock: the end of a script, or the body of a function of it.
--
-- Expects `counter` and `epoch`, two keys, and `floor`, a token that the new one must exceed. `counter` counts up within
-- a short epoch; when it has expired, a new epoch starts at Redis' clock in microseconds, at the end of the last epoch,
-- or above the floor, whichever is greatest.
local token = redis.call('INCR', counter)
if token > 1 and token > floor then return token end
local time = redis.call('TIME')
token = math.max(time[1] * 1000000 + time[2], tonumber(redis.call('GET', epoch) or 0), floor + 1)
redis.call('SET', counter, string.format('%.0f', token), 'PX', 1000)
redis.call('SET', epoch, string.format('%.0f', token + 1000000), 'PX', 86400000)
return token
