-- Returns the addresses with a valid claim, and removes the others.
-- KEYS[1]  hash: address -> owner, and the time until which the claim is valid
-- Returns  the live addresses
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local all = redis.call('HGETALL', KEYS[1])
local live = {}
for index = 1, #all, 2 do
  if cjson.decode(all[index + 1])['until'] > now then
    live[#live + 1] = all[index]
  else
    redis.call('HDEL', KEYS[1], all[index])
  end
end
return live
