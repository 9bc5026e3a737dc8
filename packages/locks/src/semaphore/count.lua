-- Permits that are taken and have not expired.
--
-- KEYS 1 permits taken (owners by the end of their lease)
local time = redis.call('TIME')
return redis.call('ZCOUNT', KEYS[1], string.format('(%.0f', time[1] * 1000 + math.floor(time[2] / 1000)), '+inf')
