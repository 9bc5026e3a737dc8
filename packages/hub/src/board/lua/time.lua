-- The beginning of every script of the board: the current time.
--
-- ARGV[1]  the time in milliseconds, only given when a test replays events; '' in production: this server's own clock
local now
if ARGV[1] == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(ARGV[1])
end

