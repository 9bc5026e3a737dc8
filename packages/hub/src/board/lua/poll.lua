-- Returns what was decided in a bucket since a hub last asked, and claims the timers that are due for it. An id goes to one
-- hub only, and is due again after the lease if that hub did not handle it.
--
-- KEYS 1 timers, a sorted set of ids; 2 outbox, a stream
-- ARGV 1 the time (see time.lua), 2 the outbox id after which to read, 3 most decisions, 4 most timers,
--      5 lease ms
-- Returns {time of this server in ms, claimed ids, decisions as {id in the outbox, sequence, JSON}}.
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[4])
for _, id in ipairs(due) do redis.call('ZADD', KEYS[1], now + ARGV[5], id) end
local decisions = {}
for index, entry in ipairs(redis.call('XRANGE', KEYS[2], '(' .. ARGV[2], '+', 'COUNT', ARGV[3])) do
  decisions[index] = { entry[1], entry[2][2], entry[2][4] }
end
return { now, due, decisions }
