-- Adds permits, removes some, or drains all free ones. Permits that are taken stay with their holders.
--
-- KEYS 1 permits taken (owners by the end of their lease), 2 permits added or drained
-- ARGV 1 the initial number of permits, 2 how many to add (below 0: to remove), or 'drain', 3 channel,
--      4 PUBLISH or SPUBLISH
-- Returns how many permits there are now, or for 'drain' how many were drained.
local first, added = tonumber(ARGV[1]), tonumber(redis.call('GET', KEYS[2]) or 0)
local free = math.max(0, first + added - redis.call('ZCOUNT', KEYS[1], string.format('(%.0f', now), '+inf'))
local change = ARGV[2] == 'drain' and -free or math.max(tonumber(ARGV[2]), -(first + added))
if first + added + change == first then
  redis.call('DEL', KEYS[2])
else
  redis.call('SET', KEYS[2], string.format('%.0f', added + change))
end
-- A waiter that takes one wakes the next.
if change > 0 then redis.call(ARGV[4], ARGV[3], '0') end
return ARGV[2] == 'drain' and free or first + added + change
