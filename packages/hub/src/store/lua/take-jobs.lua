-- Takes the pre-warm jobs that are due. Each is postponed by a lease, so another hub takes it if this one dies first.
--
-- KEYS 1 when each job is due, a sorted set of ids; 2 the jobs, a hash by id
-- ARGV 1 the time in ms, 2 the lease in ms, 3 most jobs to take
-- Returns the jobs as JSON.
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
local jobs = {}
for _, id in ipairs(ids) do
  local job = redis.call('HGET', KEYS[2], id)
  if job then
    redis.call('ZADD', KEYS[1], tonumber(ARGV[1]) + tonumber(ARGV[2]), id)
    jobs[#jobs + 1] = job
  else
    redis.call('ZREM', KEYS[1], id)
  end
end
return jobs
