-- Issues the next fencing token of a lock. It is the end of a script, or the body of a function in one.
--
-- Expects `counter` and `epoch`, two keys; `floor`, a token that the new one must exceed; `isFirst`, '1' for the first
-- acquisition of a name on a connection; and `memoryMs`, how long the end of the last epoch is kept.
--
-- `counter` counts up within a short epoch. When it has expired, or cannot be trusted because the connection is new, an
-- epoch starts at Redis' clock in microseconds, at the end of the last epoch, or above the floor, whichever is greatest.
-- If the counter still exists, it stands in for the end of the last epoch.
local token = redis.call('INCR', counter)
if token > 1 and token > floor and isFirst ~= '1' then return token end
local time = redis.call('TIME')
local least = token > 1 and token or tonumber(redis.call('GET', epoch) or 0)
token = math.max(time[1] * 1000000 + time[2], least, floor + 1)
redis.call('SET', counter, string.format('%.0f', token), 'PX', 1000)
redis.call('SET', epoch, string.format('%.0f', token + 1000000), 'PX', memoryMs)
return token
