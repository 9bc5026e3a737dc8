-- The beginning of every script of the board: what time it is.
--
-- ARGV[1]  the time in milliseconds, given by replays of tests only; '' in production: then it is this server's own
local now
if ARGV[1] == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(ARGV[1])
end

