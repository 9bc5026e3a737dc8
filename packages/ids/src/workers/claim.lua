-- Claims an address, renews the claim, or gives it up. Expired claims of others do not count.
-- KEYS[1]  hash: address -> owner, and the time until which the claim is valid
-- ARGV[1]  address   ARGV[2]  owner   ARGV[3]  an owner known to be dead, or ''
-- ARGV[4]  how long the claim is valid, in milliseconds; 0 gives it up
-- Returns  '' if the address is (or was) the owner's, otherwise the owner that has it
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local claim = redis.call('HGET', KEYS[1], ARGV[1])
if claim then
  local held = cjson.decode(claim)
  if held.owner ~= ARGV[2] and held.owner ~= ARGV[3] and held['until'] > now then return held.owner end
end
if tonumber(ARGV[4]) == 0 then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], cjson.encode({ owner = ARGV[2], ['until'] = now + ARGV[4] }))
end
return ''
