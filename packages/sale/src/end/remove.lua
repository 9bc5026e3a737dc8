-- Removes all data of a voucher from Redis, once nothing of it is in progress.
--
-- KEYS  1 voucher hash  2 orders stream  3 unpaid zset  4 dead-letter stream  5… its other keys
-- ARGV  1 milliseconds that must have passed since its end or its last event, whichever is later
-- Returns
--   'removed'   everything was removed
--   'unknown'   there was nothing
--   'open'      that time has not passed
--   'unpaid'    an order waits for its payment
--   'unstored'  an event is not stored yet, or no worker has ever looked
--   'dead'      a dead letter waits for somebody
if redis.call('EXISTS', unpack(KEYS)) == 0 then return 'unknown' end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = redis.call('HGET', KEYS[1], 'end')
local since = ends and #ends <= 15 and string.find(ends, '^%d+$') and (ends + 1) * 1000 or 0
local hasStream = redis.call('EXISTS', KEYS[2]) == 1
if hasStream then
  local info = redis.call('XINFO', 'STREAM', KEYS[2])
  for index = 1, #info, 2 do
    if info[index] == 'last-generated-id' then since = math.max(since, tonumber(string.match(info[index + 1], '^%d+'))) end
  end
end
if now < since + ARGV[1] then return 'open' end
if redis.call('ZCARD', KEYS[3]) > 0 then return 'unpaid' end
if redis.call('XLEN', KEYS[4]) > 0 then return 'dead' end
local last = hasStream and redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
if last then
  local groups = redis.call('XINFO', 'GROUPS', KEYS[2])
  if #groups == 0 then return 'unstored' end
  for _, fields in ipairs(groups) do
    local group = {}
    for index = 1, #fields, 2 do group[fields[index]] = fields[index + 1] end
    if group['pending'] > 0 or group['last-delivered-id'] ~= last[1] then return 'unstored' end
  end
end
redis.call('UNLINK', unpack(KEYS))
return 'removed'
