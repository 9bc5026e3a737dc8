-- Deletes the oldest events from before a given time.
--
-- KEYS 1 the history, a list, newest first
-- ARGV 1 the time, 2 most events to delete
-- Returns how many were deleted.
local forgotten = 0
while forgotten < tonumber(ARGV[2]) do
  local oldest = redis.call('LINDEX', KEYS[1], -1)
  if not oldest or cjson.decode(oldest).at >= tonumber(ARGV[1]) then break end
  redis.call('RPOP', KEYS[1])
  forgotten = forgotten + 1
end
return forgotten
