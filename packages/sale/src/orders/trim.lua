-- Deletes old entries that every consumer group has settled.
--
-- KEYS  1 orders stream
-- ARGV  1 milliseconds that a settled entry is kept
-- Returns how many were deleted
local time = redis.call('TIME')
local minimum = {time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[1], 0}

local function lower(id)
  local millis, sequence = string.match(id, '^(%d+)-(%d+)$')
  millis, sequence = tonumber(millis), tonumber(sequence)
  if millis < minimum[1] or (millis == minimum[1] and sequence < minimum[2]) then minimum = {millis, sequence} end
end

local groups = redis.call('XINFO', 'GROUPS', KEYS[1])
if #groups == 0 then return 0 end
for _, fields in ipairs(groups) do
  local group = {}
  for index = 1, #fields, 2 do group[fields[index]] = fields[index + 1] end
  lower(group['last-delivered-id'])
  if group['pending'] > 0 then lower(redis.call('XPENDING', KEYS[1], group['name'])[2]) end
end
if minimum[1] <= 0 then return 0 end
return redis.call('XTRIM', KEYS[1], 'MINID', '~', string.format('%.0f-%.0f', minimum[1], minimum[2]))
