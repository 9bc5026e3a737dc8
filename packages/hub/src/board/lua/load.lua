-- KEYS 1 hot keys, a hash of states by id; 2 outbox, a stream; 3 its sequence
-- ARGV 1 the time (see time.lua)
-- Returns {time of this server in ms, id of the newest decision, its sequence, then an id and a state each}.
local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
local sequence = tonumber(redis.call('GET', KEYS[3]) or 0)
local answer = { now, newest and newest[1] or '0-0', sequence }
for _, part in ipairs(redis.call('HGETALL', KEYS[1])) do answer[#answer + 1] = part end
return answer
